"""Finds change points: numbers at which the distribution of another column's categories changes
abruptly, such as the date on which a category was introduced.

Rows are sorted by the number. At each candidate point, the likelihood ratio statistic G compares
the categories beside the w numbers before the point with those beside the w numbers after it. If
the dependence is smooth, G is similar in neighbouring windows. The evidence is therefore -log
P(chi-squared > G - G'), where G' is the larger statistic of the two neighbouring windows. The
segments on both sides of a change point are then searched in the same way (binary segmentation).

Source: binary segmentation, Scott and Knott (1974); the statistic, Wilks (1938).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import chdtrc, xlogy

from gcvae.arrays import Codes, Numbers
from gcvae.codec.encoded_rows import EncodedRows
from gcvae.model.autoregressive import column_order
from gcvae.model.change_points import ChangePoints
from gcvae.model.level_functions import LevelFunction, order_with_rules
from gcvae.model.networks import ColumnShape
from gcvae.numerics.generators import generator_for

_MOST_ROWS = 5_000
"""Maximum number of rows in which change points are searched."""
_N_LOG_N = xlogy(np.arange(_MOST_ROWS + 1.0), np.arange(_MOST_ROWS + 1.0))
_WINDOWS = (16, 24, 32, 48, 64, 128, 256)
"""Window widths w that are tried, as numbers of distinct values."""
_LEAST_WINDOWS = 16
"""A window width is tried only if at least this number of windows fits into the column."""
_LEAST_CHANCE = 1e-300
"""Lower limit of probabilities before their logarithm is taken."""
_LEAST_EVIDENCE = 7.0
"""Minimum evidence in nats, in excess of the logarithm of the number of tests."""
_MOST_POINTS = 48
"""Maximum number of change points of a column."""
_MOST_CATEGORIES = 64
"""Maximum number of categories of a column that are distinguished; rarer ones are merged."""
_MOST_PARENT_CODES = 512
"""Maximum number of codes of a column on whose categories change points may depend."""
_PSEUDO_ROWS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Candidate weights a, in rows, of the smoothing prior of P(bin | code)."""
_LEAST_GAIN = 0.003
"""Minimum gain of a parent column in predicting the bins, in nats per row."""
_LEAST_CODES = 12
"""Minimum number of distinct numbers for a search in a column that has only frequent values.
"""


def find_change_points(
    columns: Sequence[ColumnShape],
    rows: EncodedRows,
    training: torch.Tensor,
    functions: Sequence[LevelFunction],
    seed: int,
) -> list[ChangePoints]:
    """Returns the change points of each column of numbers that has any: numbers at which the
    distribution of another column's categories changes abruptly.

    Args:
        columns: Properties of the model's columns.
        rows: All rows of the table.
        training: Indices of the m training rows, in which change points are searched. Shape: (m,).
        functions: Functional dependencies of the model, which affect the order of columns.
    """
    generator = generator_for(seed, "change points")
    at = training[torch.randperm(len(training), generator=generator)[:_MOST_ROWS]]
    table = rows.take(at.sort().values)
    codes, values = table.codes.numpy().astype(np.int64), table.values.numpy()
    order = order_with_rules(column_order(columns), columns, functions)
    found = []
    for position, j in enumerate(order):
        parents = [i for i in order[:position] if _has_categories(columns[i])]
        change_points = _column_change_points(j, columns, codes, values[:, j], parents)
        if change_points is not None:
            found.append(change_points)
    return found


def _has_categories(column: ColumnShape) -> bool:
    """Returns whether every cell has an integer code, and there are 2 to `_MOST_PARENT_CODES`
    codes."""
    is_coded = column.point_code is None or len(column.discrete_codes) > 0
    return is_coded and 1 < column.n_codes <= _MOST_PARENT_CODES


