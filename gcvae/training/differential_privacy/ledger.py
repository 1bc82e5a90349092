"""Privacy ledger: the queries of a table and the privacy cost of each.

The costs rho of zero-concentrated differential privacy (rho-zCDP) add up. Neighbouring tables
differ by one row, added or removed.

Sources: Bun and Steinke (2016); Canonne, Kamath and Steinke (2020), Proposition 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Mask, Numbers
from gcvae.training.differential_privacy.noise import discrete_gaussians

_ORDERS: Numbers = 1.0 + np.exp(np.linspace(math.log(1e-4), math.log(1e5), 4_000))
"""Orders alpha of the Renyi divergences over which conversions minimise."""
_RHO_UNIT = 10**9
_VARIANCE_UNIT = 64
_ATTACK_POINTS = 1_001


def delta_of(rho: float, epsilon: float) -> float:
    """Returns the delta for which a mechanism with zero-concentrated differential privacy (zCDP) of
    cost rho is (epsilon, delta)-differentially private.

    delta = min over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) (1 - 1/a)^a
    """
    a = _ORDERS
    logs = (a - 1) * (a * rho - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    return float(min(1.0, np.exp(logs.min())))


def rho_of(epsilon: float, delta: float) -> Fraction:
    """Returns the largest rho for which zero-concentrated differential privacy (rho-zCDP) implies
    (epsilon, delta)-differential privacy.

    It is rounded down to billionths.

    >>> float(rho_of(3.0, 0.9e-6)) > float(rho_of(1.0, 0.9e-6)) > 0
    True
    """
    low, high = 0.0, epsilon + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return Fraction(math.floor(low * _RHO_UNIT), _RHO_UNIT)


def epsilon_of(rho: float, delta: float) -> float:
    """Returns the least epsilon for which zero-concentrated differential privacy (rho-zCDP) implies
    (epsilon, delta)-differential privacy.

    Its relative error is at most one in a million.
    """
    a = _ORDERS
    found = a * rho + (a * np.log1p(-1 / a) - np.log(a - 1) - math.log(delta)) / (a - 1)
    return float(max(0.0, found.min()))


def variance_of(rho: Fraction) -> Fraction:
    """Returns the variance of the noise with which a count has a privacy cost of at most rho (of
    zero-concentrated differential privacy): 1/(2 rho), rounded up.

    >>> variance_of(Fraction(1, 3))
    Fraction(3, 2)
    """
    return Fraction(math.ceil(_VARIANCE_UNIT / (2 * rho)), _VARIANCE_UNIT)


def selection_epsilon(rho: Fraction) -> Fraction:
    """Returns the epsilon with which the exponential mechanism has a privacy cost of at most rho
    (of zero-concentrated differential privacy): sqrt(8 rho), rounded down."""
    return Fraction(math.isqrt(math.floor(8 * rho * 2**40)), 2**20)


@dataclass(frozen=True)
class Entry:
    """One query of a private table and its privacy cost, as an entry of the ledger.

    Attributes:
        what: What was measured: "bins", "one-way", "selection", "pair", ...
        columns: Names of the columns of the query.
        rho: Privacy cost in rho of zero-concentrated differential privacy.
        deviation: Standard deviation of the noise, in rows; None if nothing was counted.
        delta: Delta that the query costs in addition to rho.
    """

    what: str
    columns: tuple[str, ...]
    rho: Fraction
    deviation: float | None = None
    delta: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as a JSON-compatible dict."""
        document: dict[str, Any] = {
            "what": self.what,
            "columns": list(self.columns),
            "rho": float(self.rho),
        }
        if self.deviation is not None:
            document["noise_deviation"] = round(self.deviation, 3)
        return document | ({"delta": self.delta} if self.delta else {})


