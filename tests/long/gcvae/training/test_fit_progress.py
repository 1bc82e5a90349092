"""A fit's progress is one line: it only grows, and is 1 at the end."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, TableReader
from gcvae.errors import CancelledError
from gcvae.training import progress as training_progress
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.progress import FitProgress, Progress
from gcvae.training.schedule import Evaluation, Schedule
from gcvae.training.settings import configure, settle

RUNS = json.loads((Path(__file__).parents[1] / "training_runs.json").read_text())
"""Runs of default settings on four real tables: where they looked at the held-out bound, and what
it was. Most end at the last possible step, some much earlier."""
PHASES = ["preparing", "training", "finishing"]


def table(rows: int, numbers: int, levels: int) -> pd.DataFrame:
    """Columns that depend on each other, some cells blank."""
    rng = np.random.default_rng(rows)
    common = rng.normal(size=rows)
    columns: dict[str, Any] = {
        f"zahl {i}": (common + rng.normal(size=rows)).round(3) for i in range(numbers)
    }
    for i in range(levels):
        codes = np.digitize(common + rng.normal(size=rows), [-1, 0, 1])
        columns[f"группа {i}"] = np.array(["a", "b", "c", "d"], dtype=object)[codes]
    frame = pd.DataFrame(columns)
    frame.iloc[::17, 0] = np.nan
    return frame


SHAPES: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "small": (table(300, 4, 2), {}),
    "wide": (table(600, 12, 12), {}),
    "long, under a hard rule": (
        table(12_000, 2, 2),
        {"rules": [{"rule": "`zahl 0` - `zahl 1` <= 9", "keep": "hard"}], "find_rules": True},
    ),
}


def told_by(frame: Any, **choices: Any) -> list[Progress]:
    """What a fit tells."""
    told: list[Progress] = []
    Synthesizer.fit(frame, preset="fast", device="cpu", progress=told.append, **choices)
    return told


def is_one_line(told: list[Progress]) -> None:
    """Asserts that the fraction never falls, and is 1 at the end and not before."""
    fractions = [progress.fraction for progress in told]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0.0
    assert fractions.index(1.0) == len(fractions) - 1
    phases = [progress.phase for progress in told]
    assert list(dict.fromkeys(phases)) == PHASES
    assert phases == sorted(phases, key=PHASES.index)


@pytest.mark.parametrize("name", SHAPES)
def test_the_fraction_of_a_fit_only_grows(name: str) -> None:
    frame, extra = SHAPES[name]
    schema = {"columns": [], **extra}
    rows = frame.astype({c: object for c in frame if frame[c].dtype == object})
    settings = {"max_steps": 150, "patience_steps": 150, "annealing": 0.3}
    told = told_by(rows, schema=schema, settings=settings)
    is_one_line(told)
    assert told[-1].seconds_left == 0.0


def test_the_seconds_left_are_the_time_so_far_for_each_part_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=partial(next, iter(np.arange(60.0))))
    monkeypatch.setattr(training_progress, "time", clock)
    told: list[Progress] = []
    line = FitProgress(told.append)
    for share in (0.5, 1.0):
        line.preparing(share)
    for share in (0.0, 0.25, 0.5, 1.0):
        line.training(Progress("training", share))
    for name in ("prior", "calibration", "acceptance", "scores", "map"):
        with line.finishing(name) as report:
            report(0.5)
    line.end()
    is_one_line(told)
    for seconds, progress in enumerate(told[1:], 1):
        fraction = progress.fraction
        assert progress.seconds_left == pytest.approx(seconds * (1.0 - fraction) / fraction)


def test_the_seconds_left_of_a_resumed_run_leave_out_what_was_done_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=partial(next, iter(np.arange(60.0))))
    monkeypatch.setattr(training_progress, "time", clock)
    left: list[float | None] = []
    for first in (0.0, 0.5):
        told: list[Progress] = []
        clock.monotonic = partial(next, iter(np.arange(60.0)))
        line = FitProgress(told.append)
        line.preparing(1.0)
        line.training(Progress("training", first))
        line.training(Progress("training", 0.75))
        left.append(told[-1].seconds_left)
    assert left[0] is not None
    assert left[1] is not None
    assert left[1] > 2.0 * left[0]


def test_the_finishing_moves_too_and_can_be_cancelled() -> None:
    told = told_by(SHAPES["small"][0], settings={"max_steps": 30})
    finishing = [progress for progress in told if progress.phase == "finishing"]
    assert len({progress.fraction for progress in finishing}) > 8
    assert finishing[0].fraction < finishing[-2].fraction < 1.0
    assert all(progress.bound_held_out is not None for progress in finishing)

    def stop(progress: Progress) -> None:
        if progress.phase == "finishing" and progress.fraction > finishing[2].fraction:
            raise CancelledError

    with pytest.raises(CancelledError):
        Synthesizer.fit(
            SHAPES["small"][0], preset="fast", settings={"max_steps": 30}, progress=stop
        )


def test_a_file_is_prepared_on_the_same_line(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    SHAPES["long, under a hard rule"][0].to_csv(path, index=False)
    told = told_by(TableReader(path), settings={"max_steps": 10})
    is_one_line(told)


class _Checkpoints(CheckpointStore):
    """Keeps a run's checkpoint in memory."""

    interval_seconds = 0.0
    data: bytes | None = None

    def load(self) -> bytes | None:
        return self.data

    def save(self, data: bytes) -> None:
        self.data = data