def _column_change_points(
    j: int, columns: Sequence[ColumnShape], codes: Codes, values: Numbers, parents: Sequence[int]
) -> ChangePoints | None:
    """Returns the change points of column j, with its best parent: the column that best predicts in
    which interval between change points a number lies.

    Returns None if the column has no change points, or if no column predicts the intervals.

    Args:
        codes: Codes of all columns. Shape: (n, D).
        values: Numbers of column j. Shape: (n,).
        parents: Indices of the columns that may be the parent.
    """
    column = columns[j]
    if column.point_code is None:
        return None
    is_coded = len(column.discrete_codes) > 0
    if is_coded and len(column.discrete_codes) < _LEAST_CODES:
        return None
    own_codes = codes[:, j]
    numbers = own_codes.astype(float) if is_coded else values
    is_number = (
        np.isin(own_codes, column.discrete_codes) if is_coded else own_codes == column.point_code
    )
    order = np.flatnonzero(is_number)[np.argsort(numbers[is_number], kind="stable")]
    ordered = numbers[order]
    categories = [_frequent(codes[order, i]) for i in parents]
    starts = _Segmentation(ordered, [c for c in categories if c.max(initial=0) > 0]).starts()
    if not len(starts):
        return None
    points = ordered[starts] if is_coded else (ordered[starts - 1] + ordered[starts]) / 2.0
    bins = np.searchsorted(points, ordered, side="right")
    tables = [
        _log_ratio(bins, codes[order, i], len(points) + 1, columns[i].n_codes) for i in parents
    ]
    best = int(np.argmax([gain for gain, _ in tables]))
    gain, log_ratio = tables[best]
    return None if gain < _LEAST_GAIN else ChangePoints(j, points, parents[best], log_ratio)


def _frequent(codes: Codes) -> Codes:
    """Returns codes renumbered by descending frequency, with the rarest merged into one code."""
    _, at, counts = np.unique(codes, return_inverse=True, return_counts=True)
    by_count = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    found: Codes = np.minimum(by_count[at], _MOST_CATEGORIES)
    return found


@dataclass(frozen=True)
class _Segmentation:
    """Finds the change points of sorted numbers, at which the categories of other columns change.

    The windows before and after each candidate are compared. Both contain the same number of
    distinct values, not of rows, so rows with equal numbers are never separated.

    Attributes:
        numbers: The numbers, ascending. Shape: (n,).
        categories: For each other column, the category in each row. Shape: (n,) each.
    """

    numbers: Numbers
    categories: Sequence[Codes]

    def starts(self) -> Codes:
        """Returns the index of the first row after each change point, ascending. Shape: (m,)."""
        first = np.flatnonzero(np.diff(self.numbers, prepend=-np.inf) > 0)
        n = len(first)
        if not self.categories or n < 4 * _WINDOWS[0]:
            return np.zeros(0, dtype=np.int64)
        ends = np.append(first, len(self.numbers))
        below = [_counts_below(codes)[ends] for codes in self.categories]
        needed = _LEAST_EVIDENCE + np.log(n * len(below) * len(_WINDOWS))
        found: list[int] = []
        segments = [(0, n)]
        while segments and len(found) < _MOST_POINTS:
            start, stop = segments.pop(0)
            nats, w, at = _most_evidence(below, start, stop)
            if nats >= needed:
                at = _likeliest(below, at - w, at + w)
                found.append(at)
                segments += [(start, at), (at, stop)]
        return first[sorted(found)]


def _counts_below(codes: Codes) -> Codes:
    """Returns cumulative counts: entry [i, k] is the number of the first i rows that have category
    k. Shape: (n,) -> (n + 1, K)."""
    one_hot = np.zeros((len(codes) + 1, int(codes.max()) + 1), dtype=np.int64)
    one_hot[np.arange(1, len(one_hot)), codes] = 1
    below: Codes = one_hot.cumsum(axis=0)
    return below