@dataclass
class Ledger:
    """Records the queries of one table and their privacy costs, and enforces the budget.

    Attributes:
        epsilon: Epsilon of the guarantee.
        delta: Delta of the guarantee.
        threshold_delta: Part of delta that is reserved for the thresholds that discover levels.
        entries: Queries so far.
        rho: Total budget, as rho of zero-concentrated differential privacy.
    """

    epsilon: float
    delta: float
    threshold_delta: float = 0.0
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Computes the total budget rho from epsilon and delta."""
        self.rho = rho_of(self.epsilon, self.delta - self.threshold_delta)

    @property
    def spent(self) -> Fraction:
        """Sum of the privacy costs rho (zero-concentrated differential privacy) of all queries."""
        return sum((entry.rho for entry in self.entries), Fraction(0))

    @property
    def left(self) -> Fraction:
        """Part of the privacy budget rho (zero-concentrated differential privacy) that is not
        spent."""
        return self.rho - self.spent

    def spend(self, entry: Entry) -> None:
        """Records a query, whose cost must not exceed the remaining budget."""
        assert entry.rho > 0, "every answer costs something"
        assert entry.rho <= self.left, "the budget is spent"
        deltas = entry.delta + sum(other.delta for other in self.entries)
        assert deltas <= self.threshold_delta * (1 + 1e-12), "the thresholds' delta is spent"
        self.entries.append(entry)

    def noise(
        self, what: str, columns: tuple[str, ...], n: int, rho: Fraction
    ) -> npt.NDArray[np.int64]:
        """Returns noise for n counts of a histogram and records the cost.

        One row must change at most one of the counts, by one. The caller adds the noise to the
        counts; this method does not read them.

        Args:
            what: What is counted, for the ledger.
            columns: Names of the counted columns.
            n: Number of counts.
            rho: Privacy budget of the counts.

        Shape: (n,).
        """
        variance = variance_of(rho)
        self.spend(Entry(what, columns, 1 / (2 * variance), math.sqrt(variance)))
        return discrete_gaussians(n, variance)

    def to_json(self) -> dict[str, Any]:
        """Returns the ledger as a JSON-compatible dict, for the training record."""
        spent = float(self.spent)
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": "tables that differ by one row, added or removed",
            "rho": float(self.rho),
            "rho_spent": spent,
            "measured": [entry.to_json() for entry in self.entries],
            "attack_ceilings": attack_ceilings(float(self.rho), self.threshold_delta),
        }


def attack_ceilings(rho: float, delta: float = 0.0) -> dict[str, float]:
    """Returns upper bounds on the success of any membership attack, which guesses whether a row is
    in the table.

    Every attack with false positive rate x and true positive rate y satisfies, for every order
    alpha > 1,

        y^alpha x^(1-alpha) + (1-y)^alpha (1-x)^(1-alpha) <= exp((alpha-1) alpha rho),

    and the same inequality with x and y exchanged. Each bound is the largest value for which both
    hold, plus delta.

    Args:
        rho: Privacy cost of all queries, in rho of zero-concentrated differential privacy.
        delta: Delta that the discovery of levels costs in addition to rho.

    Returns:
        A dict with `auc`, the bound on the area under the ROC curve, and
        `true_positives_at_1_percent`, the bound on the true positive rate at a false positive rate
        of 1 %.
    """
    x = np.linspace(0.0, 1.0, _ATTACK_POINTS)[1:-1]
    y = np.append(np.append(0.0, _most_true_positives(x, rho)), 1.0)
    areas = (y[1:] + y[:-1]) / 2 + np.abs(np.diff(y)) / 2  # upper sum, so never an underestimate
    return {
        "auc": round(min(1.0, float(areas.mean()) + delta), 4),
        "true_positives_at_1_percent": round(
            min(1.0, float(_most_true_positives(np.array([0.01]), rho)[0]) + delta), 4
        ),
    }


def _most_true_positives(x: Numbers, rho: float) -> Numbers:
    """Returns the maximum true positive rate of a membership attack at each false positive rate
    (see `attack_ceilings`). Shape: (n,) -> (n,)."""
    orders = _ORDERS[(_ORDERS < 2_000.0) & (_ORDERS > 1.01)][::32, None]
    low, high = x.copy(), np.ones_like(x)
    for _ in range(24):
        middle = (low + high) / 2
        allowed = _is_feasible(x, middle, orders, rho)
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    return high


def _is_feasible(x: Numbers, y: Numbers, orders: Numbers, rho: float) -> Mask:
    with np.errstate(divide="ignore"):
        logs = [np.log(rate) for rate in (x, 1 - x, y, 1 - y)]
    most = (orders - 1) * orders * rho
    there = np.logaddexp(
        orders * logs[2] + (1 - orders) * logs[0], orders * logs[3] + (1 - orders) * logs[1]
    )
    back = np.logaddexp(
        orders * logs[0] + (1 - orders) * logs[2], orders * logs[1] + (1 - orders) * logs[3]
    )
    return np.asarray(((there <= most) & (back <= most)).all(axis=0))
