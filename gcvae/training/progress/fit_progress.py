"""A fit's progress as one line: a fraction that only grows, and the seconds that are left.

The fraction moves at the pace at which the end comes, d(fraction) / (1 - fraction) = dt / left: so
it grows evenly where the seconds left are right, bends where they are corrected, and is 1 at the
end and not before.
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
"""The fraction up to which a file is read whose rows nobody knows yet."""
_PRIVATE = {"counting": (0.0, 0.02), "estimating": (0.02, 0.4)}
"""The fractions at which the phases of a private table begin and end."""
_MOST = 0.999
"""Before the end."""
_SPEEDS = 0.5, 5.0
"""Least and most seconds for one that was measured, as far as training shows them."""
_PRIOR_WEIGHT = 0.25
"""This share of the finishing counts as done at training's speed before it shows its own."""


@dataclass
class Pace:
    """A fraction that grows from one report to the next, by the seconds that are left."""

    fraction: float = 0.0
    reported_at: float = field(default_factory=lambda: clock())

    def move(self, seconds_left: float) -> float:
        """Returns the fraction now."""
        now = clock()
        passed, self.reported_at = now - self.reported_at, now
        grown = self.fraction + (1.0 - self.fraction) * passed / max(passed + seconds_left, 1e-9)
        self.fraction = max(self.fraction, min(grown, _MOST))
        return self.fraction

    def reach(self, fraction: float) -> None:
        """What is done already: as much as a checkpoint holds."""
        self.fraction = max(self.fraction, min(fraction, _MOST))


@dataclass
class FitProgress:
    """The line of one fit. Without a callback it costs nothing and nobody has it.

    Attributes:
        callback: Takes each report; what it raises ends the fit.
        on_cpu: Training runs where the finishing does, and shows its speed.
    """

    callback: Callable[[Progress], None] | None
    preset: str
    on_cpu: bool = True

    def __post_init__(self) -> None:
        """The clock begins."""
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
        """What training and finishing are likely to take, once the table's size is known."""
        settled = settle(config, n_rows=table.rows, n_columns=table.columns)
        steps = settled.max_steps * (1.0 + 0.5 * settled.annealing)
        self._batch_rows = min(settled.batch_size, table.rows)
        self._step_seconds = step_seconds(self.preset, settled, table)
        self._training_seconds = steps * self._step_seconds
        self._parts = finishing_seconds(self.preset, settled, table, has_hard_rules=has_hard_rules)

    def private(self, phase: str, share: float) -> None:
        """So much of a phase before the preparation is done, in which the table is counted or
        estimated from noisy counts."""
        start, end = _PRIVATE[phase]
        self._pace.reach(start + (end - start) * share)
        self._emit(replace(self._last, phase=phase, fraction=self._pace.fraction))

    def preparing(self, share: float) -> None:
        """So much of the preparation is done."""
        if not self._parts:
            self._pace.reach(_UNKNOWN * share)
            self._emit(replace(self._last, phase="preparing", fraction=self._pace.fraction))
            return
        spent = clock() - self._begun_at
        left = spent * (1.0 - share) / max(share, 1e-3) + self._later_seconds
        self._report(replace(self._last, phase="preparing"), left)

    def training(self, progress: Progress) -> None:
        """Where training is, its fraction and its seconds by its own steps."""
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
        """Training is over; from here on the bounds are those of the best weights."""
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
        """What takes the report of one part of the finishing, which is done at the block's end."""
        if self._last.phase != "finishing":
            self._finishing_from, self._finishing_seconds = clock(), sum(self._parts.values())
            self._done = 0.0
        own = self._parts.pop(name, 0.0)

        def report(share: float) -> None:
            self._report_finishing(self._done + share * own)

        report(0.0)
        yield report
        self._done += own
        report(0.0)

    def end(self) -> None:
        """All is done."""
        self._emit(replace(self._last, fraction=1.0, seconds_left=0.0))

    @property
    def seconds(self) -> float:
        """Since the fit began."""
        return clock() - self._begun_at

    @property
    def _later_seconds(self) -> float:
        return self._training_seconds + sum(self._parts.values())

    def _share_done(self, trained: float) -> float:
        spent = clock() - self._begun_at + trained * self._training_seconds
        left = (1.0 - trained) * self._training_seconds + sum(self._parts.values())
        return spent / max(spent + left, 1e-9)

    def _report_finishing(self, done: float) -> None:
        """Reports by the parts' own speed, as far as they have shown it."""
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
