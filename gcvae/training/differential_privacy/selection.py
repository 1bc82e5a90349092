"""Selects pairs of columns, and counts the rows of each pair with noise, in rounds.

Each round selects a pair whose counts differ much from those that the estimated distribution of the
rows expects. The round spends a tenth of its budget on the selection and the rest on the counts. If
a round changes the estimate by less than the noise in the counts, the next rounds have four times
its budget.

Source: McKenna, Mullins, Sheldon and Miklau (2022), "AIM: an adaptive and iterative mechanism".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Numbers
from gcvae.training.differential_privacy.counts import BinnedRows
from gcvae.training.differential_privacy.estimate import Estimate, Measured
from gcvae.training.differential_privacy.ledger import Entry, Ledger, selection_epsilon, variance_of
from gcvae.training.differential_privacy.noise import choose

SELECTION_SHARE = Fraction(1, 10)
_ROUNDS_PER_COLUMN = 3
_GROWTH = 4
STEPS_PER_ROUND = 60


@dataclass
class Selection:
    """Improves an estimate of a private table's distribution in rounds: each selects a pair of
    columns, counts it with noise, and fits the estimate again.

    Attributes:
        rows: Real rows, with cells replaced by bins.
        names: Names of the columns.
        pairs: Pairs of column indices that may be counted.
        ledger: Privacy budget and record of its costs.
        estimate: Estimated distribution of the rows, which each round updates.
    """

    rows: BinnedRows
    names: Sequence[str]
    pairs: Sequence[tuple[int, int]]
    ledger: Ledger
    estimate: Estimate

    def run(self, report: Callable[[float], None]) -> None:
        """Selects pairs of columns, and measures the contingency table of each with noise, until
        the privacy budget is spent.

        Args:
            report: Function that is called with the spent share of the budget, from 0 to 1.
        """
        if not self.pairs:
            return
        exact = [self.rows.table(pair) for pair in self.pairs]
        whole = self.ledger.left
        rho = first_round(whole, len(self.names))
        while self.ledger.left > 0:
            left = self.ledger.left
            is_last = left < 2 * rho
            is_useful = self._round(exact, left if is_last else rho)
            if is_last:
                break
            rho = rho if is_useful else min(_GROWTH * rho, self.ledger.left)
            report(float(1 - self.ledger.left / whole))

    def _round(self, exact: Sequence[npt.NDArray[np.int64]], rho: Fraction) -> bool:
        """Selects a pair of columns, counts it with noise and fits the estimate again, with the
        privacy budget `rho`. Returns whether the estimated counts of the pair changed by more than
        the noise. `exact` contains the exact contingency table of each pair."""
        variance = variance_of(rho * (1 - SELECTION_SHARE))
        before = self.estimate.tables(self.pairs)
        chosen = self._chosen(exact, before, variance, rho * SELECTION_SHARE)
        self._measure(chosen, exact[chosen], rho * (1 - SELECTION_SHARE))
        self.estimate.fit(STEPS_PER_ROUND)
        [after] = self.estimate.tables([self.pairs[chosen]])
        moved = float(np.abs(after - before[chosen]).sum())
        return moved > noise_size(variance, after.size)

    def _chosen(
        self,
        exact: Sequence[npt.NDArray[np.int64]],
        estimated: Sequence[Numbers],
        variance: Fraction,
        rho: Fraction,
    ) -> int:
        """Chooses the pair of columns to count, with privacy budget `rho`; returns its index. The
        arguments `exact`, `estimated` and `variance` are those of `round_scores`."""
        epsilon = selection_epsilon(rho)
        columns = tuple(self.names)
        self.ledger.spend(Entry("selection", columns, epsilon * epsilon / 8))
        return choose(round_scores(exact, estimated, variance), epsilon)

    def _measure(self, chosen: int, exact: npt.NDArray[np.int64], rho: Fraction) -> None:
        pair, shape = self.pairs[chosen], exact.shape
        target = [] if self.rows.target is None else [self.rows.target]
        columns = tuple(self.names[j] for j in [*pair, *target])
        what = "triple" if target else "pair"
        noise = self.ledger.noise(what, columns, math.prod(shape), rho).reshape(shape)
        counts, precision = (exact + noise).astype(np.float64), 1 / float(variance_of(rho))
        if pair in self.estimate.measured:
            self.estimate.measured[pair].add(counts, precision)
        else:
            self.estimate.measured[pair] = Measured(pair, counts, precision)


def first_round(rho: Fraction, n_columns: int) -> Fraction:
    """Returns the privacy budget of the first round of noisy counts, given the budget `rho` of all
    rounds together."""
    return rho / max(_ROUNDS_PER_COLUMN * n_columns, 1)


def first_deviation(rho: Fraction, n_columns: int) -> float:
    """Returns the standard deviation of the noise in the counts of the first round, in rows.

    Args:
        rho: Privacy budget of all rounds together.
        n_columns: Number of columns.
    """
    return math.sqrt(variance_of(first_round(rho, n_columns) * (1 - SELECTION_SHARE)))


def round_scores(
    exact: Sequence[npt.NDArray[np.int64]],
    estimated: Sequence[Numbers],
    variance: Fraction,
) -> list[int]:
    """Returns a score for each pair of columns; a pair with a high score is counted next.

    It is the sum of absolute differences between exact and estimated counts, minus the expected sum
    of absolute noise. Scores are integers, and one row changes each by at most one.

    Args:
        exact: Exact contingency table of each pair.
        estimated: Expected contingency table of each pair.
        variance: Variance of the noise in each count.
    """
    return [
        int(np.abs(counts - np.rint(found).astype(np.int64)).sum())
        - math.ceil(noise_size(variance, counts.size))
        for counts, found in zip(exact, estimated, strict=True)
    ]


def noise_size(variance: Fraction, n_cells: int) -> float:
    """Returns the expected sum of absolute noise in n = `n_cells` counts: sqrt(2/pi) sigma n."""
    return math.sqrt(2.0 / math.pi * float(variance)) * n_cells