@pytest.mark.slow
def test_a_run_that_continues_begins_where_its_checkpoint_is() -> None:
    store, frame = _Checkpoints(), SHAPES["small"][0]
    settings = {"max_steps": 800, "patience_steps": 800, "annealing": 0.0}
    told: list[Progress] = []

    def stop(progress: Progress) -> None:
        told.append(progress)
        if progress.phase == "training" and progress.fraction > 0.3:
            raise CancelledError

    for _ in range(2):
        with pytest.raises(CancelledError):
            Synthesizer.fit(
                frame, preset="fast", settings=settings, progress=stop, checkpoints=store
            )
    stopped_at = next(i for i, p in enumerate(told) if p.fraction > 0.3)
    again = told[stopped_at + 1 :]
    assert [p.phase for p in again][-1] == "training"
    resumed = next(p for p in again if p.phase == "training")
    assert resumed.epoch > 0.8 * told[stopped_at].epoch > 0


def said_by_real(run: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Expected by real steps left, of a stored run from a fifth of its way on.

    What follows on training takes as long as a fifth of the steps before annealing, as it does on
    these tables.
    """
    config = settle(configure("default", run["settings"]), n_rows=10_000, n_columns=10)
    looks = [Evaluation(at, bound, bound) for at, bound in run["bounds"]]
    finishing, end, annealing_from = 0.2 * config.max_steps, run["steps"], None
    ratios = []
    for step in range(end):
        schedule = Schedule(config, step, [x for x in looks if x.step <= step], annealing_from)
        if annealing_from is None and schedule.is_over:
            annealing_from = step
            schedule = replace(schedule, annealing_from=step)
        if step >= 0.2 * (end + finishing):
            said = schedule.steps_left + finishing
            ratios.append(said / (end - step + finishing))
    assert annealing_from is not None
    return np.array(ratios)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['table']} {run['preset']}")
def test_the_end_of_a_real_run_is_expected_within_a_factor_of_two(run: dict[str, Any]) -> None:
    """Nearly: of two runs with the same bounds so far one may end soon and the other late."""
    ratios = said_by_real(run)
    assert ((ratios >= 0.5) & (ratios <= 2.0)).mean() > 0.9
    assert 1 / 2.2 <= ratios.min() <= ratios.max() <= 2.2