def _most_evidence(below: Sequence[Codes], start: int, stop: int) -> tuple[float, int, int]:
    """Searches one segment for the change point with the strongest evidence.

    Args:
        below: For each column, entry [i, k] is the number of rows with category k whose number is
            less than distinct number i. Shape: (number of distinct numbers + 1, K) each.
        start: Index of the segment's first distinct number.
        stop: Index after the segment's last distinct number.

    Returns:
        (evidence in nats, window width with this evidence, index of the first distinct number after
        the change point); the evidence is 0 if the segment is too short for any window.
    """
    best = 0.0, 0, start
    for counts in below:
        for w in _WINDOWS:
            if stop - start < 4 * w or _LEAST_WINDOWS * w > len(counts):
                break
            at = np.arange(start + w, stop - w + 1)
            left, right = counts[at] - counts[at - w], counts[at + w] - counts[at]
            g = _statistic(left, right)
            at, of_both = at[w:-w], (left + right)[w:-w]
            g = g[w:-w] - np.maximum(g[: -2 * w], g[2 * w :])
            k = np.maximum((of_both > 0).sum(axis=-1) - 1.0, 1.0)
            chance = chdtrc(k, np.maximum(g, 0.0))
            least = int(chance.argmin())
            nats = -math.log(max(float(chance[least]), _LEAST_CHANCE))
            if nats > best[0]:
                best = nats, w, int(at[least])
    return best


def _likeliest(below: Sequence[Codes], first: int, last: int) -> int:
    """Returns the index of the distinct number before which a change point is likeliest. It lies
    between the indices `first` and `last`; `below` is as for `_most_evidence`.

    A change point splits this range in two parts. The statistic G compares the categories of the
    parts; at the likeliest change point, the sum of G over all columns is largest."""
    near = np.arange(first + 1, last)
    total = sum(
        _statistic(counts[near] - counts[first], counts[last] - counts[near]) for counts in below
    )
    return int(near[np.argmax(total)])


def _statistic(left: Codes, right: Codes) -> Numbers:
    """Returns the likelihood ratio statistic G of two windows' category counts. Shape: (n, K) each
    -> (n,)."""
    of_left, of_right, both = (
        _N_LOG_N[part].sum(axis=-1) - _N_LOG_N[part.sum(axis=-1)]
        for part in (left, right, left + right)
    )
    statistic: Numbers = 2.0 * (of_left + of_right - both)
    return statistic


def _log_ratio(bins: Codes, codes: Codes, n_bins: int, n_codes: int) -> tuple[float, Numbers]:
    """Estimates how the codes of a parent column predict the bins between change points.

    The estimate is P(b | code) = (n_code,b + a P(b)) / (n_code + a), where n_code is the number of
    rows with the code, and n_code,b the number of these rows that are in bin b. The weight a is the
    one with the highest leave-one-out likelihood.

    Args:
        bins: Bin of each row. Shape: (n,).
        codes: Code of the parent column in each row. Shape: (n,).

    Returns:
        (gain, log ratios). The gain is the increase of the leave-one-out log-likelihood of the bins
        when the codes are known, in nats per row. The log ratios are log P(b | code) - log P(b).
        Shape: (K, B) for K codes and B bins.
    """
    counts = np.zeros((n_codes, n_bins))
    np.add.at(counts, (codes, bins), 1.0)
    of_code = counts.sum(axis=1, keepdims=True)
    share = (counts.sum(axis=0) + 0.5) / (len(bins) + 0.5 * n_bins)
    best = -np.inf, np.zeros_like(counts)
    for a in _PSEUDO_ROWS:
        left_out = (counts - 1.0 + a * share) / (np.maximum(of_code - 1.0, 0.0) + a)
        seen = counts > 0
        gain = (counts * np.log(np.where(seen, left_out / share, 1.0))).sum() / len(bins)
        if gain > best[0]:
            best = gain, np.log((counts + a * share) / (of_code + a)) - np.log(share)
    return best
