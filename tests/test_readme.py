"""What the README says is so: its walk-throughs run as written, its tables are complete."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest

from catalog.settings import CatalogSettings
from service.settings import ServiceSettings
from worker.settings import JobSettings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str, name: str) -> str:
    """Every code block of this language and name, in order, as one script."""
    found = re.findall(rf"(?ms)^```{language} {name}\n(.*?)^```$", README)
    assert found, f"the README has no {language} block named {name}"
    return "\n".join(found)


def section(title: str) -> str:
    """The text under a heading."""
    found = re.search(rf"(?ms)^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README)
    assert found is not None, title
    return found[1]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the `.venv` that the README speaks of and the table of its walk-throughs."""
    made = tmp_path_factory.mktemp("readme")
    (made / ".venv").symlink_to(sys.prefix)
    [table] = re.findall(r'(?ms)^\.venv/bin/python -c ".*?"$', blocks("sh", "rest"))
    subprocess.run(["bash", "-ec", table], cwd=made, check=True)
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The service, started as the README says, but on a free port."""
    address = f"http://127.0.0.1:{free_port()}"
    environment = {**os.environ, "GCVAE_PORT": address.rpartition(":")[2]}
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(
            blocks("sh", "server").split(), cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        wait_until_ready(address)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def wait_until_ready(address: str) -> None:
    """Returns once the service is ready."""
    for _ in range(600):
        try:
            if httpx.get(f"{address}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{address} is not ready")


def at(address: str, script: str) -> str:
    """The script with the address of the README replaced."""
    assert "http://127.0.0.1:8000" in script
    return script.replace("http://127.0.0.1:8000", address)


def test_the_rest_walk_through_runs_as_written(folder: Path, url: str) -> None:
    script = at(url, blocks("sh", "rest"))
    done = subprocess.run(
        ["bash", "-euo", "pipefail"], input=script, cwd=folder, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert "succeeded" in done.stdout.splitlines()
    assert '"line"' in done.stdout.splitlines()[-1]
    assert len(pd.read_csv(folder / "synthetic.csv")) == 1000
    assert len(pd.read_csv(folder / "scores.csv")) == 178
    assert (folder / "dependencies.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "wine.gcvae").stat().st_size > 1000


def test_the_walk_through_of_the_client_runs_as_written(folder: Path, url: str) -> None:
    script = at(url, blocks("python", "client")) + "\nassert len(tau) == 14"
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)
    assert len(pd.read_csv(folder / "synthetic.csv")) == 1000


def test_the_walk_through_of_the_library_runs_as_written(folder: Path) -> None:
    script = blocks("python", "library")
    script += "\nassert again.sample(1000, seed=2).equals(rows) and len(scores) == 178"
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)


def test_the_example_of_constraints_runs_as_written(folder: Path) -> None:
    script = blocks("python", "constraints")
    script += """
assert len(rows) == 1000 and 0.01 < share < 1 and score == float("-inf")
assert (rows["rooms"] < rows["area"]).all()
assert ((rows["city"] == "Rome") == (rows["country"] == "Italy")).all()
assert ((rows["area"] >= 9 * rows["rooms"]) | (rows["city"] == "Rome")).all()
"""
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)


def test_the_walk_through_of_the_command_line_runs_as_written(folder: Path) -> None:
    subprocess.run(["bash", "-ec", blocks("sh", "files")], cwd=folder, check=True)
    assert len(pd.read_parquet(folder / "scores.parquet")) == 178
    assert (folder / "dependencies.svg").read_text().startswith("<?xml")


def test_the_walk_throughs_leave_the_files_that_are_named(folder: Path) -> None:
    text = section("Walk-through: command line").split("The walk-throughs leave", 1)[1]
    named = {name.rstrip("/") for name in re.findall(r"`([\w.-]+/?)`", text.split("\n\n")[0])}
    left = {path.name for path in folder.iterdir()} - {".venv", "service.log"}
    assert left <= named, "of the walk-throughs that ran before in this folder"


@pytest.mark.parametrize("settings", [ServiceSettings, CatalogSettings, JobSettings])
def test_every_setting_is_in_the_table(
    settings: type[ServiceSettings] | type[CatalogSettings] | type[JobSettings],
) -> None:
    named = set(re.findall(r"`(\w+)`", section("Configuration")))
    assert set(settings.model_fields) <= named


def test_every_folder_is_on_the_map() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}
    on_the_map = set(re.findall(r"`(\w+)/`", section("Map of the house")))
    assert {folder for folder in folders if not folder.startswith(".")} <= on_the_map


def test_every_departure_from_the_paper_is_listed() -> None:
    tagged = [
        path.name
        for path in (ROOT / "gcvae").rglob("*.py")
        for _ in re.findall("# PAPER-DIFF:", path.read_text())
    ]
    listed = re.findall(r"(?m)^- \*\*.*?`(\w+\.py)`", section("Departures from the paper"))
    assert sorted(listed) == sorted(tagged)


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")


def test_the_test_command_is_the_one_that_continuous_integration_runs() -> None:
    assert re.search(r"(?m)^make test\b", README)
    assert re.search(r"(?m)^exec make test$", (ROOT / ".ci" / "run").read_text())


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    assert set(re.findall(r"`make ([a-z-]+)", README)) <= targets
