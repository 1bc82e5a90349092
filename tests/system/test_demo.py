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

DEMO = [sys.executable, "-m", "gcvae_cli", "demo", "--set", "max_steps=200"]
MAPS = {"dependencies": "total", "dependencies-copula": "expected"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `gcvae demo` was run with its own table."""
    made = tmp_path_factory.mktemp("demo")
    subprocess.run(DEMO, cwd=made, check=True, capture_output=True)
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
    assert np.isfinite(scores.to_numpy()).all()


@pytest.mark.parametrize("name", MAPS)
def test_a_map_is_a_picture_and_a_document(folder: Path, name: str) -> None:
    document = json.loads((folder / f"{name}.json").read_text())
    tau = np.array(document["tau"])
    assert document["kind"] == MAPS[name]
    assert document["columns"] == list(read(folder / "diabetes.csv"))
    np.testing.assert_array_equal(tau, tau.T)
    np.testing.assert_array_equal(np.diag(tau), 1.0)
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


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


def test_any_table_will_do_and_its_missing_cells_stay_marked(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "weight": generator.normal(70.0, 9.0, 90).round(1),
            "job": generator.choice(["smith", "baker", "?"], 90),
            "active": generator.choice(["yes", "no"], 90),
        }
    )
    table.to_csv(tmp_path / "people.csv", index=False)
    command = [*DEMO, "--table", "people.csv", "--output", "results"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    synthetic = read(tmp_path / "results" / "synthetic.csv")
    assert list(synthetic) == ["weight", "job", "active"]
    assert len(synthetic) == 90
    assert set(synthetic["job"]) <= {"smith", "baker", "?"}
    assert set(synthetic["active"]) <= {"yes", "no"}


def test_a_table_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    command = [*DEMO, "--table", "ragged.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "line 3" in done.stderr
