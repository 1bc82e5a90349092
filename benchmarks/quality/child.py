"""The process that fits and samples one model: `python -m benchmarks.quality.child FOLDER`.

Reads `task.json` and `train.pickle` (and `score.pickle`) of the folder; writes `sample.pickle` and
`outcome.json`. A process of its own, so that its CPU time and its memory are the model's alone.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from benchmarks.quality.models import Model, make_model
from benchmarks.quality.results import peak_bytes
from gcvae.schema.columns import TableSchema

Result = TypeVar("Result")


@dataclass(frozen=True)
class Task:
    """What the process is to do.

    Attributes:
        model: Its name.
        settings: Of a gcvae preset, in the place of its own.
        seed: Of the fit and of the sample.
        n_rows: Rows to sample.
        n_speed_rows: Rows to sample once more, for the clock; 0 for not.
        schema: The schema document.
    """

    model: str
    settings: dict[str, Any]
    seed: int
    n_rows: int
    n_speed_rows: int
    schema: dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """What a step took: CPU seconds of the process, its threads and its ended children."""

    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True)
class Outcome:
    """What the process measured.

    Attributes:
        fit: Cost of the fit; imports are not in it.
        rows_per_second: Of CPU time, while sampling.
        peak_bytes: Largest resident memory, of the whole process and all steps.
        nats_per_row: Mean of −log P(row) over the rows to score; None without scores.
        nats_standard_error: Of that mean.
        n_impossible_rows: Rows that scored −∞; they are in no mean.
    """

    fit: Cost
    rows_per_second: float
    peak_bytes: int
    nats_per_row: float | None
    nats_standard_error: float | None
    n_impossible_rows: int


def run_task(folder: Path) -> None:
    """Does the folder's task."""
    task = Task(**json.loads((folder / "task.json").read_text()))
    schema = TableSchema.from_json(task.schema)
    train: pd.DataFrame = pd.read_pickle(folder / "train.pickle")
    model = make_model(task.model, task.seed, task.settings)
    _, fit = _timed(lambda: model.fit(train, schema))
    sample, sampling = _timed(lambda: model.sample(task.n_rows, task.seed))
    sample.to_pickle(folder / "sample.pickle")
    n_timed = task.n_rows
    if task.n_speed_rows:
        n_timed = task.n_speed_rows
        _, sampling = _timed(lambda: model.sample(n_timed, task.seed + 1))
    peak = peak_bytes()
    nats, standard_error, n_impossible = _score(model, folder / "score.pickle")
    outcome = Outcome(
        fit=fit,
        rows_per_second=n_timed / max(sampling.cpu_seconds, 1e-3),
        peak_bytes=peak,
        nats_per_row=nats,
        nats_standard_error=standard_error,
        n_impossible_rows=n_impossible,
    )
    (folder / "outcome.json").write_text(json.dumps(asdict(outcome)))


def _timed(step: Callable[[], Result]) -> tuple[Result, Cost]:
    cpu, wall = _cpu_seconds(), time.monotonic()
    result = step()
    return result, Cost(_cpu_seconds() - cpu, time.monotonic() - wall)


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _score(model: Model, path: Path) -> tuple[float | None, float | None, int]:
    """Mean nats per row, its standard error, and the number of rows that are impossible."""
    scores = model.log_masses(pd.read_pickle(path)) if path.exists() else None
    if scores is None:
        return None, None, 0
    possible = scores[np.isfinite(scores)]
    if len(possible) < 2:
        return None, None, len(scores)
    standard_error = possible.std(ddof=1) / np.sqrt(len(possible))
    return float(-possible.mean()), float(standard_error), len(scores) - len(possible)


if __name__ == "__main__":
    run_task(Path(sys.argv[1]))
