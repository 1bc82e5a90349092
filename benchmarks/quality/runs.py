"""One run: a model on a table with a seed, fitted, sampled, and measured beside the real rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.quality.child import Task
from benchmarks.quality.measures import dcr_share, exact_copies, floor, utility
from benchmarks.quality.tables import BenchmarkTable
from benchmarks.quality.written_cells import rows_with_known_levels
from gcvae.cells.values import parse_table
from gcvae.evaluation.fidelity import (
    classifier_two_sample_auc,
    shape_error,
    trend_error,
    two_way_tv,
)

_THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS")
_ONE_THREAD = dict.fromkeys(_THREAD_COUNTS, "1")
_STEADY_ROWS = 5_000
"""Small tables repeat the two-sample cross-validation until about so many rows were judged."""
_MOST_REPEATS = 5


class RunFailedError(Exception):
    """The model's process failed; the message is the end of what it said."""


@dataclass(frozen=True)
class RunOptions:
    """How much of a run is measured.

    Attributes:
        n_speed_rows: Rows of a sample for the clock.
        n_score_rows: Test rows to score, at most.
        with_privacy: Fit once more on half of the training rows.
        time_limit_seconds: For each process.
    """

    n_speed_rows: int = 50_000
    n_score_rows: int = 4_000
    with_privacy: bool = True
    time_limit_seconds: float = 7_200.0


def measure_table(table: BenchmarkTable, n_bootstraps: int) -> dict[str, Any]:
    """The figures that belong to a table: its size, the floors, and its real test rows."""
    train, test = _typed(table.train, table), _typed(table.test, table)
    floors = {
        measure.__name__: asdict(floor(train, table.schema, measure, n_bootstraps=n_bootstraps))
        for measure in (shape_error, trend_error, two_way_tv)
    }
    return {
        "rows": len(train),
        "test_rows": len(test),
        "kinds": {column.name: str(column.kind) for column in table.schema},
        "target": table.target,
        "floors": floors,
        "test": _fidelity(table, train, test),
    }


def measure_run(
    table: BenchmarkTable, model: str, seed: int, settings: Mapping[str, Any], options: RunOptions
) -> dict[str, Any]:
    """The figures of one run.

    Raises:
        RunFailedError: The model's process failed or took too long.
    """
    train, test = _typed(table.train, table), _typed(table.test, table)
    scored = rows_with_known_levels(train, test, table.schema)
    random = np.random.default_rng(0)
    chosen = np.sort(random.permutation(len(scored))[: options.n_score_rows])
    task = Task(model, dict(settings), seed, len(train), options.n_speed_rows, _document(table))
    synthetic, outcome = run_child(
        task, table.train, table.test.loc[scored.index[chosen]], options.time_limit_seconds
    )
    typed = _typed(synthetic, table)
    figures = {"cost": outcome} | _fidelity(table, train, typed)
    if table.target is not None:
        answer = utility(train, typed, test, table.schema, table.target)
        figures["utility"] = asdict(answer)
    if options.with_privacy:
        figures["privacy"] = measure_privacy(table, train, task, options)
    return figures


def _fidelity(
    table: BenchmarkTable, train: pd.DataFrame, synthetic: pd.DataFrame
) -> dict[str, Any]:
    shape = shape_error(train, synthetic, table.schema)
    n_repeats = _repeats(train, synthetic)
    auc = classifier_two_sample_auc(train, synthetic, table.schema, n_repeats=n_repeats)
    return {
        "shape": shape.value,
        "shape_columns": dict(shape.each),
        "trend": trend_error(train, synthetic, table.schema).value,
        "two_way_tv": two_way_tv(train, synthetic, table.schema).value,
        "c2st": auc.value,
    }


def _repeats(real: pd.DataFrame, synthetic: pd.DataFrame) -> int:
    n_rows = min(len(real), len(synthetic))
    return int(np.clip(_STEADY_ROWS // (2 * n_rows), 1, _MOST_REPEATS))


def measure_privacy(
    table: BenchmarkTable, train: pd.DataFrame, task: Task, options: RunOptions
) -> dict[str, Any]:
    """Shares of near and of equal rows, of a model of one half of the training rows."""
    order = np.random.default_rng(task.seed).permutation(len(train))
    n = len(train) // 2
    seen, unseen = order[:n], order[n : 2 * n]
    half = Task(task.model, task.settings, task.seed, n, 0, task.schema)
    rows = table.train.iloc[seen].reset_index(drop=True)
    sample, _ = run_child(half, rows, None, options.time_limit_seconds)
    parts = train.iloc[seen], train.iloc[unseen], _typed(sample, table)
    share = dcr_share(*parts, table.schema)
    copies, held_out_copies = exact_copies(*parts, table.schema)
    return {
        "dcr_share": share.value,
        "dcr_standard_error": share.standard_error,
        "exact_copies": copies,
        "held_out_copies": held_out_copies,
    }


def run_child(
    task: Task, train: pd.DataFrame, scored: pd.DataFrame | None, time_limit_seconds: float
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The sample and the outcome of a process of its own, with one thread."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        (folder / "task.json").write_text(json.dumps(asdict(task)))
        train.to_pickle(folder / "train.pickle")
        if scored is not None:
            scored.reset_index(drop=True).to_pickle(folder / "score.pickle")
        command = [sys.executable, "-m", "benchmarks.quality.child", name]
        try:
            done = subprocess.run(
                command,
                env=os.environ | _ONE_THREAD | {"CUDA_VISIBLE_DEVICES": ""},
                cwd=Path(__file__).parents[2],
                capture_output=True,
                text=True,
                timeout=time_limit_seconds,
            )
        except subprocess.TimeoutExpired:
            raise RunFailedError(f"took more than {time_limit_seconds:g} seconds") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            raise RunFailedError(lines[-1] if lines else f"ended with code {done.returncode}")
        outcome: dict[str, Any] = json.loads((folder / "outcome.json").read_text())
        return pd.read_pickle(folder / "sample.pickle"), outcome


def _typed(frame: pd.DataFrame, table: BenchmarkTable) -> pd.DataFrame:
    """The frame's cells as the schema for measuring has them."""
    return parse_table(frame, table.schema)


def _document(table: BenchmarkTable) -> dict[str, Any]:
    return table.schema.to_json()
