"""Progress of a fit, and when it is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from torch import Tensor

from gcvae.training.settings import SettledConfig

clock = time.monotonic
_REPORT_EVERY_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """Progress of a fit. A field is None before it is known.

    Attributes:
        phase: `preparing`, `training` or `finishing`; under differential privacy `counting` and
            `estimating` come first.
        fraction: The share of the fit that is done: it only grows, and is 1 at the end alone.
        epoch: Passes over the rows so far.
        epochs: Passes at the latest; training may stop earlier.
        bound_train: Nats per row, higher is better.
        bound_held_out: The same, of the rows that decide when to stop.
        rows_per_second: In training.
        seconds_left: Estimated remaining seconds of the whole fit, as far as is known now.
    """

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
    def steps_left(self) -> float: ...
    @property
    def last_step(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def n_epochs(self) -> int: ...


class Reporter:
    """Calls the progress callback at most every half second.

    The fraction is of the steps that the run is expected to take. It never falls: where more steps
    are expected than before, it waits for them.
    """

    def __init__(self, run: Reported, callback: Callable[[Progress], None] | None) -> None:
        self.run, self.callback = run, callback
        self._fraction, self._n_steps = 0.0, 0

    def start(self) -> None:
        """The clock begins where the run does, after what a checkpoint had already done."""
        self.started_at = self.reported_at = clock()
        self._report()

    def stepped(self) -> None:
        """A step is done; reports if the interval has passed or the run is over."""
        self._n_steps += 1
        if self.run.is_over or clock() - self.reported_at >= _REPORT_EVERY_SECONDS:
            self._report()

    def _report(self) -> None:
        if self.callback is None:
            return
        self.reported_at = clock()
        self.callback(Progress(**self._state()))

    def _state(self) -> dict[str, Any]:
        run = self.run
        seconds, n_steps = self.reported_at - self.started_at, self._n_steps
        last = run.history[-1] if run.history else None
        left = 0.0 if run.is_over else run.steps_left
        self._fraction = max(self._fraction, run.step / max(run.step + left, 1.0))
        return {
            "phase": "training",
            "fraction": self._fraction,
            "epoch": run.epoch,
            "epochs": run.n_epochs,
            "bound_train": None if last is None else last.bound_train,
            "bound_held_out": None if last is None else last.bound_held_out,
            "rows_per_second": n_steps * run.batch_size / seconds if n_steps else None,
            "seconds_left": left * seconds / n_steps if n_steps else None,
        }


@dataclass(frozen=True)
class Evaluation:
    """The bounds at one step, nats per row.

    Attributes:
        bound_train: Mean bound of the steps since the last look, with their dropout.
        gap: By how much rows of training have a higher bound than held-out ones, under the same
            weights; None where nothing asks for it.
    """

    step: int
    bound_train: float
    bound_held_out: float
    gap: float | None = None


@dataclass(frozen=True)
class Divergence:
    """Step at which the loss stopped being finite, and the step size there."""

    step: int
    learning_rate: float


@dataclass(frozen=True)
class TrainingResult:
    """Result of training, other than the weights."""

    history: tuple[Evaluation, ...]
    best: Evaluation
    n_steps: int
    n_epochs: int
    held_out: Tensor
    """Indices of the rows that decided when to stop. Shape: (n_held_out,)."""
    divergences: tuple[Divergence, ...]
    """The divergences of earlier runs, each begun anew with a smaller step size."""

    def record(self, config: SettledConfig, seed: int) -> dict[str, Any]:
        """Returns the manifest's record of the training."""
        return {
            "seed": seed,
            "settings": asdict(config),
            "steps": self.n_steps,
            "best_step": self.best.step,
            "bound_train": self.best.bound_train,
            "bound_held_out": self.best.bound_held_out,
            "held_out_rows": len(self.held_out),
            "divergences": [asdict(divergence) for divergence in self.divergences],
            "history": [asdict(evaluation) for evaluation in self.history],
        }
