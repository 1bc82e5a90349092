"""Confidence intervals and p-values for the results of attacks: AUCs, rates and differences.

Scores, or successes as 0 and 1, of m members have shape (m,), those of n unseen rows (n,).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest, fisher_exact, norm, rankdata

from gcvae.arrays import Numbers

Interval = tuple[float, float]

POWER = 0.8


def area(members: Numbers, unseen: Numbers) -> float:
    """Returns the ROC AUC: P(a member's score is above an unseen row's), where ties count half."""
    ranks = rankdata(np.concatenate([members, unseen]))
    m, n = len(members), len(unseen)
    return float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))


def area_interval(members: Numbers, unseen: Numbers, level: float) -> Interval:
    """Returns the confidence interval of an AUC at a confidence level, such as 0.95, computed on
    the log-odds scale.

    The standard error is DeLong's, but at least 0.5 / (m n), so that it is never 0.

    Source: DeLong, DeLong and Clarke-Pearson 1988; Pepe 2003 for the scale.
    """
    m, n = len(members), len(unseen)
    ranks = rankdata(np.concatenate([members, unseen]))
    of_members = (ranks[:m] - rankdata(members)) / n
    of_unseen = 1.0 - (ranks[m:] - rankdata(unseen)) / m
    variance = of_members.var(ddof=1) / m + of_unseen.var(ddof=1) / n
    half = 0.5 / (m * n)
    found = min(max(area(members, unseen), half), 1.0 - half)
    error = max(math.sqrt(variance), half) / (found * (1.0 - found))
    reach = float(norm.ppf(0.5 + level / 2)) * error
    log_odds = math.log(found / (1.0 - found))
    return float(expit(log_odds - reach)), float(expit(log_odds + reach))


def area_p_value(members: Numbers, unseen: Numbers) -> float:
    """Returns the two-sided p-value of an AUC under the hypothesis of equal score distributions.

    Source: Mann and Whitney 1947, in the normal approximation with its correction for ties.
    """
    m, n = len(members), len(unseen)
    counts = np.unique(np.concatenate([members, unseen]), return_counts=True)[1].astype(float)
    size = m + n
    ties = float((counts**3 - counts).sum()) / (size * (size - 1))
    variance = (size + 1 - ties) / (12 * m * n)
    if variance <= 0:
        return 1.0
    distance = max(abs(area(members, unseen) - 0.5) - 0.5 / (m * n), 0.0)
    return float(2 * norm.sf(distance / math.sqrt(variance)))


def visible_area(n_rows: int, level: float) -> float:
    """Returns the smallest AUC that a test at a confidence level detects with power 0.8, given
    `n_rows` members and as many unseen rows."""
    error = math.sqrt((2 * n_rows + 1) / (12 * n_rows * n_rows))
    found = 0.5 + float(norm.ppf(0.5 + level / 2) + norm.ppf(POWER)) * error
    return min(found, 1.0)


def rate_interval(hits: int, n: int, level: float) -> Interval:
    """Returns the exact confidence interval of hits / n. Source: Clopper and Pearson 1934."""
    found = binomtest(hits, n).proportion_ci(level, method="exact")
    return float(found.low), float(found.high)


def difference_interval(a: Numbers, b: Numbers, level: float) -> Interval:
    """Returns the confidence interval of mean(a) − mean(b), or of a difference of rates.

    The values are treated as rates if all of them are 0 or 1.

    Source: Newcombe 1998, method 10, for rates.
    """
    difference = float(a.mean() - b.mean())
    if not (_are_hits(a) and _are_hits(b)):
        reach = float(norm.ppf(0.5 + level / 2)) * _error_of_difference(a, b)
        return difference - reach, difference + reach
    (low_a, high_a), (low_b, high_b) = (_wilson(int(x.sum()), len(x), level) for x in (a, b))
    low = math.hypot(float(a.mean()) - low_a, high_b - float(b.mean()))
    high = math.hypot(high_a - float(a.mean()), float(b.mean()) - low_b)
    return difference - low, difference + high


def difference_p_value(a: Numbers, b: Numbers) -> float:
    """Returns the two-sided p-value of the hypothesis that a and b have equal means.

    It is Fisher's exact test if all values are 0 or 1, else Welch's with the normal distribution.
    """
    if _are_hits(a) and _are_hits(b):
        hits = [[int(x.sum()), len(x) - int(x.sum())] for x in (a, b)]
        return float(fisher_exact(hits)[1])
    error = _error_of_difference(a, b)
    difference = abs(float(a.mean() - b.mean()))
    if error == 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return float(2 * norm.sf(difference / error))


def _are_hits(values: Numbers) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values after Holm's correction for multiple tests, in the same order.

    Source: Holm 1979.

    >>> holm([0.01, 0.04])
    [0.02, 0.04]
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(factors * np.sort(p_values)).clip(max=1.0)
    return corrected.tolist()


def _error_of_difference(a: Numbers, b: Numbers) -> float:
    return math.sqrt(float(a.var(ddof=1)) / len(a) + float(b.var(ddof=1)) / len(b))


def _wilson(hits: int, n: int, level: float) -> Interval:
    z = float(norm.ppf(0.5 + level / 2))
    middle = (hits + z * z / 2) / (n + z * z)
    reach = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)
