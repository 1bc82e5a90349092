"""Result of one attack, with its verdict corrected for the number of attacks.

    leak found      Holm's corrected p-value is below 0.05, and the attack is better than chance
    material        and the lower end of the corrected interval is at 0.55 or above
    none found      neither; the detectable AUC is stated

An attack with two rates r (members) and s (unseen rows) counts as the AUC 0.5 + (r - s) / 2.
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
    """Result of one attack.

    Attributes:
        name: Key of the attack.
        label: Label for readers.
        area: AUC; 0.5 is chance. For an attack with two rates 0.5 + (r - s) / 2.
        interval: Uncorrected 95 % interval.
        corrected: Bonferroni interval, over all attacks of the report.
        p: Uncorrected p-value; `p_holm` is corrected.
        n: Number of members, and of unseen rows.
        counts: Whether the attack counts towards the verdict.
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
        """Verdict by corrected p-value and interval."""
        if self.p_holm >= 1.0 - LEVEL or self.area <= 0.5:
            return GREEN
        return RED if self.corrected[0] >= MATERIAL else AMBER

    @property
    def is_of_model(self) -> bool:
        """Whether the attack needs the model's scores."""
        return self.name.startswith("likelihood")

    @property
    def shown_verdict(self) -> str:
        """The verdict, or `shown` if the attack does not count."""
        return self.verdict if self.counts else SHOWN

    def corrected_for(self, n_attacks: int, p_holm: float) -> Finding:
        """Returns the finding corrected for `n_attacks` attacks."""
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
    """Returns the interval of an AUC, or of the AUC that two rates correspond to."""
    if are_scores:
        return area_interval(*samples, level)
    low, high = difference_interval(*samples, level)
    return 0.5 + low / 2, 0.5 + high / 2
