"""Progress reports and the result of a training run."""

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
    """Report on the progress of a fit. Attributes that are not known yet are None.

    Attributes:
        phase: `preparing`, `training` or `finishing`; under differential privacy `counting` and
            `estimating` come first.
        fraction: Share of the fit that is done. It never falls, and is 1 only at the end.
        epoch: Number of passes over the training rows so far.
        epochs: Maximum number of passes; training may stop earlier.
        bound_train: Mean evidence lower bound of training rows, nats per row; higher is better.
        bound_held_out: The same for the rows that decide when to stop, which are not trained on.
        rows_per_second: Speed of training.
        seconds_left: Estimated remaining seconds of the whole fit.
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
    """Interface of a training run whose progress is reported: evaluations, steps and epochs."""

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
    """Calls the progress callback of a training run at most every half second.

    The reported fraction, the steps so far divided by the expected number of steps, never falls: if
    the expected number rises, it is constant until the steps have caught up.
    """

    def __init__(self, run: Reported, callback: Callable[[Progress], None] | None) -> None:
        self.run, self.callback = run, callback
        self._fraction, self._n_steps = 0.0, 0

    def start(self) -> None:
        """Starts the clock and reports; call it after a checkpoint was restored."""
        self.started_at = self.reported_at = clock()
        self._report()

    def stepped(self) -> None:
        """Counts a step; reports if half a second has passed or the run is over."""
        self._n_steps += 1
        if self.run.is_over or clock() - self.reported_at >= _REPORT_EVERY_SECONDS:
            self._report()

    def _report(self) -> None:
        if self.callback is None:
            return
        self.reported_at = clock()
        run, n_steps, seconds = self.run, self._n_steps, self.reported_at - self.started_at
        last = run.history[-1] if run.history else None
        left = 0.0 if run.is_over else run.steps_left
        self._fraction = max(self._fraction, run.step / max(run.step + left, 1.0))
        self.callback(
            Progress(
                phase="training",
                fraction=self._fraction,
                epoch=run.epoch,
                epochs=run.n_epochs,
                bound_train=None if last is None else last.bound_train,
                bound_held_out=None if last is None else last.bound_held_out,
                rows_per_second=n_steps * run.batch_size / seconds if n_steps else None,
                seconds_left=left * seconds / n_steps if n_steps else None,
            )
        )


@dataclass(frozen=True)
class Evaluation:
    """Evidence lower bounds at one step of training, in nats per row.

    Attributes:
        step: Number of updates so far.
        bound_train: Mean bound of training minibatches since the last evaluation, with dropout.
        bound_held_out: Mean bound of held-out rows.
        gap: Mean bound of training rows minus that of held-out rows, with the same weights; None if
            the setting `gap_weight` is 0.
    """

    step: int
    bound_train: float
    bound_held_out: float
    gap: float | None = None


@dataclass(frozen=True)
class Divergence:
    """Step at which training diverged, and the learning rate that is made smaller after it."""

    step: int
    learning_rate: float


@dataclass(frozen=True)
class TrainingResult:
    """Result of training, without the weights.

    Attributes:
        history: All evaluations, in order.
        best: Evaluation of the weights that became the model.
        n_steps: Number of updates.
        n_epochs: Number of complete passes over the training rows.
        held_out: Indices of the rows that decided when to stop. Shape: (n_held_out,).
        divergences: Divergences, after each of which training was restarted.
    """

    history: tuple[Evaluation, ...]
    best: Evaluation
    n_steps: int
    n_epochs: int
    held_out: Tensor
    divergences: tuple[Divergence, ...]

    def record(self, config: SettledConfig, seed: int) -> dict[str, Any]:
        """Returns the result, settings and seed as entries of the model file's training record."""
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
