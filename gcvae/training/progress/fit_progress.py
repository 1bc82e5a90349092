"""Progress of a fit as one fraction that never falls, with the estimated remaining seconds.

By d(fraction) / (1 - fraction) = dt / seconds_left, the fraction grows evenly while the estimate of
the remaining seconds is right, and changes its speed when the estimate is corrected.

The seconds of each step on one CPU core are estimated from the table's size, by coefficients that
`python -m benchmarks.progress` measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from gcvae.progress import Report
from gcvae.sampling.constrained import MEASURED_ROWS
from gcvae.scoring.row_scores import REFERENCE_ROWS
from gcvae.training.calibration import PRIOR_ROWS, rows_drawn
from gcvae.training.costs import coefficients_of
from gcvae.training.progress.training_progress import Progress, TrainingResult
from gcvae.training.settings import SettledConfig, TrainingConfig, settle

clock = time.monotonic
_UNKNOWN = 0.02
"""Fraction of the fit that is reached by reading a file whose number of rows is not known yet."""
_PRIVATE = {"counting": (0.0, 0.02), "estimating": (0.02, 0.4)}
"""Fractions at which the phases of differential privacy begin and end."""
_MOST = 0.999
"""Largest fraction that is reported before the end of the fit."""
_SPEEDS = 0.5, 5.0
"""Smallest and largest ratio of measured to estimated seconds."""
_PRIOR_WEIGHT = 0.25
"""Weight of training's ratio of measured to estimated seconds in the ratio of the later steps, as a
share of the later steps' seconds."""


_STEP = {
    "default": (0.0085, 6.5e-6),
    "fast": (0.0085, 3.5e-6),
    "gcvae": (0.0125, 6.5e-6),
    "paper-gcvae": (0.003, 1.6e-6),
}
"""Seconds per update of the weights, and per cell of a minibatch."""
_DRAWING = {
    "default": (5.0e-6, 1.65e-5),
    "fast": (3.0e-6, 9.0e-6),
    "gcvae": (4.5e-6, 4.5e-6),
    "paper-gcvae": (1.0e-6, 1.0e-6),
}
"""Seconds per generated and calibrated cell: of columns of codes only, and of numbers."""
_SCORING = {"default": 1.2e-4, "fast": 8e-5, "gcvae": 1.0e-3, "paper-gcvae": 4.6e-4}
"""Seconds per scored cell."""
_PRIOR, _MAP = (0.1, 2e-5), 3e-9
"""Seconds to fit a prior, and per row to which it is fitted; seconds per pair of cells compared for
a dependency map."""
_MOST_PAIRS = 2e8


@dataclass(frozen=True)
class TableSize:
    """Size of a table: rows, modelled columns, and those of them that are numbers with a
    density."""

    rows: int
    columns: int
    numbers: int


def step_seconds(preset: str, settled: SettledConfig, table: TableSize) -> float:
    """Returns the estimated seconds of one update of the weights."""
    by_step, by_cell = _STEP[coefficients_of(preset)]
    return by_step + by_cell * min(settled.batch_size, table.rows) * table.columns


def finishing_seconds(
    preset: str, settled: SettledConfig, table: TableSize, *, has_hard_rules: bool
) -> dict[str, float]:
    """Returns the estimated seconds of each step after training, by name in order; 0 for those that
    the settings omit."""
    like, rows = coefficients_of(preset), table.rows
    n_drawn = rows_drawn(rows)
    n_held_out = min(max(1, round(settled.held_out_share * rows)), REFERENCE_ROWS)
    by_code, by_number = _DRAWING[like]
    drawn_row = by_code * (table.columns - table.numbers) + by_number * table.numbers
    parts: Mapping[str, tuple[bool, float]] = {
        "prior": (settled.prior == "mixture", _PRIOR[0] + _PRIOR[1] * min(rows, PRIOR_ROWS)),
        "calibration": (settled.calibration, n_drawn * drawn_row),
        "acceptance": (has_hard_rules, MEASURED_ROWS * drawn_row),
        "scores": (True, _SCORING[like] * n_held_out * table.columns),
        "map": (True, _MAP * min(0.5 * rows**2 * table.columns, _MOST_PAIRS)),
    }
    return {name: seconds if is_done else 0.0 for name, (is_done, seconds) in parts.items()}


@dataclass
class Pace:
    """Finished fraction of a fit, which grows with time according to the remaining seconds.

    Attributes:
        fraction: Fraction, from 0 to 1.
        reported_at: Time of the last update, in seconds of a monotonic clock.
    """

    fraction: float = 0.0
    reported_at: float = field(default_factory=lambda: clock())

    def move(self, seconds_left: float) -> float:
        """Updates the fraction by the time since the last update and returns it."""
        now = clock()
        passed, self.reported_at = now - self.reported_at, now
        grown = self.fraction + (1.0 - self.fraction) * passed / max(passed + seconds_left, 1e-9)
        self.fraction = max(self.fraction, min(grown, _MOST))
        return self.fraction

    def reach(self, fraction: float) -> None:
        """Increases the fraction to at least `fraction`, such as for work done before a restart."""
        self.fraction = max(self.fraction, min(fraction, _MOST))


