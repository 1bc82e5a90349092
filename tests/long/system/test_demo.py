"""The demo goes the whole way, and leaves results and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

from gcvae_cli.client.demo import folder_of

ROOT = Path(__file__).parents[3]
DEMO = [sys.executable, "-m", "gcvae_cli", "demo", "--set", "max_steps=60"]
MAPS = {"dependencies": "total", "dependencies-copula": "expected"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `gcvae demo` was run with its own table."""
    made = tmp_path_factory.mktemp("demo")
    ran = subprocess.run(DEMO, cwd=made, check=True, capture_output=True, text=True)
    (made / "said.txt").write_text(ran.stdout)
    return made / "demo-out"


def read(path: Path) -> pd.DataFrame:
    """A table as text."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def test_the_synthetic_table_is_made_like_the_real_one(folder: Path) -> None:
    real, synthetic = read(folder / "diabetes.csv"), read(folder / "synthetic.csv")
    assert list(synthetic) == list(real)
    assert len(synthetic) == len(real) == 442
    assert set(synthetic["sex"]) <= set(real["sex"])
    for name in ("age", "s1", "s6", "target"):
        assert synthetic[name].str.fullmatch(r"-?\d+").all(), name


def test_every_row_is_scored(folder: Path) -> None:
    scores = pd.read_csv(folder / "scores.csv")
    assert list(scores)[:3] == ["log_likelihood", "standard_error", "percentile"]
    assert len(scores) == 442
    assert np.isfinite(scores.select_dtypes("number").to_numpy()).all()
    assert scores["odd_cell"].isin(read(folder / "synthetic.csv").columns).all()


def test_the_report_is_a_page_that_is_named_in_the_summary(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    said = (folder.parent / "said.txt").read_text()
    assert "report.html" in said
    assert "reported  fidelity" in said


@pytest.mark.parametrize("name", MAPS)
def test_a_map_is_a_picture_and_a_document(folder: Path, name: str) -> None:
    document = json.loads((folder / f"{name}.json").read_text())
    tau = np.array(document["tau"])
    assert document["kind"] == MAPS[name]
    assert document["columns"] == list(read(folder / "diabetes.csv"))
    np.testing.assert_array_equal(tau, tau.T)
    np.testing.assert_array_equal(np.diag(tau), 1.0)
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_both_maps_have_their_columns_in_one_order(folder: Path) -> None:
    documents = [json.loads((folder / f"{name}.json").read_text()) for name in MAPS]
    assert documents[0]["order"] == documents[1]["order"]
    assert documents[0]["nominal"] == documents[1]["nominal"] == ["sex"]


def test_real_and_synthetic_are_compared_in_a_picture(folder: Path) -> None:
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_the_job_is_told_as_the_service_tells_it(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    assert job["status"] == "succeeded"
    assert job["id"].startswith("job_")


def test_it_ends_every_process_that_it_started(folder: Path) -> None:
    data_dir = str(folder / "service")
    for process in psutil.process_iter(["cmdline"]):
        assert data_dir not in " ".join(process.info["cmdline"] or [])


def test_any_table_in_any_encoding_goes_the_whole_way_and_comes_back_in_utf_8(
    tmp_path: Path,
) -> None:
    """Its missing cells stay marked."""
    generator = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "größe": generator.normal(170.0, 9.0, 90).round(1),
            "town": generator.choice(["Köln", "Fürth", "?"], 90),
            "active": generator.choice(["yes", "no"], 90),
        }
    )
    table.to_csv(tmp_path / "people.csv", index=False, encoding="cp1252")
    command = [*DEMO, "--table", "people.csv", "--encoding", "cp1252"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    output = tmp_path / "demo-out" / "people"
    synthetic = read(output / "synthetic.csv")
    assert list(synthetic) == ["größe", "town", "active"]
    assert len(synthetic) == 90
    assert set(synthetic["town"]) <= {"Köln", "Fürth", "?"}
    assert set(synthetic["town"]) >= {"Köln", "Fürth"}
    assert set(synthetic["active"]) <= {"yes", "no"}
    assert len(pd.read_csv(output / "scores.csv")) == 90
    assert (output / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_each_table_has_a_folder_of_its_own_and_finds_it_again(tmp_path: Path) -> None:
    output = tmp_path / "demo-out"
    (output / "service").mkdir(parents=True)  # of the demo without a table
    (output / "job.json").touch()
    names = {
        "orders.csv": "orders",
        "orders.csv.gz": "orders-2",
        "orders.parquet": "orders-3",
        "elsewhere/orders.csv": "orders-4",
        "Größe und Preis 价格.CSV": "Größe und Preis 价格",
        "year.2024.csv": "year.2024",
        "service.csv": "service-2",
        "job.json.csv": "job.json-2",
        "...csv": "table",
        ".csv": "table-2",
        "-x\n'y\".csv": "-x\n'y\"",
    }
    folders = {name: folder_of(tmp_path / name, output) for name in names}
    assert {name: str(folder.relative_to(output)) for name, folder in folders.items()} == names
    assert folders == {name: folder_of(tmp_path / name, output) for name in names}


def test_a_table_that_is_none_is_refused_in_one_line_and_one_of_its_name_has_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCVAE_PRELOAD_TORCH", "false")
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "odd.csv").write_text("a,b\n1,2\n3,4,5\n")
        command = [*DEMO, "--table", f"{name}/odd.csv"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "line 3" in done.stderr
        folder = tmp_path / "demo-out" / ("odd" if name == "x" else "odd-2")
        assert (folder / "service").is_dir()
        (folder / "scores.csv").write_text(name)
    assert (tmp_path / "demo-out" / "odd" / "scores.csv").read_text() == "x"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--encoding", "cp1252"], "--encoding needs --table FILE"),
        (["--encoding", "latin-99"], "--encoding latin-99: unknown encoding"),
    ],
)
def test_an_encoding_of_no_table_or_that_is_none_is_refused_before_anything_is_made(
    tmp_path: Path, options: list[str], told: str
) -> None:
    refused = subprocess.run([*DEMO, *options], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2
    assert told in refused.stderr
    assert not list(tmp_path.iterdir())


def test_make_hands_the_tables_name_on_as_it_is(tmp_path: Path) -> None:
    name = 'it\'s "my" `best` table.csv'
    make = ["make", "-f", ROOT / "Makefile", "-o", ".venv/.installed", "demo", f"TABLE={name}"]
    make.append("ENCODING=mac-roman")
    told = tmp_path / ".venv" / "bin" / "gcvae"
    told.parent.mkdir(parents=True)
    told.write_text('#!/bin/sh\nprintf "%s|" "$@" > told\n')
    told.chmod(0o755)
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "told").read_text() == f"demo|--table|{name}|--encoding|mac-roman|"
