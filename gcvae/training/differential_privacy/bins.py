"""Bins of a column: its levels, or intervals of its values that noisy counts have cut.

A private tree counts a line of numbers from coarse to fine: each level of the tree cuts those nodes
into eight that still hold many rows, down to single values. A row stands in one node of each level,
so a level is a histogram that one row changes by one. What noise hides is even: the parts of a node
share its rows, and differ as far as their counts exceed the noise.
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
"""A line of at most so many values has a bin for each, and no tree."""
LEAST_BINS, MOST_BINS = 8, 32
"""About so many bins hold as many rows each, where a tree cuts a line."""
_CELL_DEVIATIONS = 4.0
"""Bins are so few that a cell of two such columns holds so many deviations of noise on average."""
_BRANCHES = 8
_LEAST_DEVIATIONS = 4.0
"""A node is cut further where its count stands out of the noise by so many of its deviations."""
_NOISE_ALONE = 2.0
"""A node within so many deviations of none has none: else empty ranges would fill with noise."""


@dataclass(frozen=True)
class Bins:
    """The bins of one column: bin b holds the values starts[b] to starts[b + 1] - 1.

    Attributes:
        starts: The first value of each bin, and the number of values. Shape: (n_bins + 1,).
        parts: Starts of the parts of each bin, and the share of its rows in each.
        has_missing: One more bin is that of the missing cells.
    """

    starts: Codes
    parts: tuple[tuple[Codes, Numbers], ...]
    has_missing: bool

    @property
    def n(self) -> int:
        """Bins, with that of the missing cells."""
        return len(self.starts) - 1 + self.has_missing

    def of(self, codes: Codes) -> Codes:
        """Returns the bin of each value; missing cells have the last. Shape: (n,) -> (n,)."""
        found = np.searchsorted(self.starts, codes, side="right") - 1
        return np.where(codes == MISSING, self.n - 1, found)

    def values(self, bins: Codes, uniform: Numbers) -> Codes:
        """Returns a value in each bin, by the shares of its parts; -1 for missing.

        Shape: bins (n,), uniform (n, 2) in [0, 1) -> (n,).
        """
        values = np.full(len(bins), MISSING, dtype=np.int64)
        for b, (starts, shares) in enumerate(self.parts):
            rows = np.flatnonzero(bins == b)
            part = np.searchsorted(np.cumsum(shares)[:-1], uniform[rows, 0], side="right")
            widths = np.diff(np.append(starts, self.starts[b + 1]))[part]
            values[rows] = starts[part] + np.floor(uniform[rows, 1] * widths).astype(np.int64)
        return values


def plain_bins(n: int, has_missing: bool) -> Bins:
    """Returns a bin for each of n values."""
    starts = np.arange(n + 1)
    return Bins(starts, tuple((starts[i : i + 1], np.ones(1)) for i in range(n)), has_missing)


def n_values(column: Column) -> int:
    """How many values a declared column has, the missing one aside."""
    is_line = column.kind.outcomes is Outcomes.LINE
    return ValueLine.of(column).n if is_line else len(column.typed_levels)


def needs_tree(column: Column) -> bool:
    """Returns whether a column has too many values for a bin each."""
    return column.kind.outcomes is Outcomes.LINE and n_values(column) > MOST_PLAIN


def tree_widths(n: int) -> list[int]:
    """Values in a node of each level, from coarse to fine; the last is 1.

    >>> tree_widths(100)
    [8, 1]
    """
    widths = [1]
    while -(-n // widths[0]) > MOST_PLAIN:
        widths.insert(0, widths[0] * _BRANCHES)
    return widths


def n_bins(n_rows: float, cell_deviation: float) -> int:
    """How many bins a tree's line gets: as many as the noise in pairs of them allows.

    >>> n_bins(30_000, 30.0), n_bins(30_000, 4.0), n_bins(500, 30.0)
    (16, 32, 8)
    """
    found = math.sqrt(max(n_rows, 0.0) / (_CELL_DEVIATIONS * cell_deviation))
    return min(max(round(found), LEAST_BINS), MOST_BINS)


def tree_bins(
    codes: Codes, column: Column, rho: Fraction, ledger: Ledger, cell_deviation: float
) -> Bins:
    """Returns the bins of a line that has too many values for one each, for at most rho.

    Shape: codes (n,), those of missing cells too.

    Args:
        codes: Codes of the cells.
        column: The line's.
        rho: To be spent.
        ledger: It is written to.
        cell_deviation: Standard deviation of the noise that a cell of two columns will have, in
            rows.
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
    """Returns the rows of nodes that add up to those of their parents.

    What children seem to differ by beyond an even spread is taken as far as it exceeds the noise:
    by 1 - deviation^2 / (mean square difference), as James and Stein shrink means.

    Shape: counts, widths and parents (m,), parents' numbers in order; held (p,) -> (m,).
    """
    found = np.zeros_like(counts)
    for parent, rows in zip(np.unique(parents), held.tolist(), strict=True):
        own = np.flatnonzero(parents == parent)
        even = rows * widths[own] / widths[own].sum()
        apart = counts[own] - even
        kept = max(0.0, 1.0 - deviation**2 / max(float((apart**2).mean()), deviation**2))
        found[own] = _with_sum(even + kept * apart, rows)
    return found


def _with_sum(numbers: Numbers, total: float) -> Numbers:
    """Returns the nearest numbers that are not negative and have a sum. Shape: (m,) -> (m,)."""
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
    """Returns the bins of each column, for at most rho: those that need a tree share it.

    Shape: codes (n, D), of every cell. `cell_deviation` is that of `tree_bins`.
    """
    n_trees = sum(map(needs_tree, columns))
    return [
        tree_bins(codes[:, j], column, rho / n_trees, ledger, cell_deviation)
        if needs_tree(column)
        else plain_bins(n_values(column), column.missing.allowed)
        for j, column in enumerate(columns)
    ]


def _merged(starts: Codes, counts: Numbers, n: int, n_wanted: int, has_missing: bool) -> Bins:
    """Bins of neighbouring leaves that hold about as many rows; a single heavy value is its own."""
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
    """Returns the share of each part; by width where the noise has left none with rows."""
    weights = counts if counts.sum() > 0 else widths.astype(np.float64)
    return np.asarray(weights / weights.sum())
