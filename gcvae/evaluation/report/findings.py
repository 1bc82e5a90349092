"""Result of one attack, with its verdict corrected for the number of attacks.

    green   no leak found
    amber   leak: the AUC is above 0.5, and its p-value, corrected by Holm's method, below 0.05
    red     material leak: also, the corrected confidence interval of the AUC begins at 0.55 or more

If an attack succeeds for a share r of the members (training rows) and a share s of the unseen rows,
its AUC is 0.5 + (r - s) / 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gcvae.arrays import Numbers
from gcvae.evaluation.report.intervals import (
    Interval,
    area,
    area_interval,
    area_p_value,
    difference_interval,
    difference_p_value,
    holm,
    rate_interval,
    visible_area,
)
from gcvae.evaluation.report.parts import Verdict

LEVEL = 0.95
MATERIAL = 0.55
_ROWS_FOR_RATE = 1_000
_FALSE_SHARE = 0.01


@dataclass(frozen=True)
class Finding:
    """Result of one attack that tries to distinguish members (training rows) from unseen rows.

    Attributes:
        name: Key of the attack; `label` is its description for readers.
        members: Scores, or successes as 0 and 1, of members. Shape: (a,).
        unseen: Scores, or successes, of unseen rows. Shape: (b,).
        are_scores: Whether these are scores instead of successes.
        counts: Whether the attack contributes to the verdict of the part.
        n_attacks: Number of attacks for which the interval is corrected (Bonferroni).
        p_holm: p-value with Holm's correction for all attacks of the report.
    """

    name: str
    label: str
    members: Numbers
    unseen: Numbers
    are_scores: bool
    counts: bool = True
    n_attacks: int = 1
    p_holm: float = math.nan

    @cached_property
    def area(self) -> float:
        """ROC AUC of the attack; 0.5 is chance."""
        if self.are_scores:
            return area(self.members, self.unseen)
        return 0.5 + float(self.members.mean() - self.unseen.mean()) / 2

    @cached_property
    def p(self) -> float:
        """p-value of the AUC, without correction."""
        test = area_p_value if self.are_scores else difference_p_value
        return test(self.members, self.unseen)

    @cached_property
    def corrected(self) -> Interval:
        """Confidence interval of the AUC, corrected for `n_attacks` attacks."""
        return self._interval(self._level)

    @property
    def n(self) -> int:
        """Number of members, or of unseen rows if they are fewer."""
        return min(len(self.members), len(self.unseen))

    @property
    def visible(self) -> float:
        """Smallest AUC that the attack would have detected with power 0.8."""
        return visible_area(self.n, self._level)

    @property
    def verdict(self) -> Verdict:
        """`green`, `amber` or `red`, from the corrected p-value and confidence interval."""
        if self.p_holm >= 1.0 - LEVEL or self.area <= 0.5:
            return "green"
        return "red" if self.corrected[0] >= MATERIAL else "amber"

    @property
    def is_of_model(self) -> bool:
        """Whether the attack uses the model's scores; False if it uses only synthetic rows."""
        return self.name.startswith("likelihood")

    @property
    def _level(self) -> float:
        return 1.0 - (1.0 - LEVEL) / self.n_attacks

    def _interval(self, level: float) -> Interval:
        if self.are_scores:
            return area_interval(self.members, self.unseen, level)
        low, high = difference_interval(self.members, self.unseen, level)
        return 0.5 + low / 2, 0.5 + high / 2

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as a JSON object, a row of a table in the report."""
        rates = {"rate_members": self.members.mean(), "rate_unseen": self.unseen.mean()}
        return {
            "name": self.name,
            "label": self.label,
            "area": self.area,
            "interval_95": list(self._interval(LEVEL)),
            "interval_corrected": list(self.corrected),
            "p": self.p,
            "p_holm": self.p_holm,
            "rows_of_each_class": self.n,
            "area_that_would_have_been_seen": self.visible,
            "counts": self.counts,
            "verdict": self.verdict,
            **(
                {"at_one_percent": _at_one_percent(self.members, self.unseen)}
                if self.are_scores
                else {name: float(rate) for name, rate in rates.items()}
            ),
        }


def corrected(findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings, corrected for the number of attacks that contribute to the verdict."""
    judged = [f for f in findings if f.counts]
    p_values = iter(holm([f.p for f in judged]))
    return [
        replace(f, n_attacks=len(judged), p_holm=next(p_values))
        if f.counts
        else replace(f, p_holm=f.p)
        for f in findings
    ]


def _at_one_percent(members: Numbers, unseen: Numbers) -> Mapping[str, Any] | None:
    """Returns the true positive rate at 1 % false positives, and the epsilon that it implies.

    The threshold is set on one half of the unseen rows; rates are measured on the other half and
    the members. The result is None if there are fewer than 1,000 members or unseen rows.
    """
    if min(len(members), len(unseen)) < _ROWS_FOR_RATE:
        return None
    half = len(unseen) // 2
    threshold = np.quantile(unseen[:half], 1.0 - _FALSE_SHARE, method="higher")
    true, false = int((members > threshold).sum()), int((unseen[half:] > threshold).sum())
    n, n_false = len(members), len(unseen) - half
    true_interval = rate_interval(true, n, LEVEL)
    false_interval = rate_interval(false, n_false, LEVEL)
    most = rate_interval(n, n, LEVEL)[0], rate_interval(0, n_false, LEVEL)[1]
    return {
        "true_positives": true / n,
        "true_positives_interval": list(true_interval),
        "false_positives": false / n_false,
        "false_positives_interval": list(false_interval),
        "epsilon_at_least": _epsilon(true_interval[0], false_interval[1]),
        "epsilon_that_could_be_shown": _epsilon(*most),
    }


def _epsilon(true: float, false: float) -> float:
    """Returns max(0, log(TPR / FPR)), a lower bound on epsilon in pure differential privacy."""
    return max(0.0, math.log(true / false)) if true > 0 and false > 0 else 0.0
