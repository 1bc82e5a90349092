"""What a training run leaves beside the weights: its looks at the bounds, and its divergences."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Evaluation:
    """The bounds at one step, nats per row."""

    step: int
    bound_train: float
    bound_held_out: float


@dataclass(frozen=True)
class Divergence:
    """Where a run left the finite numbers, and the step size with which it did."""

    step: int
    learning_rate: float


@dataclass(frozen=True)
class TrainingResult:
    """What training leaves beside the weights."""

    history: tuple[Evaluation, ...]
    best: Evaluation
    n_steps: int
    n_epochs: int
    held_out: Tensor
    """Indices of the rows that decided when to stop. Shape: (n_held_out,)."""
    divergences: tuple[Divergence, ...]
    """Of the runs before this one, each begun anew with a smaller step size."""
