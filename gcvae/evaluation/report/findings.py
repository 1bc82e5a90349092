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
FALSE_POSITIVE_RATES = 0.1, 0.01, 0.001
"""False positive rates at which the true positive rates of attacks are measured."""


@dataclass(frozen=True)
class Finding:
    """Result of one attack that tries to distinguish members (training rows) from unseen rows.

    Attributes:
        name: Key of the attack; `label` is its description for readers.
        members: Scores of members, or successes as 0 and 1. Shape: (a,).
        unseen: Scores of unseen rows, or successes as 0 and 1. Shape: (b,).
        are_scores: Whether `members` and `unseen` are scores; False for successes.
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
    def detectable_auc(self) -> float:
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
            "area_that_would_have_been_seen": self.detectable_auc,
            "counts": self.counts,
            "verdict": self.verdict,
            **({} if self.are_scores else {name: float(rate) for name, rate in rates.items()}),
            "true_positive_rates": [self._true_positive_rate(x) for x in FALSE_POSITIVE_RATES],
        }

    def true_positives(self, false_rate: float) -> int | None:
        """Returns the number of members above the threshold of a false positive rate.

        The threshold is the lowest score that at most a share `false_rate` of the unseen rows
        exceeds. None if there are too few rows to measure this rate: fewer than 1 / `false_rate`
        members or unseen rows.
        """
        if false_rate * self.n < 1.0:
            return None
        threshold = np.sort(self.unseen)[-1 - math.floor(false_rate * len(self.unseen))]
        return int((self.members > threshold).sum())

    def _true_positive_rate(self, false_rate: float) -> dict[str, Any]:
        """Returns a JSON object with the true positive rate at a false positive rate, and its exact
        confidence interval, corrected for `n_attacks` attacks. Both are None if not measurable."""
        hits, n = self.true_positives(false_rate), len(self.members)
        return {
            "false_positive_rate": false_rate,
            "rate": None if hits is None else hits / n,
            "interval": None if hits is None else list(rate_interval(hits, n, self._level)),
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


def bound_on_epsilon(
    findings: Sequence[Finding], promise: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Returns a lower bound on the epsilon of training that the attacks prove, as a JSON object.

    Under (epsilon, delta)-differential privacy, every attack has a true positive rate of at most
    exp(epsilon) FPR + delta. The bound is the largest log((TPR - delta) / FPR) over all attacks and
    all of `FALSE_POSITIVE_RATES`, with the lower confidence limit of TPR and the upper limit of
    FPR. The limits are those of Clopper and Pearson. The threshold of an attack is one of the
    scores of the unseen rows. The FPR of such a threshold has a beta distribution, from which its
    exact upper limit is computed. The limits hold for all attacks and rates together with
    confidence 95 % (Bonferroni), if the results of an attack on different rows are independent.

    Args:
        findings: Results of attacks; those that do not contribute to the verdict are left out.
        promise: Guarantee with the members `epsilon` and `delta`; without it (None), delta is 0.

    Returns:
        `at_least`, the bound; `attack` and `false_positive_rate`, with which it was found;
        `could_show`, the bound that an attack without errors on as many rows would give;
        `confidence`; `delta`; and `promised`, the epsilon of the guarantee, None without one. The
        result itself is None if no attack contributes to the verdict.

    Source: Kairouz, Oh and Viswanath (2015) for the inequality; Jagielski, Ullman and Oprea,
    Auditing Differentially Private Machine Learning (2020) for the bound. Rows of one training are
    only approximately independent; see Steinke, Nasr and Jagielski (2023).
    """
    judged = [f for f in findings if f.counts]
    if not judged:
        return None
    delta = promise["delta"] if promise else 0.0
    level = 1.0 - (1.0 - LEVEL) / (len(judged) * len(FALSE_POSITIVE_RATES))
    bounds = []
    for finding in judged:
        m, n = len(finding.members), len(finding.unseen)
        for rate in FALSE_POSITIVE_RATES:
            hits = finding.true_positives(rate)
            if hits is not None:
                least, most = (rate_interval(k, m, level)[0] - delta for k in (hits, m))
                false = rate_interval(math.floor(rate * n), n, level)[1]
                shown = _log_ratio(least, false), _log_ratio(most, false)
                bounds.append((*shown, finding.name, rate))
    at_least, _, attack, rate = max(bounds)
    return {
        "at_least": at_least,
        "attack": attack if at_least else None,
        "false_positive_rate": rate if at_least else None,
        "could_show": max(bound[1] for bound in bounds),
        "confidence": LEVEL,
        "delta": delta,
        "promised": promise["epsilon"] if promise else None,
    }


def _log_ratio(true: float, false: float) -> float:
    return max(0.0, math.log(true / false)) if true > 0 else 0.0
