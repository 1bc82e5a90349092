"""Progress of a fit as one fraction that never falls, with the estimated remaining seconds.

By d(fraction) / (1 - fraction) = dt / seconds_left, the fraction grows evenly while the estimate of
the remaining seconds is right, and changes its speed when the estimate is corrected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from gcvae.progress import Report
from gcvae.training.progress.fit_costs import TableSize, finishing_seconds, step_seconds
from gcvae.training.progress.training_progress import Progress, TrainingResult
from gcvae.training.settings import TrainingConfig, settle

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
        """Updates the fraction by the time since the last update and returns it.

        Args:
            seconds_left: Estimated remaining seconds.
        """
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
        on_cpu: Whether training runs on the CPU, so that its speed predicts that of the later
            steps.
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
        """Reports the progress of a phase of differential privacy, before training.

        Args:
            phase: `counting` or `estimating`.
            share: Finished share of the phase, from 0 to 1.
        """
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
        """Stores the log-likelihood bounds of the best weights, for the progress reports after
        training."""
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
        """Context manager for one step after training, which is complete at the end of the block.

        Args:
            name: Name of the step, a key of `finishing_seconds`.

        Yields:
            Function to call with the finished share of the step, from 0 to 1.
        """
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
        """Reports the progress of the steps after training, corrected by their measured speed.

        `done` is the estimated seconds of the finished work.
        """
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
