"""The published protocols: real rows score 0.5, rows without dependence do not, and the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.quality.tables import PROTOCOL_TABLES, load_protocol_table
from gcvae import infer_schema, parse_table

ROOT = Path(__file__).parents[3]
needs_xgboost = pytest.mark.skipif(
    find_spec("xgboost") is None, reason="XGBoost is not installed (extra `protocols`)"
)
if find_spec("xgboost") is not None:
    from benchmarks.protocols import measures


def text_table(n: int, seed: int = 0) -> pd.DataFrame:
    """Numbers, dates, booleans and levels that depend on each other, with missing cells."""
    random = np.random.default_rng(seed)
    height = random.normal(170.0, 10.0, n).round(1)
    days = pd.to_timedelta(np.rint(height), "D")
    frame = pd.DataFrame(
        {
            "height": height,
            "weight": (height - 100 + random.normal(0, 3, n)).round(1),
            "born": (pd.Timestamp("2000-01-01") + days).strftime("%Y-%m-%d"),
            "member": height + random.normal(0, 3, n) > 175.0,
            "club": np.where(height > 170, "red", np.where(height > 165, "blue", "green")),
        }
    ).astype(str)
    return frame.mask(random.random(frame.shape) < 0.02, "")


def run_benchmark(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.protocols", *arguments]
    command += ["-o", str(folder / "results.json"), "--page", str(folder / "protocols.md")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@needs_xgboost
def test_real_rows_are_not_detected_and_permuted_rows_are() -> None:
    train, other = text_table(1_500), text_table(1_500, seed=1)
    schema = infer_schema(train).schema
    typed = [parse_table(part, schema) for part in (train, other)]
    loose = measures.permuted(train, 0)
    assert measures.detection(train, other, schema) < 0.54
    assert measures.detection(train, loose, schema) > 0.95
    assert measures.held_out_detection(*typed, schema, 0) < 0.54
    assert measures.held_out_detection(typed[1], parse_table(loose, schema), schema, 0) > 0.95


@needs_xgboost
def test_columns_are_encoded_as_the_detection_metrics_of_sdmetrics_do() -> None:
    real = pd.DataFrame(
        {
            "n": ["1", "3", ""],
            "b": ["True", "True", ""],
            "k": ["x", "", "y"],
            "d": ["2000-01-01", "2000-01-03", ""],
        }
    )
    made = real[::-1].reset_index(drop=True)
    schema = infer_schema(real, {"columns": [{"name": "d", "kind": "datetime"}]}).schema
    cells, other = measures.encoded(real, made, schema)
    day = pd.Timestamp("2000-01-02").value
    assert cells[:, 0].tolist() == [1, 3, 2]
    assert cells[:, 1].tolist() == [1, 1, 1]
    assert cells[:, 2:5].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert cells[2, 5] == day
    assert (other == cells[::-1]).all()


@needs_xgboost
def test_the_scores_of_a_table_beside_itself_are_perfect_and_fall_without_dependence() -> None:
    train = text_table(800)
    schema = infer_schema(train).schema
    typed, loose = (parse_table(t, schema) for t in (train, measures.permuted(train, 0)))
    for bins_of in ("real", "pooled"):
        assert measures.trend(typed, typed, schema, bins_of) == 1
        assert measures.trend(typed, loose, schema, bins_of) < 0.8
    assert measures.weighted_nmi(typed, typed, schema) == 1
    assert measures.weighted_nmi(typed, loose, schema) < 0.8
    precision, recall = measures.alpha_precision_and_beta_recall(train, train, schema)
    assert precision == pytest.approx(1, abs=0.01)
    assert recall == pytest.approx(1, abs=0.01)
    halves = text_table(800, seed=1), text_table(800, seed=2)
    assert 0.4 < measures.alpha_precision_and_beta_recall(*halves, schema)[1] < 0.6
    assert measures.efficacy(typed, typed, schema, "weight")["r2"] > 0.9
    assert measures.efficacy(loose, typed, schema, "club")["auc"] < 0.6


@needs_xgboost
def test_one_command_measures_a_table_and_writes_results_and_a_page(tmp_path: Path) -> None:
    text_table(400).to_csv(tmp_path / "people.csv", index=False)
    arguments = ("--tables", f"{tmp_path / 'people.csv'}:club", "--preset", "fast")
    done = run_benchmark(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    [run] = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert 0.5 <= run["detection"] < 1
    assert 0.5 <= run["held_out"] < 1
    assert run["versions"]["xgboost"]
    assert run["cost"]["fit"]["cpu_seconds"] > 0
    page = (tmp_path / "protocols.md").read_text()
    assert f"|people, fast|360|{run['detection']:.3f}|" in page
    before = (tmp_path / "results.json").read_bytes()
    assert "seed 0" not in run_benchmark(tmp_path, *arguments).stdout
    assert (tmp_path / "results.json").read_bytes() == before


@needs_xgboost
def test_an_unknown_table_is_refused_in_one_line(tmp_path: Path) -> None:
    done = run_benchmark(tmp_path, "--tables", "nonsense")
    assert done.returncode == 2
    assert "no table 'nonsense', but adult, default" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_xgboost_is_said_before_anything_is_read(tmp_path: Path) -> None:
    if find_spec("xgboost") is not None:
        pytest.skip("XGBoost is installed")
    done = run_benchmark(tmp_path, "--tables", "nonsense")
    assert done.returncode == 2
    assert "XGBoost is not installed; `make bench-protocols`" in done.stderr


def test_the_tables_of_the_protocols_are_split_as_published(data_dir: Path) -> None:
    sizes = {}
    for name in PROTOCOL_TABLES:
        table = load_protocol_table(name, data_dir)
        sizes[name] = len(table.train), len(table.test)
        parse_table(table.test, table.schema)
        levels = [c.name for c in table.schema if c.kind.has_levels]
        assert all(set(table.test[c]) <= set(table.train[c]) for c in levels), name
    assert sizes == {
        "adult": (32_561, 16_281),
        "default": (27_000, 3_000),
        "shoppers": (11_097, 1_233),
        "magic": (17_118, 1_902),
        "beijing": (37_581, 4_176),
        "bank": (40_689, 4_522),
    }