@dataclass
class FitProgress:
    """Tracks the progress of one fit and reports it to a callback.

    Attributes:
        callback: Function that is called with each report; an exception that it raises ends the
            fit. None for no reports.
        preset: Name of the preset, from which seconds are estimated.
        on_cpu: Whether training runs on the CPU, so that its speed predicts that of later steps.
    """

    callback: Callable[[Progress], None] | None
    preset: str
    on_cpu: bool = True

    def __post_init__(self) -> None:
        """Starts the clock and reports the fraction 0."""
        self._pace = Pace()
        self._begun_at = self._pace.reported_at
        self._last = Progress(phase="preparing", fraction=0.0, epoch=0, epochs=0)
        self._training_seconds, self._step_seconds = 0.0, 0.0
        self._batch_rows = 1
        self._parts: dict[str, float] = {}
        self._speed = 1.0
        self._emit(self._last)

    def plan(
        self, config: TrainingConfig, table: TableSize, *, has_hard_rules: bool = False
    ) -> None:
        """Estimates the seconds of training and of later steps, from the size of the table."""
        settled = settle(config, n_rows=table.rows, n_columns=table.columns)
        steps = settled.max_steps * (1.0 + 0.5 * settled.annealing)
        self._batch_rows = min(settled.batch_size, table.rows)
        self._step_seconds = step_seconds(self.preset, settled, table)
        self._training_seconds = steps * self._step_seconds
        self._parts = finishing_seconds(self.preset, settled, table, has_hard_rules=has_hard_rules)

    def private(self, phase: str, share: float) -> None:
        """Reports the finished share of a phase of differential privacy, `counting` or
        `estimating`."""
        start, end = _PRIVATE[phase]
        self._pace.reach(start + (end - start) * share)
        self._emit(replace(self._last, phase=phase, fraction=self._pace.fraction))

    def preparing(self, share: float) -> None:
        """Reports the progress of the preparation; `share` is its finished share, from 0 to 1."""
        if not self._parts:
            self._pace.reach(_UNKNOWN * share)
            self._emit(replace(self._last, phase="preparing", fraction=self._pace.fraction))
            return
        spent = clock() - self._begun_at
        left = spent * (1.0 - share) / max(share, 1e-3) + self._later_seconds
        self._report(replace(self._last, phase="preparing"), left)

    def training(self, progress: Progress) -> None:
        """Reports the progress of training, and compares its speed with the estimate."""
        if self._last.phase != "training":
            self._pace.reach(self._share_done(progress.fraction))
        left = self._training_seconds * (1.0 - progress.fraction)
        if progress.seconds_left is not None and progress.rows_per_second:
            left = progress.seconds_left
            if self.on_cpu:
                speed = self._batch_rows / progress.rows_per_second / self._step_seconds
                self._speed = min(max(speed, _SPEEDS[0]), _SPEEDS[1])
        self._report(progress, left + self._speed * sum(self._parts.values()))

    def trained(self, result: TrainingResult) -> None:
        """Stores the bounds of the best weights, for the reports after training."""
        best, passes = result.best, result.n_epochs
        self._last = replace(
            self._last,
            epoch=passes,
            epochs=passes,
            bound_train=best.bound_train,
            bound_held_out=best.bound_held_out,
            rows_per_second=None,
        )

    @contextmanager
    def finishing(self, name: str) -> Iterator[Report]:
        """Context manager for the step after training with this name, which is complete at its end.
        Yields a function to call with the finished share of the step."""
        if self._last.phase != "finishing":
            self._finishing_from, self._finishing_seconds = clock(), sum(self._parts.values())
            self._done = 0.0
        expected = self._parts.pop(name, 0.0)

        def report(share: float) -> None:
            self._report_finishing(self._done + share * expected)

        report(0.0)
        yield report
        self._done += expected
        report(0.0)

    def end(self) -> None:
        """Reports that the fit is complete."""
        self._emit(replace(self._last, fraction=1.0, seconds_left=0.0))

    @property
    def seconds(self) -> float:
        """Seconds since the fit began."""
        return clock() - self._begun_at

    @property
    def _later_seconds(self) -> float:
        return self._training_seconds + sum(self._parts.values())

    def _share_done(self, trained: float) -> float:
        spent = clock() - self._begun_at + trained * self._training_seconds
        left = (1.0 - trained) * self._training_seconds + sum(self._parts.values())
        return spent / max(spent + left, 1e-9)

    def _report_finishing(self, done: float) -> None:
        """Reports the progress of the steps after training, of which `done` estimated seconds are
        finished, corrected by their measured speed."""
        whole = self._finishing_seconds
        known, spent = _PRIOR_WEIGHT * whole, clock() - self._finishing_from
        speed = (known * self._speed + spent) / max(known + done, 1e-9)
        self._report(replace(self._last, phase="finishing"), speed * (whole - done))

    def _report(self, progress: Progress, seconds_left: float) -> None:
        fraction = self._pace.move(seconds_left)
        self._emit(replace(progress, fraction=fraction, seconds_left=seconds_left))

    def _emit(self, progress: Progress) -> None:
        self._last = progress
        if self.callback is not None:
            self.callback(progress)
