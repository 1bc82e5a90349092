"""Columns of numbers that are two others multiplied, and rounded: price × quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Numbers
from gcvae.rules.predictions import grid_unit
from gcvae.rules.row_sample import Candidate, RowSample, judged
from gcvae.schema.columns import Column
from gcvae.schema.rules import ProductRule

LEAST_SHARE = 0.9
"""Of the rows, that a product holds in."""
_SIEVE_ROWS = 24
_LEAST_SIEVED = 0.6
_MOST_COLUMNS = 80
FACTORS = (1, 0.01, 100, 0.1, 10, 0.001, 1000, 0.5, 2, 12, 60, 1 / 12, 1 / 60)
"""That a product may have beside its two columns: units and per cent."""

Free = Callable[[ProductRule], bool]


def find_products(sample: RowSample, is_free: Free) -> Iterator[Candidate]:
    """Products of two columns, each column's best.

    Args:
        sample: Of the table.
        is_free: Whether a rule goes with those that are taken already.
    """
    half = sample.finding
    columns = [c for c in sample.numeric if _is_spread(half.numbers[c.name])][:_MOST_COLUMNS]
    if len(columns) < 3:
        return
    values = np.stack([half.numbers[column.name] for column in columns], axis=1)
    a, b = np.triu_indices(len(columns), 1)
    n_tried = len(columns) * len(a) * len(FACTORS)
    for number, y in enumerate(columns):
        found = [
            candidate
            for i, j, factor in _sieved(values, number, a, b, y)
            if (candidate := _judged(sample, (y, columns[i], columns[j]), factor, n_tried))
            and is_free(candidate.rule)  # type: ignore[arg-type]
        ]
        if found:
            yield max(found, key=lambda c: c.share)


def _is_spread(values: Numbers) -> bool:
    """Whether a column has more than two numbers, and not mostly zero."""
    known = values[~np.isnan(values)]
    return len(np.unique(known[:200])) > 2 and (known != 0).mean() > 0.5


def _sieved(
    values: Numbers, y: int, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], column: Column
) -> Iterator[tuple[int, int, float]]:
    """Pairs of columns, and factors, that give y in most of a few rows in which no cell is 0.

    Shape: values (n, D), a and b (pairs,).
    """
    target = values[:, y]
    rows = np.flatnonzero(~np.isnan(target) & (target != 0))
    rows = rows[np.argsort(-np.abs(target[rows]), kind="stable")]
    rows = rows[:: max(len(rows) // _SIEVE_ROWS, 1)][:_SIEVE_ROWS]
    if len(rows) < _SIEVE_ROWS:
        return
    few, wanted = values[rows], target[rows, None]
    unit = grid_unit(column)
    products = few[:, a] * few[:, b]
    for factor in FACTORS:
        off = np.abs(factor * products - wanted)
        tolerance = 1e-9 * np.abs(wanted) if unit is None else 0.5 * unit + 1e-9 * np.abs(wanted)
        hits = (off <= tolerance).mean(0) * ((a != y) & (b != y))
        for place in np.flatnonzero(hits >= _LEAST_SIEVED):
            yield int(a[place]), int(b[place]), factor


def _judged(
    sample: RowSample, columns: tuple[Column, Column, Column], factor: float, n_tried: int
) -> Candidate | None:
    """The product, ties going where more rows have them."""
    y, *factors = columns
    names = tuple(column.name for column in factors)
    rules = [ProductRule(y.name, names, factor, ties, source="found") for ties in ("even", "away")]
    found = [judged(rule, sample, n_tried, LEAST_SHARE) for rule in rules]
    return max((c for c in found if c), key=lambda c: c.share, default=None)
