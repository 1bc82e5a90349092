"""How many steps a training run is likely to take yet, although it may stop early.

A run ends soonest when no better bound comes any more, and at last when one always does. What is
expected lies between the two, on a scale of ratios, and nearer to the soonest end the longer there
was no better bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PARTS_OF_AN_ANNEALING = 3
"""After the first of so many an annealing ends that brought nothing better."""
_WEIGHT_OF_THE_SOONEST = 0.45
"""Just after a better bound. Of eleven runs on four tables (three presets), which ended after 0.7
to 2.0 times the steps before annealing, nine were within a factor of two throughout, the others
within 2.2."""
_LATER = 1.5
"""By how much later than expected a bound becomes flat at the latest."""
_BEND = 1.5
"""How slowly staleness counts at first: most bounds that are late still come."""


@dataclass(frozen=True)
class StepsLeft:
    """Steps that a run takes yet: at least, and at most.

    Attributes:
        soonest: If no better bound comes.
        latest: If better ones come.
        staleness: What part of its patience is used up, 0 to 1.
    """

    soonest: float
    latest: float
    staleness: float

    @property
    def expected(self) -> float:
        """A weighted geometric mean of both."""
        soonest, latest = max(self.soonest, 1.0), max(self.latest, 1.0)
        weight = _WEIGHT_OF_THE_SOONEST
        weight += (1.0 - weight) * min(max(self.staleness, 0.0), 1.0) ** _BEND
        log_left = weight * math.log(soonest) + (1.0 - weight) * math.log(latest)
        return math.exp(log_left) if self.latest > 0 else 0.0


def before_annealing(
    *,
    step: int,
    best: int,
    waits_from: int,
    patience: int,
    flat_at: tuple[float, float],
    most: int,
    shares: tuple[float, float],
) -> StepsLeft:
    """Of a run whose learning rate has not begun to fall.

    Args:
        step: Where it is.
        best: The step of its best bound.
        waits_from: The step from which its patience counts.
        patience: Steps without a better bound after which it anneals.
        flat_at: The step at which its bound will have stopped rising, if no better one comes and
            if better ones do; infinite where nothing says so.
        most: Steps after which it anneals in any case.
        shares: Of the steps before it, how long annealing takes after early and after `most` steps.
    """
    early, late = shares
    stop = min(waits_from + patience, flat_at[0], most)
    last = min(_LATER * flat_at[1], most)
    annealing = (late if stop >= most else early) * stop / math.sqrt(PARTS_OF_AN_ANNEALING)
    return StepsLeft(
        soonest=max(stop - step, 0) + annealing,
        latest=max(last - step, 0) + (late if last >= most else early) * last,
        staleness=max((step - waits_from) / patience, (step - best) / max(flat_at[0] - best, 1.0)),
    )


def in_annealing(*, done: int, steps: int, has_better: bool) -> StepsLeft:
    """What is left of at most `steps` of annealing, with or without a better bound so far."""
    least = steps / PARTS_OF_AN_ANNEALING
    if has_better or done >= least:
        return StepsLeft(steps - done, steps - done, 0.0)
    return StepsLeft(least - done, steps - done, done / least)
