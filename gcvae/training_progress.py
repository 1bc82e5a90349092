"""Where a fit stands, and when that is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gcvae.training_result import Evaluation

_REPORT_EVERY_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """Where a fit stands. Bounds are in nats per row; a field is None before it is known."""

    phase: str
    fraction: float
    epoch: int
    epochs: int
    bound_train: float | None = None
    bound_held_out: float | None = None
    rows_per_second: float | None = None
    seconds_left: float | None = None


class Reported(Protocol):
    """A training run, as its reports see it."""

    step: int
    batch_size: int

    @property
    def history(self) -> Sequence[Evaluation]: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def last_step(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def n_epochs(self) -> int: ...


class Reporter:
    """Calls the progress callback at most every half second."""

    def __init__(self, run: Reported, callback: Callable[[Progress], None] | None) -> None:
        self.run, self.callback = run, callback

    def start(self) -> None:
        """The clock begins where the run does, after what a checkpoint had already done."""
        self.started_at = self.reported_at = time.monotonic()
        self.first_step = self.run.step
        self._report()

    def report_if_due(self) -> None:
        """Reports if the interval has passed or the run is over."""
        if self.run.is_over or time.monotonic() - self.reported_at >= _REPORT_EVERY_SECONDS:
            self._report()

    def _report(self) -> None:
        if self.callback is None:
            return
        self.reported_at = time.monotonic()
        self.callback(Progress(**self._state()))

    def _state(self) -> dict[str, Any]:
        run = self.run
        seconds = self.reported_at - self.started_at
        n_steps = run.step - self.first_step
        last = run.history[-1] if run.history else None
        steps_left = 0 if run.is_over else run.last_step - run.step
        return {
            "phase": "training",
            "fraction": 1.0 if run.is_over else min(1.0, run.step / run.last_step),
            "epoch": run.epoch,
            "epochs": run.n_epochs,
            "bound_train": None if last is None else last.bound_train,
            "bound_held_out": None if last is None else last.bound_held_out,
            "rows_per_second": n_steps * run.batch_size / seconds if n_steps else None,
            "seconds_left": steps_left * seconds / n_steps if n_steps else None,
        }
