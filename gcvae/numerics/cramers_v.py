"""Cramér's V, a measure of association, of all pairs of columns, after grouping of their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcvae.arrays import Codes, Numbers

MOST_GROUPS = 50
"""Columns with more distinct values are grouped by quantiles."""
N_BINS = 10
_COUNT_BUDGET = 8e8
"""Maximum number of rows counted in contingency tables, summed over all pairs of columns: some
seconds on one core."""


def group(ranks: Numbers) -> Codes:
    """Returns the index of each cell's group: one group for each distinct value of a column, or ten
    quantile bins if it has more than 50 values.

    A value that fills a quantile bin forms a separate group, so that a column of mostly zeros still
    distinguishes zeros from other values. `ranks` are numbers that order the cells. Shape: (n,) ->
    (n,).
    """
    levels, codes = np.unique(ranks, return_inverse=True)
    if len(levels) <= MOST_GROUPS:
        return codes.astype(np.int64)
    quantiles = np.quantile(ranks, np.linspace(0, 1, N_BINS + 1)[1:-1])
    edges, counts = np.unique(quantiles, return_counts=True)
    bins = np.searchsorted(edges, ranks, side="right")
    bins += np.searchsorted(edges[counts > 1], ranks, side="left")
    return np.unique(bins, return_inverse=True)[1]


def cramers_v(groups: Sequence[Codes]) -> Numbers:
    """Returns the bias-corrected Cramér's V of every pair of grouped columns.

    phi^2 = sum_ab O_ab^2 / (R_a C_b) - 1 with O_ab the share of rows in group a of one column and b
    of the other, R_a and C_b the shares of the groups. V = sqrt((phi^2 - (r - 1)(c - 1) / (n - 1))
    / (min(r', c') - 1)), with r and c the numbers of groups and r' and c' their bias-corrected
    values; the subtracted term is the expectation under independence. With very many columns only
    the first rows are counted, to limit the time. Pairs with a column of only one group are NaN.

    Shape: group of each cell, D arrays (n,) -> (D, D).
    Source: Bergsma 2013.
    """
    d = len(groups)
    columns = _first_rows(groups)
    sizes = np.array([column.max(initial=-1) + 1 for column in columns])
    shares = [np.bincount(column) / len(column) for column in columns]
    phi_squared = np.eye(d)
    for i in range(1, d):
        found = _phi_squared(columns[i], columns[:i], shares[i], shares[:i])
        phi_squared[i, :i] = phi_squared[:i, i] = found
    return _corrected(phi_squared, sizes, len(columns[0]) if d else 0)


def _first_rows(groups: Sequence[Codes]) -> list[Codes]:
    """Returns each column's groups in the first rows, as integers from 0 without gaps. At most
    `_COUNT_BUDGET` / (number of columns)^2 rows are used."""
    n_rows = int(_COUNT_BUDGET / max(len(groups), 1) ** 2)
    return [np.unique(column[:n_rows], return_inverse=True)[1] for column in groups]


def _phi_squared(
    column: Codes, others: list[Codes], share: Numbers, other_shares: list[Numbers]
) -> Numbers:
    n, k = len(column), len(share)
    found = np.empty(len(others))
    for j, other in enumerate(others):
        m = len(other_shares[j])
        observed = np.bincount(column * m + other, minlength=k * m).reshape(k, m) / n
        found[j] = (observed**2 / np.outer(share, other_shares[j])).sum() - 1.0
    return found


def _corrected(phi_squared: Numbers, sizes: Codes, n: int) -> Numbers:
    r, c = sizes[:, None], sizes[None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = np.maximum(0.0, phi_squared - (r - 1) * (c - 1) / (n - 1))
        least = np.minimum(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1.0
        v = np.minimum(1.0, np.sqrt(excess / np.where(least > 0.0, least, np.nan)))
    np.fill_diagonal(v, 1.0)
    return v
