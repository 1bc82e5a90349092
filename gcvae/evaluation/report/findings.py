"""Result of one attack, with its verdict corrected for the number of attacks.

    green   no leak found
    amber   leak: the AUC is above 0.5, and its p-value, corrected by Holm's method, below 0.05
    red     material leak: also, the corrected confidence interval of the AUC begins at 0.55 or more

If an attack succeeds for a share r of the members (training rows) and a share s of the unseen rows,
its AUC is 0.5 + (r - s) / 2.
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
    """Result of one attack that tries to distinguish members (training rows) from unseen rows.

    Attributes:
        name: Key of the attack.
        label: Description of the attack for readers of the report.
        area: ROC AUC of the attack; 0.5 is chance.
        interval: 95 % confidence interval of the AUC, without correction.
        p: p-value of the AUC, without correction.
        n: Number of members, or of unseen rows if they are fewer.
        samples: Scores, or successes as 0 and 1, of a members and b unseen rows. Shape: (a,), (b,).
        are_scores: Whether `samples` contains scores instead of successes.
        counts: Whether the attack contributes to the verdict of the part.
        corrected: Confidence interval with Bonferroni's correction for all attacks of the report;
            NaN until `corrected_for` sets it, like `p_holm` and `visible`.
        p_holm: p-value with Holm's correction.
        visible: Smallest AUC that the attack would have detected with power 0.8.
        more: Further results of the attack as JSON.
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
        """`green`, `amber` or `red`, from the corrected p-value and confidence interval."""
        if self.p_holm >= 1.0 - LEVEL or self.area <= 0.5:
            return GREEN
        return RED if self.corrected[0] >= MATERIAL else AMBER

    @property
    def is_of_model(self) -> bool:
        """Whether the attack uses the model's scores; False if it uses only synthetic rows."""
        return self.name.startswith("likelihood")

    @property
    def shown_verdict(self) -> str:
        """The verdict; `shown` if the attack does not contribute to the part's verdict."""
        return self.verdict if self.counts else SHOWN

    def corrected_for(self, n_attacks: int, p_holm: float) -> Finding:
        """Returns the finding with its interval corrected for `n_attacks` attacks.

        Args:
            n_attacks: Number of attacks that contribute to the verdict.
            p_holm: p-value after Holm's correction.
        """
        level = 1.0 - (1.0 - LEVEL) / n_attacks
        return replace(
            self,
            corrected=interval_of(self.samples, self.are_scores, level),
            p_holm=p_holm,
            visible=visible_area(self.n, level),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as a JSON object, a row of a table in the report."""
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
    """Returns the confidence interval of an attack's AUC.

    Args:
        samples: Scores, or successes as 0 and 1, of a members and b unseen rows. Shape: (a,), (b,).
        are_scores: Whether `samples` contains scores instead of successes.
        level: Confidence level, such as 0.95.
    """
    if are_scores:
        return area_interval(*samples, level)
    low, high = difference_interval(*samples, level)
    return 0.5 + low / 2, 0.5 + high / 2
