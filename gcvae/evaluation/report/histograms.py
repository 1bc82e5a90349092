"""Data of the charts of a report: shares of bins and levels, real and synthetic.

No chart discloses a few rows: levels of fewer than `LEAST_SHOWN` real rows are merged, and shares
of fewer real rows are null.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.cells.values import values_of
from gcvae.evaluation.columns import is_number, numbers_of
from gcvae.schema.columns import Column, TableSchema
from gcvae.spelling.never_dates import stand_ins

LEAST_SHOWN = 5
"""Minimum number of real rows of a shown level or share."""
_MOST_BARS = 12
_MOST_OF_A_PAIR = 8
_EPOCH = np.datetime64("1970-01-01")


def column_shares(
    real: pd.DataFrame, drawn: pd.DataFrame, schema: TableSchema, name: str
) -> dict[str, Any]:
    """Returns the shares of a column's bins or levels in both tables."""
    labels, codes = _binned(real, drawn, schema[name], _MOST_BARS)
    counts = [np.bincount(part, minlength=len(labels)) for part in codes]
    return {"column": name, "labels": labels} | _shares(counts, (len(labels),))


def pair_shares(
    real: pd.DataFrame, drawn: pd.DataFrame, schema: TableSchema, a: str, b: str
) -> dict[str, Any]:
    """Returns the two-way shares of two columns in both tables, with rows `a` and columns `b`."""
    labels_a, codes_a = _binned(real, drawn, schema[a], _MOST_OF_A_PAIR)
    labels_b, codes_b = _binned(real, drawn, schema[b], _MOST_OF_A_PAIR)
    size = len(labels_a), len(labels_b)
    counts = [
        np.bincount(of_a * size[1] + of_b, minlength=size[0] * size[1])
        for of_a, of_b in zip(codes_a, codes_b, strict=True)
    ]
    return {"columns": [a, b], "labels": [labels_a, labels_b]} | _shares(counts, size)


def _shares(counts: list[Codes], size: tuple[int, ...]) -> dict[str, Any]:
    """Returns shares of real and synthetic rows; None for shares of few real rows."""
    real, drawn = (of_table / of_table.sum() for of_table in counts)
    told = real.astype(object)
    told[counts[0] < LEAST_SHOWN] = None
    return {"real": told.reshape(size).tolist(), "drawn": drawn.reshape(size).tolist()}


def _binned(
    real: pd.DataFrame, drawn: pd.DataFrame, column: Column, most: int
) -> tuple[list[str], list[Codes]]:
    """Returns (bin labels, the bin of each cell of both tables)."""
    tables = real, drawn
    if is_number(column):
        numbers = [numbers_of(table, column) for table in tables]
        never = [_never_of(table[column.name], column) for table in tables]
        return _binned_numbers(numbers, never, column, most)
    cells = [table[column.name].astype(object) for table in tables]
    counts = cells[0].value_counts()
    frequent = list(counts[counts >= LEAST_SHOWN].index[: most - 2])
    place = {level: i for i, level in enumerate(frequent)}
    truths = column.levels or (False, True)  # a boolean as the table writes it
    texts = [str(truths[level] if isinstance(level, bool) else level) for level in frequent]
    labels = [*texts, "all others", "missing"]
    codes = [
        np.array(
            [len(frequent) + 1 if pd.isna(x) else place.get(x, len(frequent)) for x in part],
            dtype=np.int64,
        )
        for part in cells
    ]
    return _without_empty(labels, codes)


def _never_of(series: pd.Series[Any], column: Column) -> Codes:
    """Returns the index of each cell's sentinel date, -1 for other cells. Shape: (n,)."""
    places = np.full(len(series), -1, dtype=np.int64)
    if column.never:
        typed = values_of(series.to_frame(column.name), TableSchema((column,)))
        times = typed[column.name].to_numpy()
        for i, time in enumerate(stand_ins(column.never, column.date_format)):
            places[times == time] = i
    return places


def _binned_numbers(
    cells: list[Numbers], never: list[Codes], column: Column, most: int
) -> tuple[list[str], list[Codes]]:
    """Returns (labels, bins): equal width over the middle of the real numbers, with open ends.

    Each sentinel date has a bin of its own.
    """
    present = np.concatenate([x[~np.isnan(x)] for x in cells])
    labels: list[str] = []
    edges = present
    if len(present):
        low, high = np.quantile(present, [0.01, 0.99])
        edges = np.unique(np.linspace(low, high, most - 1))[1:-1]
        labels = _interval_labels(edges, is_date=column.datetime_format is not None)
    n, n_never = len(labels), len(column.never)
    codes = [
        np.where(
            known >= 0,
            n + known,
            np.where(np.isnan(x), n + n_never, np.searchsorted(edges, x, side="right")),
        ).astype(np.int64)
        for x, known in zip(cells, never, strict=True)
    ]
    return _without_empty([*labels, *column.never, "missing"], codes)


def _interval_labels(edges: Numbers, *, is_date: bool) -> list[str]:
    texts = [_day(edge) if is_date else _short_number(edge) for edge in edges]
    if not texts:
        return ["all"]
    between = [f"{a} to {b}" for a, b in pairwise(texts)]
    return [f"below {texts[0]}", *between, f"{texts[-1]} or more"]


def _short_number(number: float) -> str:
    """Returns a number with three significant digits, in scientific notation if it is long.

    >>> [_short_number(x) for x in (0.01234, 111_234.5, 1.5e12)]
    ['0.0123', '111,000', '1.5e+12']
    """
    short = float(f"{number:.3g}")
    return f"{short:,.0f}" if 1_000 <= abs(short) < 1e9 else f"{short:g}"


def _day(days: float) -> str:
    return str(_EPOCH + np.timedelta64(int(days), "D"))


def _without_empty(labels: list[str], codes: list[Codes]) -> tuple[list[str], list[Codes]]:
    """Returns the labels and bins without an empty last bin."""
    used = max(int(part.max(initial=0)) for part in codes) + 1
    return labels[: max(used, 1)], codes
