"""What one attack found, with its verdict among all attacks of the report.

    leak found      Holm's corrected p-value is below 0.05, and the attack is right more often
    material        and the lower end of the corrected interval is at 0.55 or above
    none found      neither; the area that would have been seen stands beside it

An attack with two rates r (members) and s (unseen rows) counts as the area 0.5 + (r - s) / 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gcvae.arrays import Numbers
from gcvae.evaluation.report.intervals import area_interval, difference_interval, visible_area
from gcvae.evaluation.report.parts import AMBER, GREEN, RED, SHOWN

LEVEL = 0.95
MATERIAL = 0.55


@dataclass(frozen=True)
class Finding:
    """What one attack found.

    Attributes:
        area: 0.5 is chance. Of an attack with two rates 0.5 + (r - s) / 2.
        interval: At 95 %, uncorrected.
        corrected: Bonferroni's, over all attacks of the report.
        p: Uncorrected; `p_holm` is corrected.
        n: Members, and unseen rows.
        counts: Whether it has a part in the verdict.
        more: Other figures of the attack.
    """

    name: str
    label: str
    area: float
    interval: tuple[float, float]
    p: float
    n: int
    samples: tuple[Numbers, Numbers]
    are_scores: bool
    counts: bool = True
    corrected: tuple[float, float] = (math.nan, math.nan)
    p_holm: float = math.nan
    visible: float = math.nan
    more: Mapping[str, Any] | None = None

    @property
    def verdict(self) -> str:
        """By the corrected p-value and the corrected interval."""
        if self.p_holm >= 1.0 - LEVEL or self.area <= 0.5:
            return GREEN
        return RED if self.corrected[0] >= MATERIAL else AMBER

    @property
    def is_of_model(self) -> bool:
        """Whether it takes the model's scores to find it, and not only drawn rows."""
        return self.name.startswith("likelihood")

    @property
    def shown_verdict(self) -> str:
        """The verdict, or that it has none because the finding does not count."""
        return self.verdict if self.counts else SHOWN

    def corrected_for(self, n_attacks: int, p_holm: float) -> Finding:
        """Returns the finding among so many."""
        level = 1.0 - (1.0 - LEVEL) / n_attacks
        return replace(
            self,
            corrected=interval_of(self.samples, self.are_scores, level),
            p_holm=p_holm,
            visible=visible_area(self.n, level),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as a row of the report's table."""
        return {
            "name": self.name,
            "label": self.label,
            "area": self.area,
            "interval_95": list(self.interval),
            "interval_corrected": list(self.corrected),
            "p": self.p,
            "p_holm": self.p_holm,
            "rows_of_each_class": self.n,
            "area_that_would_have_been_seen": self.visible,
            "counts": self.counts,
            "verdict": self.verdict,
            **(self.more or {}),
        }


def interval_of(
    samples: tuple[Numbers, Numbers], are_scores: bool, level: float
) -> tuple[float, float]:
    """Of the area, or of the area that stands for two rates."""
    if are_scores:
        return area_interval(*samples, level)
    low, high = difference_interval(*samples, level)
    return 0.5 + low / 2, 0.5 + high / 2
