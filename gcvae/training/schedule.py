"""The learning rate of a training run over its steps, and where the run ends.

The rate rises over the first steps and is held for `max_steps`, or until the held-out bound has
not improved for `patience_steps` (early stopping). Then it falls linearly to zero, over `annealing`
times as many steps as there were until then, or 0.4 times as many of these where patience ended it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gcvae.training.progress.training_progress import Evaluation
from gcvae.training.settings import SettledConfig

_LOOKS_IN_ANNEALING = 6
_WARM_UP_STEPS = 100
_AFTER_PATIENCE = 0.4
"""Share of the annealing that is left of it where patience ended the hold. Where the steps were
used up a full one pays: on Magic .037 and .009 of C2ST and .07 nats over two seeds. Elsewhere 0.4
of it loses nothing (Shoppers, bank, orders, Adult)."""


@dataclass(frozen=True)
class Schedule:
    """Schedule of a run between its first and its last step.

    Attributes:
        step: Updates so far.
        history: Evaluations so far.
        annealing_from: The step at which the learning rate began to fall; None before.
    """

    config: SettledConfig
    step: int
    history: Sequence[Evaluation]
    annealing_from: int | None

    @property
    def best(self) -> Evaluation:
        """The evaluation with the best held-out bound, less the weighted gap to training rows."""
        return max(self.history, key=self._worth)

    def _worth(self, look: Evaluation) -> float:
        """Nats per row: the held-out bound less `gap_weight` times the gap."""
        return look.bound_held_out - self.config.gap_weight * (look.gap or 0.0)

    @property
    def last_step(self) -> int:
        """The step at which the run ends at the latest."""
        start = self.config.max_steps if self.annealing_from is None else self.annealing_from
        return start + self._annealing_steps_after(start)

    @property
    def steps_left(self) -> float:
        """Expected steps to the end.

        Before annealing: the geometric mean of the steps if the bound never improves again, and of
        those if it improves until `max_steps`.
        """
        if self.annealing_from is not None:
            return self.last_step - self.step
        stop = max(self.held_until, self.step)
        soonest = stop + self._annealing_steps_after(stop) - self.step
        return math.sqrt(soonest * (self.last_step - self.step))

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to do."""
        if self.annealing_from is not None:
            return self.step >= self.last_step
        return self.step >= self.held_until

    @property
    def held_until(self) -> int:
        """The step at which the rate begins to fall unless the bound improves: `patience_steps`
        after its last improvement by more than `min_improvement`, or after the divergence has its
        full weight; not before `patience_from`, and at `max_steps` at the latest."""
        config, improved_at, best = self.config, 0, -math.inf
        for look in self.history:
            if self._worth(look) > best + config.min_improvement:
                improved_at, best = look.step, self._worth(look)
        stop = max(improved_at, self.warm_up_steps) + config.patience_steps
        return min(max(stop, config.patience_from), config.max_steps)

    @property
    def warm_up_steps(self) -> int:
        """Steps over which the divergence's weight rises."""
        return round(self.config.kl_warm_up * self.config.max_steps)

    @property
    def look_every_steps(self) -> int:
        """Steps between two evaluations, closer together while annealing."""
        every = self.config.evaluate_every_steps
        if self.annealing_from is None:
            return every
        return max(1, min(every, self.annealing_steps // _LOOKS_IN_ANNEALING))

    @property
    def annealing_steps(self) -> int:
        """Steps over which the learning rate falls."""
        assert self.annealing_from is not None
        return self._annealing_steps_after(self.annealing_from)

    def _annealing_steps_after(self, step: int) -> int:
        is_early = step < self.config.max_steps
        return round(self.config.annealing * step * (_AFTER_PATIENCE if is_early else 1.0))

    @property
    def learning_rate(self) -> float:
        """Factor on the configured learning rate, 0 to 1."""
        share = min(1.0, (self.step + 1) / _WARM_UP_STEPS) if self.config.annealing else 1.0
        if self.annealing_from is not None:
            share *= 1.0 - (self.step - self.annealing_from) / self.annealing_steps
        return share
