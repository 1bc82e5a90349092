"""When a training run's learning rate falls, and when the run is over: by its held-out bounds.

A run holds its learning rate until the bound has stopped rising or its steps are used up. Steps
are added where it still rises fast. Then the rate falls to zero: soon for a run that is at its
best, unless that brings much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gcvae.training.progress.expected_end import (
    PARTS_OF_AN_ANNEALING,
    StepsLeft,
    before_annealing,
    in_annealing,
)
from gcvae.training.progress.training_progress import Evaluation
from gcvae.training.settings import SettledConfig

_LOOKS_IN_ANNEALING = 6
_ANNEALING_OF_A_RUN_AT_ITS_BEST = 0.25
_STEEP = 0.5
"""Nats a row: a bound that rose by so much over the last half of the steps is given more. Of Magic,
whose bound rises by 0.3, three times the steps give no better rows; tables of sharp dependences,
whose bound rises by 1, gain half a nat."""
_GROWTH = 0.5
"""By this share of the first steps."""
_PAYS = 0.05
"""Nats a row: a short annealing that brought so much in its first part becomes a long one, and a
bound that rose by less over the last half of the steps has stopped rising. As many steps again
would bring no more."""
_WARM_UP_STEPS = 100


@dataclass(frozen=True)
class Schedule:
    """Where a run stands between its first and its last step.

    Attributes:
        step: Updates so far.
        history: Looks at the bounds so far.
        annealing_from: The step at which the learning rate began to fall.
    """

    config: SettledConfig
    step: int
    history: Sequence[Evaluation]
    annealing_from: int | None

    @property
    def best(self) -> Evaluation:
        """The look with the best held-out bound, less what the gap to rows of training weighs."""
        return max(self.history, key=self._worth)

    def _worth(self, look: Evaluation) -> float:
        """Nats a row: where the gap weighs w, a nat that rows of training alone gain costs w."""
        return look.bound_held_out - self.config.gap_weight * (look.gap or 0.0)

    @property
    def most_steps(self) -> int:
        """Steps at most before annealing: more than `max_steps` where the bound still rises fast.

        It is decided whenever the steps are used up, by the looks until then, so that a run that
        continues decides alike.
        """
        first, most = self.config.max_steps, self.config.max_steps
        limit = round(first * self.config.max_extension)
        while most < min(limit, self.step + 1) and self._rise_until(most) >= _STEEP:
            most = min(most + max(1, round(_GROWTH * first)), limit)
        return most

    def _rise_until(self, step: int) -> float:
        """Nats a row by which the best bound rose over the last half of so many steps."""
        looks = [look for look in self.history if look.step <= step]
        early = [self._worth(look) for look in looks if 2 * look.step <= step]
        if not early or looks[-1].step < step:
            return 0.0
        return max(map(self._worth, looks)) - max(early)

    @property
    def last_step(self) -> int:
        """The step at which the run ends at the latest, as far as is known."""
        if self.annealing_from is not None:
            return self.annealing_from + self.annealing_steps
        return self.most_steps + self._annealing_steps_after(self.most_steps)

    @property
    def steps_left(self) -> StepsLeft:
        """How many steps it takes yet, at least and at most."""
        if self.annealing_from is not None:
            return in_annealing(
                done=self.step - self.annealing_from,
                steps=self.annealing_steps,
                has_better=self.best.step > self.annealing_from,
            )
        share = self.config.annealing
        return before_annealing(
            step=self.step,
            best=self.best.step if self.history else 0,
            waits_from=self.waits_from,
            patience=self.config.patience_steps,
            flat_at=self._flat_at,
            most=self.most_steps,
            shares=(share * _ANNEALING_OF_A_RUN_AT_ITS_BEST, share),
        )

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to do."""
        if self.annealing_from is not None:
            is_done = self.step >= self.annealing_from + self.annealing_steps
            return is_done or self.is_annealed_in_vain
        return bool(self.history) and self.is_at_its_best

    @property
    def is_at_its_best(self) -> bool:
        """Whether the held-out bound has stopped rising, or the steps are used up."""
        out_of_patience = self.step - self.waits_from >= self.config.patience_steps
        return self.step >= self.most_steps or out_of_patience or self._is_flat

    @property
    def _is_flat(self) -> bool:
        """Whether a look at this step found that the bound hardly rose over the last half."""
        if not self._can_be_flat or self.step < self.config.patience_from:
            return False
        is_looked_at = bool(self.history) and self.history[-1].step == self.step
        return is_looked_at and self._rise_until(self.step) < _PAYS

    @property
    def _can_be_flat(self) -> bool:
        """Whether it is known of a bound that it rises no more: not while z comes into use late,
        and not without an annealing, which makes good what is missed. Who has patience for all
        steps wants them all."""
        config = self.config
        is_patient = config.patience_steps >= config.max_steps
        return config.annealing > 0.0 and config.kl_warm_up == 0.0 and not is_patient

    @property
    def _flat_at(self) -> tuple[float, float]:
        """The step at which the bound will be flat: if no better one comes, and if it goes on to
        rise, by so much less as the steps are more."""
        if not (self._can_be_flat and self.history):
            return math.inf, math.inf
        last, first = self.history[-1].step, self.config.patience_from
        rise = self._rise_until(last) or math.inf
        rising = max(last * rise / _PAYS, first, self.step)
        return min(max(2 * self.best.step, first, self.step), rising), rising

    @property
    def waits_from(self) -> int:
        """The step from which the patience counts: that of the best bound, or a later one."""
        best = self.best.step if self.history else 0
        return max(best, self.warm_up_steps, self.config.patience_from)

    @property
    def warm_up_steps(self) -> int:
        """Steps over which the divergence's weight rises."""
        return round(self.config.kl_warm_up * self.config.max_steps)

    @property
    def is_annealed_in_vain(self) -> bool:
        """Whether a third of the annealing brought nothing better than the best before it."""
        assert self.annealing_from is not None
        n_steps = self.step - self.annealing_from
        is_long = PARTS_OF_AN_ANNEALING * n_steps >= self.annealing_steps
        return is_long and self.best.step <= self.annealing_from

    @property
    def look_every_steps(self) -> int:
        """Steps between two looks at the held-out bound, closer together while annealing."""
        every = self.config.evaluate_every_steps
        if self.annealing_from is None:
            return every
        short = self._annealing_steps_after(self.annealing_from)
        return max(1, min(every, short // _LOOKS_IN_ANNEALING))

    @property
    def annealing_steps(self) -> int:
        """How long the learning rate falls: shorter once the bound has stopped rising by itself,
        but where the first part of a short fall brings much."""
        assert self.annealing_from is not None
        short = self._annealing_steps_after(self.annealing_from)
        return round(self.config.annealing * self.annealing_from) if self._pays(short) else short

    def _annealing_steps_after(self, step: int) -> int:
        share = self.config.annealing
        if step < self.config.max_steps:
            share *= _ANNEALING_OF_A_RUN_AT_ITS_BEST
        return round(share * step)

    def _pays(self, n_steps: int) -> bool:
        """Whether the first part of an annealing of so many steps brought much."""
        assert self.annealing_from is not None
        first_part = self.annealing_from + n_steps / PARTS_OF_AN_ANNEALING
        looks = [look for look in self.history if look.step <= first_part]
        before = [self._worth(look) for look in looks if look.step <= self.annealing_from]
        return bool(before) and max(map(self._worth, looks)) >= max(before) + _PAYS

    @property
    def learning_rate(self) -> float:
        """Of the rate between rise and fall: it rises over the first steps, and falls to zero."""
        share = min(1.0, (self.step + 1) / _WARM_UP_STEPS) if self.config.annealing else 1.0
        if self.annealing_from is not None:
            share *= 1.0 - (self.step - self.annealing_from) / self.annealing_steps
        return share
