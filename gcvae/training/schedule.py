"""Determines the learning rate at each step of a training run, and when the run ends.

The rate rises over the first steps and is then constant until `max_steps`, or until the bound on
held-out rows has not improved for `patience_steps` (early stopping). Then it falls linearly to zero
(annealing). This takes `annealing` times the steps so far or, after early stopping, 0.4 times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gcvae.training.settings import SettledConfig

_EVALUATIONS_IN_ANNEALING = 6
_WARM_UP_STEPS = 100
_ANNEALING_AFTER_PATIENCE = 0.4
"""Factor on the annealing steps after early stopping. On Shoppers, bank, orders and Adult, quality
with 0.4 was as good as with 1. If `max_steps` ends the constant phase, a factor of 1 is better: on
Magic, by .037 and .009 in C2ST (two seeds) and .07 nats per row."""


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
class Schedule:
    """Learning rate and stopping rule of a training run, at one step.

    Attributes:
        config: Resolved settings.
        step: Number of updates so far.
        history: Evaluations so far.
        annealing_from: Step at which the learning rate began to fall; None while it has not.
    """

    config: SettledConfig
    step: int
    history: Sequence[Evaluation]
    annealing_from: int | None

    @property
    def best(self) -> Evaluation:
        """Evaluation with the best objective on held-out rows."""
        return max(self.history, key=self._objective)

    def _objective(self, evaluation: Evaluation) -> float:
        return evaluation.bound_held_out - self.config.gap_weight * (evaluation.gap or 0.0)

    @property
    def last_step(self) -> int:
        """Step at which the run ends at the latest."""
        start = self.config.max_steps if self.annealing_from is None else self.annealing_from
        return start + self._annealing_steps_after(start)

    @property
    def steps_left(self) -> float:
        """Expected number of remaining steps. Before annealing, it is the geometric mean of two
        numbers: the remaining steps if the held-out bound never improves again, and those if it
        improves until `max_steps`."""
        if self.annealing_from is not None:
            return self.last_step - self.step
        stop = max(self.planned_annealing_start, self.step)
        soonest = stop + self._annealing_steps_after(stop) - self.step
        return math.sqrt(soonest * (self.last_step - self.step))

    @property
    def is_over(self) -> bool:
        """Whether the current phase of the run, constant rate or annealing, is complete."""
        if self.annealing_from is not None:
            return self.step >= self.last_step
        return self.step >= self.planned_annealing_start

    @property
    def planned_annealing_start(self) -> int:
        """Step at which the learning rate begins to fall if the held-out bound improves no more.

        It is `patience_steps` after the last improvement by more than `min_improvement`, or after
        the warm-up if that is later; at least `patience_from` and at most `max_steps`.
        """
        config, improved_at, best = self.config, 0, -math.inf
        for evaluation in self.history:
            if self._objective(evaluation) > best + config.min_improvement:
                improved_at, best = evaluation.step, self._objective(evaluation)
        stop = max(improved_at, self.warm_up_steps) + config.patience_steps
        return min(max(stop, config.patience_from), config.max_steps)

    @property
    def warm_up_steps(self) -> int:
        """Number of steps at the start over which the weight of the KL divergence rises to one."""
        return round(self.config.kl_warm_up * self.config.max_steps)

    @property
    def evaluation_interval(self) -> int:
        """Number of steps between two evaluations; smaller while the learning rate falls."""
        every = self.config.evaluate_every_steps
        if self.annealing_from is None:
            return every
        return max(1, min(every, self.annealing_steps // _EVALUATIONS_IN_ANNEALING))

    @property
    def annealing_steps(self) -> int:
        """Number of steps over which the learning rate falls, once it has begun to fall."""
        assert self.annealing_from is not None
        return self._annealing_steps_after(self.annealing_from)

    def _annealing_steps_after(self, step: int) -> int:
        is_early = step < self.config.max_steps
        return round(
            self.config.annealing * step * (_ANNEALING_AFTER_PATIENCE if is_early else 1.0)
        )

    @property
    def learning_rate(self) -> float:
        """Learning rate at this step, as a share of the maximum learning rate, from 0 to 1."""
        share = min(1.0, (self.step + 1) / _WARM_UP_STEPS) if self.config.annealing else 1.0
        if self.annealing_from is not None:
            share *= 1.0 - (self.step - self.annealing_from) / self.annealing_steps
        return share
