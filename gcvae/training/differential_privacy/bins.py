"""Divides a column into bins under differential privacy: its levels, or intervals of numbers.

The possible values of a column (levels, numbers or dates) are represented by their indices,
counted from 0. A private tree splits the range of indices from coarse to fine by noisy counts: at
each depth, nodes with many rows are split into eight, down to single values. Each row is in one
node per depth, so one row changes one count of each depth by one. Within a node, rows are assumed
to be evenly spread, except where the counts of its children differ by more than the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gcvae.arrays import Codes, Numbers
from gcvae.schema.columns import Column
from gcvae.schema.kinds import Outcomes
from gcvae.training.differential_privacy.cell_codes import MISSING
from gcvae.training.differential_privacy.declared import ValueLine
from gcvae.training.differential_privacy.ledger import Ledger

MOST_PLAIN = 64
"""Maximum number of values of a column with one bin for each value, without a tree."""
LEAST_BINS, MOST_BINS = 8, 32
"""Minimum and maximum target of a tree for the number of bins of equal counts."""
_CELL_DEVIATIONS = 4.0
"""Target for the mean count in a cell of a two-column table, in standard deviations of noise."""
_BRANCHES = 8
_LEAST_DEVIATIONS = 4.0
"""Minimum count of a node for it to be split, in standard deviations of noise."""
_NOISE_ALONE = 2.0
"""Counts below this number of standard deviations are set to zero, so that empty ranges do not fill
with noise."""


@dataclass(frozen=True)
class Bins:
    """Bins of one column, whose possible values are indexed from 0: bin b consists of the values
    with indices from starts[b] to starts[b + 1] - 1.

    Attributes:
        starts: Index of the first value of each bin, followed by the number of values. The bin for
            missing cells is not included. Shape: (n_bins + 1,).
        parts: Division of each bin into sub-intervals, within which rows are assumed to be evenly
            spread. For each bin, an array with the index of the first value of each sub-interval,
            and an array with the share of the bin's rows in each sub-interval.
        has_missing: Whether there is an additional last bin for missing cells.
    """

    starts: Codes
    parts: tuple[tuple[Codes, Numbers], ...]
    has_missing: bool

    @property
    def n(self) -> int:
        """Number of bins, including the bin of missing cells."""
        return len(self.starts) - 1 + self.has_missing

    def of(self, codes: Codes) -> Codes:
        """Returns the index of the bin that contains each value index; `MISSING` is in the last
        bin.

        Shape: (n,) -> (n,).
        """
        found = np.searchsorted(self.starts, codes, side="right") - 1
        return np.where(codes == MISSING, self.n - 1, found)

    def values(self, bins: Codes, uniform: Numbers) -> Codes:
        """Samples a value index from the bin of each of n rows; -1 for the bin of missing cells.

        Args:
            bins: Bin of each row. Shape: (n,).
            uniform: Uniform noise in [0, 1). For each row, the first number selects a sub-interval
                of the bin, and the second one a value in it. Shape: (n, 2).

        Shape: (n,).
        """
        values = np.full(len(bins), MISSING, dtype=np.int64)
        for b, (starts, shares) in enumerate(self.parts):
            rows = np.flatnonzero(bins == b)
            part = np.searchsorted(np.cumsum(shares)[:-1], uniform[rows, 0], side="right")
            widths = np.diff(np.append(starts, self.starts[b + 1]))[part]
            values[rows] = starts[part] + np.floor(uniform[rows, 1] * widths).astype(np.int64)
        return values


def plain_bins(n: int, has_missing: bool) -> Bins:
    """Returns one bin for each of n values and, with `has_missing`, one for missing cells."""
    starts = np.arange(n + 1)
    return Bins(starts, tuple((starts[i : i + 1], np.ones(1)) for i in range(n)), has_missing)


def n_values(column: Column) -> int:
    """Returns the number of values that the schema allows in a column: levels, or numbers or dates
    between its limits."""
    is_line = column.kind.outcomes is Outcomes.REAL
    return ValueLine.of(column).n if is_line else len(column.typed_levels)


def needs_tree(column: Column) -> bool:
    """Returns whether a column can have more than `MOST_PLAIN` values, so that a tree of noisy
    counts groups them into bins."""
    return column.kind.outcomes is Outcomes.REAL and n_values(column) > MOST_PLAIN


def tree_widths(n: int) -> list[int]:
    """Returns the number of values that a node covers at each depth of a tree over n values, coarse
    to fine.

    The last number is 1.

    >>> tree_widths(100)
    [8, 1]
    """
    widths = [1]
    while -(-n // widths[0]) > MOST_PLAIN:
        widths.insert(0, widths[0] * _BRANCHES)
    return widths


def n_bins(n_rows: float, cell_deviation: float) -> int:
    """Returns the target number of bins of a column, such that counts of pairs of bins exceed their
    noise.

    Args:
        n_rows: Estimated number of rows.
        cell_deviation: Standard deviation of the noise in a count of the two-way table of two
            columns, in rows.

    >>> n_bins(30_000, 30.0), n_bins(30_000, 4.0), n_bins(500, 30.0)
    (16, 32, 8)
    """
    found = math.sqrt(max(n_rows, 0.0) / (_CELL_DEVIATIONS * cell_deviation))
    return min(max(round(found), LEAST_BINS), MOST_BINS)


def tree_bins(
    codes: Codes, column: Column, rho: Fraction, ledger: Ledger, cell_deviation: float
) -> Bins:
    """Returns the bins of a column with many values, from a tree of noisy counts whose privacy cost
    is at most rho.

    Args:
        codes: Value index of each cell, or `MISSING`. Shape: (n,).
        rho: Privacy budget of the tree, in rho of zero-concentrated differential privacy.
        ledger: Record of the privacy costs, to which the tree's is added.
        cell_deviation: Standard deviation of the noise in a count of the two-way table of two
            columns, in rows.
    """
    n = n_values(column)
    widths = tree_widths(n)
    values = np.sort(codes[codes != MISSING])
    nodes = np.arange(0, n, widths[0])
    held: Numbers = np.zeros(0)
    leaves: list[tuple[int, float]] = []
    deviation = math.sqrt(len(widths) / (2 * float(rho)))
    n_wanted, least = LEAST_BINS, 0.0
    for level, width in enumerate(widths):
        noise = ledger.noise("bins", (column.name,), len(nodes), rho / len(widths))
        ends = np.minimum(nodes + width, n)
        exact = np.searchsorted(values, ends) - np.searchsorted(values, nodes)
        counts: Numbers = (exact + noise).astype(np.float64)
        if level == 0:
            n_rows = float(counts.sum())
            n_wanted = n_bins(n_rows, cell_deviation)
            least = max(n_rows / (2 * n_wanted), _LEAST_DEVIATIONS * deviation)
            counts = np.where(counts > _NOISE_ALONE * deviation, counts, 0)
        else:
            counts = within_parents(
                counts, ends - nodes, nodes // widths[level - 1], held, deviation
            )
        is_cut = (counts > least) & (width > 1)
        leaves += list(zip(nodes[~is_cut].tolist(), counts[~is_cut].tolist(), strict=True))
        if not is_cut.any():
            break
        held = counts[is_cut]
        steps = np.arange(0, width, width // _BRANCHES)
        children = (nodes[is_cut, None] + steps).ravel()
        nodes = children[children < n]
    starts = np.array([start for start, _ in sorted(leaves)])
    rows = np.array([float(count) for _, count in sorted(leaves)])
    return _merged(starts, rows, n, n_wanted, column.missing.allowed)


def within_parents(
    counts: Numbers, widths: Codes, parents: Codes, held: Numbers, deviation: float
) -> Numbers:
    """Returns noisy counts of the m nodes at one depth of a tree, adjusted so that the counts of
    children sum to the count of their parent.

    Differences between children are shrunk towards an even spread by the James-Stein factor 1 -
    deviation^2 / (mean squared difference).

    Args:
        counts: Noisy count of each node. Shape: (m,).
        widths: Number of values in each node. Shape: (m,).
        parents: Index of each node's parent, ascending. Shape: (m,).
        held: Count of rows in each of the p distinct parents, by ascending index. Shape: (p,).
        deviation: Standard deviation of the noise.

    Shape: (m,).
    """
    found = np.zeros_like(counts)
    for parent, rows in zip(np.unique(parents), held.tolist(), strict=True):
        children = np.flatnonzero(parents == parent)
        even = rows * widths[children] / widths[children].sum()
        differences = counts[children] - even
        kept = max(0.0, 1.0 - deviation**2 / max(float((differences**2).mean()), deviation**2))
        found[children] = _project_to_sum(even + kept * differences, rows)
    return found


def _project_to_sum(numbers: Numbers, total: float) -> Numbers:
    """Returns the nearest non-negative numbers with the given sum. Shape: (m,) -> (m,)."""
    falling = np.sort(numbers)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(numbers - over[np.flatnonzero(falling >= over)[-1]], 0.0))


def column_bins(
    columns: Sequence[Column],
    codes: Codes,
    rho: Fraction,
    ledger: Ledger,
    cell_deviation: float,
) -> list[Bins]:
    """Returns the bins of each column. Trees of noisy counts divide the columns with many values;
    their privacy cost together is at most rho.

    Args:
        codes: Value index of each cell of n rows and D columns, or `MISSING`. Shape: (n, D).
        rho: Privacy budget, divided equally among the columns with trees.
        ledger: Record of the privacy costs, to which those of the trees are added.
        cell_deviation: Standard deviation of the noise in a count of the two-way table of two
            columns, in rows.
    """
    n_trees = sum(map(needs_tree, columns))
    return [
        tree_bins(codes[:, j], column, rho / n_trees, ledger, cell_deviation)
        if needs_tree(column)
        else plain_bins(n_values(column), column.missing.allowed)
        for j, column in enumerate(columns)
    ]


def _merged(starts: Codes, counts: Numbers, n: int, n_wanted: int, has_missing: bool) -> Bins:
    """Merges neighbouring leaves of a tree into bins of similar counts. A leaf that is a single,
    frequent value becomes a bin of its own.

    Args:
        starts: Index of the first value of each leaf, ascending.
        counts: Noisy count of rows in each leaf.
        n: Number of values of the column.
        n_wanted: Target number of bins.
        has_missing: Whether there is an additional bin for missing cells.
    """
    share = max(counts.sum(), 1.0) / n_wanted
    widths = np.diff(np.append(starts, n))
    is_atom = (widths == 1) & (counts > share)
    groups: list[list[int]] = []
    held, was_atom = 0.0, True
    for i, count in enumerate(counts.tolist()):
        if was_atom or is_atom[i] or held + count / 2 > share:
            groups.append([])
            held = 0.0
        groups[-1].append(i)
        held, was_atom = held + count, bool(is_atom[i])
    first = np.array([starts[group[0]] for group in groups])
    parts = tuple((starts[group], _shares(counts[group], widths[group])) for group in groups)
    return Bins(np.append(first, n), parts, has_missing)


def _shares(counts: Numbers, widths: Codes) -> Numbers:
    """Returns the share of a bin's rows in each of its m leaves: proportional to the noisy counts
    or, if all are zero, to the numbers of values (`widths`). Shape: (m,) each."""
    weights = counts if counts.sum() > 0 else widths.astype(np.float64)
    return np.asarray(weights / weights.sum())
