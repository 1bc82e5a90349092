"""The walk-throughs of the pages run as written."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from gcvae_cli.__main__ import main
from gcvae_client import Client
from tests.test_documentation import PAGES, block, run_python


def run_shell(script: str, folder: Path) -> str:
    """What a script prints; it ends at the first command that fails."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail"], input=script, cwd=folder, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_left(folder: Path) -> set[str]:
    """The files that a walk-through left."""
    return {path.name for path in folder.iterdir()} - {".venv", "service.log"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, with the `.venv` that the pages speak of."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_named(page: str) -> set[str]:
    """The files that a walk-through says it leaves."""
    text = re.search(r"(?s)leaves? these files where [a-z]+ runs?: (.*?)\n\n", PAGES[page] + "\n\n")
    assert text is not None
    return {name.rstrip("/") for name in re.findall(r"`([\w.-]+/?)`", text[1])}


def files_of_rest() -> set[str]:
    """The files that the calls of the page of REST write, its table, and the service's folder."""
    written = re.findall(r"(?:-o|>) ([\w.-]+)", block("docs/rest.md", "sh rest"))
    return {"wine.csv", "gcvae-data", *written}


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    """The service, started as the page says, but on a free port."""
    address = f"http://127.0.0.1:{free_port()}"
    environment = {**os.environ, "GCVAE_PORT": address.rpartition(":")[2]}
    command = block("docs/rest.md", "sh server").split()
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
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
    """The script with the address of the pages replaced."""
    assert "http://127.0.0.1:8000" in script
    return script.replace("http://127.0.0.1:8000", address)


def run_commands(script: str, folder: Path) -> None:
    """Runs line by line: `gcvae` here, for each process would load torch anew, the rest in bash."""
    for line in script.splitlines():
        program, *arguments = shlex.split(line)
        if program == ".venv/bin/gcvae":
            assert main(arguments) == 0, line
        else:
            run_shell(line, folder)


def test_the_walk_throughs_with_a_service_run_as_written(folder: Path, url: str) -> None:
    """One service for all, one after the other: it is what takes the time."""
    follow_the_page_of_rest(folder, url)
    patch_as_the_page_of_tables_does(url)
    follow_the_first_example_of_rest(folder, url)
    follow_the_client_of_the_guide(folder, url)
    follow_the_commands_of_the_guide_at_a_service(folder, url)


def follow_the_page_of_rest(folder: Path, url: str) -> None:
    printed = run_shell(at(url, block("docs/rest.md", "sh rest")), folder).splitlines()
    assert "succeeded" in printed
    assert '"line"' in printed[-1]
    assert len(pd.read_csv("synthetic.csv")) == 1000
    assert len(pd.read_csv("scores.csv")) == 178
    assert len(pd.read_csv("strong.csv")) == 500
    assert len(pd.read_csv("completed.csv")) == 3 * 178
    assert len(pd.read_csv("encodings.csv")) == 178
    assert Path("dependencies.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(Path("local.json").read_text())["kind"] == "local"
    assert len(pd.read_csv("users.csv")) == 100
    with zipfile.ZipFile("shop.zip") as archive:
        assert archive.namelist() == ["users.csv", "visits.csv"]
    assert Path("wine.gcvae").stat().st_size > 1000
    assert files_left(folder) == files_of_rest()


def patch_as_the_page_of_tables_does(url: str) -> None:
    table = "note,age,price,name\n" + "".join(
        f"n{i},{20 + i % 40},{i}.5,x{i % 3}\n" for i in range(200)
    )
    with Client(url) as client:
        said = {"columns": [{"name": "price", "kind": "continuous"}]}
        dataset = client.upload(table.encode(), schema=said)
        patched = client.patch_schema(dataset, json.loads(block("docs/tables.md", "json patch")))
        columns = {column["name"]: column for column in patched["schema"]["columns"]}
        assert columns["note"]["drop"]
        assert columns["age"]["kind"] == "ordinal"
        client.delete(dataset)


def follow_the_commands_of_the_guide_at_a_service(folder: Path, url: str) -> None:
    script = at(url, block("docs/guide.md", "sh served"))
    assert "ready" in run_shell(script, folder).splitlines()[0]
    assert len(pd.read_csv("synthetic.csv")) == 500
    assert len(pd.read_csv("scores.csv")) == 178


def follow_the_first_example_of_rest(folder: Path, url: str) -> None:
    script = block("README.md", "sh example")
    assert len(script.splitlines()) <= 6
    Path("synthetic.csv").unlink()
    assert "succeeded" in run_shell(at(url, script), folder)
    assert len(pd.read_csv("synthetic.csv")) == 1000


def follow_the_client_of_the_guide(folder: Path, url: str) -> None:
    for name in ("strong.csv", "scores.csv"):
        Path(name).unlink()
    left = run_python(at(url, block("docs/guide.md", "python client")))
    assert len(left["tau"]) == 14
    assert left["rows"].shape == (1000, 14)
    assert len(left["likely"]) == 1000
    assert len(pd.read_csv("strong.csv")) == 500
    assert len(pd.read_csv("scores.csv")) == 178
    assert files_left(folder) == files_of_rest(), "nothing new"


def test_the_guide_to_the_library_runs_as_written(folder: Path) -> None:
    left = run_python(block("docs/guide.md", "python library"))
    assert left["again"].sample(1000, seed=2).equals(left["rows"])
    assert len(left["scores"]) == 178
    assert files_left(folder) <= files_named("docs/guide.md")


def test_the_guide_to_the_command_line_runs_as_written(folder: Path) -> None:
    [table] = re.findall(r"(?m)^load_wine.*$", block("docs/guide.md", "python library"))
    run_python(f"from sklearn.datasets import load_wine\n{table}")
    run_commands(block("docs/guide.md", "sh files"), folder)
    assert len(pd.read_csv("synthetic.csv")) == 1000
    assert len(pd.read_parquet("scores.parquet")) == 178
    assert Path("dependencies.svg").read_text().startswith("<?xml")
    assert files_left(folder) | {"scores.csv", "dependencies.png"} == files_named("docs/guide.md")


def test_the_tutorial_runs_as_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks in the order of the page; training is cut short."""
    names: dict[str, Any] = {}
    parts = re.findall(r"(?ms)^```(python|sh) tutorial\n(.*?)^```$", PAGES["docs/tutorial.md"])
    for language, script in parts:
        if language == "python":
            exec(compile(script, "<tutorial>", "exec"), names)
        else:
            run_commands(script.replace("train ", "train --set max_steps=100 "), folder)
    shown = re.search(r"(?ms)^```\n(gcvae: rule: .*?)^```$", PAGES["docs/tutorial.md"])
    assert shown is not None
    assert shown[1] in capsys.readouterr().err
    rows = names["synthetic"]
    assert (abs(rows.price * rows.quantity - rows.total) < 0.005).all()
    assert (rows.ordered <= rows.shipped).all()
    assert len(rows[["country", "currency"]].drop_duplicates()) == 3
    scores = names["scores"]
    assert scores["log_likelihood"][1] == -float("inf") < scores["log_likelihood"][0]
    assert scores.filter(like="contributions").iloc[1].idxmin() == "contributions.total"
    assert set(pd.read_csv("japan.csv")["country"]) == {"Japan"}
    assert files_left(folder) == files_named("docs/tutorial.md")


def test_the_example_of_anomalies_runs_as_written() -> None:
    left = run_python(block("docs/anomalies.md", "python anomalies"))
    assert left["worst"] == 7
    assert left["cells"].index[0] == "contributions.alcohol"


def test_the_first_example_runs_as_written(folder: Path) -> None:
    script = block("README.md", "python example")
    assert len(script.splitlines()) <= 12
    left = run_python(script)
    assert len(left["rows"]) == 1000
    assert left["strong"]["alcohol"].min() >= 13.5
    assert set(left["strong"]["target"]) == {0}
    assert len(left["scores"]) == 178
    assert left["filled"].notna().all(axis=None)
    assert files_left(folder) == {"wine.csv", "dependencies.png", "wine.gcvae"}
