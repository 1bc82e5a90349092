"""Computes the data of a report's charts: shares of real and synthetic rows in bins and levels.

To disclose no single row, levels with fewer than `LEAST_SHOWN` real rows are merged. The share of
real rows in a bin is None if the bin contains fewer than `LEAST_SHOWN` real rows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import LAST_TIME, Codes, Numbers
from gcvae.evaluation.columns import is_number, numbers_of
from gcvae.numerics.isolated_values import isolated_frequent_values
from gcvae.schema.columns import Column, TableSchema

LEAST_SHOWN = 5
"""Minimum number of real rows in a level or share for it to be shown."""
_MOST_BARS = 12
_MOST_OF_A_PAIR = 8
_EPOCH = np.datetime64("1970-01-01")


def column_shares(
    real: pd.DataFrame, drawn: pd.DataFrame, schema: TableSchema, name: str
) -> dict[str, Any]:
    """Returns a JSON object with the shares of real and synthetic rows in each bin of a column
    (`real`, `drawn`), and the names of the bins (`labels`)."""
    labels, codes = _binned(real, drawn, schema[name], _MOST_BARS)
    counts = [np.bincount(part, minlength=len(labels)) for part in codes]
    return {"column": name, "labels": labels} | _shares(counts, (len(labels),))


def pair_shares(
    real: pd.DataFrame, drawn: pd.DataFrame, schema: TableSchema, a: str, b: str
) -> dict[str, Any]:
    """Returns a JSON object with the shares of real and synthetic rows in each pair of bins of
    columns a and b, as matrices with a row for each bin of a and a column for each bin of b."""
    labels_a, codes_a = _binned(real, drawn, schema[a], _MOST_OF_A_PAIR)
    labels_b, codes_b = _binned(real, drawn, schema[b], _MOST_OF_A_PAIR)
    size = len(labels_a), len(labels_b)
    counts = [
        np.bincount(of_a * size[1] + of_b, minlength=size[0] * size[1])
        for of_a, of_b in zip(codes_a, codes_b, strict=True)
    ]
    return {"columns": [a, b], "labels": [labels_a, labels_b]} | _shares(counts, size)


def _shares(counts: list[Codes], size: tuple[int, ...]) -> dict[str, Any]:
    """Converts counts of (real, synthetic) rows in each bin to shares of the table, in arrays of
    the given size. Shares of fewer than `LEAST_SHOWN` real rows are None."""
    real, drawn = (of_table / of_table.sum() for of_table in counts)
    told = real.astype(object)
    told[counts[0] < LEAST_SHOWN] = None
    return {"real": told.reshape(size).tolist(), "drawn": drawn.reshape(size).tolist()}


def _binned(
    real: pd.DataFrame, drawn: pd.DataFrame, column: Column, most: int
) -> tuple[list[str], list[Codes]]:
    """Returns (labels of at most `most` bins, index of each cell's bin in both tables)."""
    tables = real, drawn
    if is_number(column):
        numbers = [numbers_of(table, column) for table in tables]
        return _binned_numbers(numbers, column, most)
    cells = [table[column.name].astype(object) for table in tables]
    counts = cells[0].value_counts()
    frequent = list(counts[counts >= LEAST_SHOWN].index[: most - 2])
    place = {level: i for i, level in enumerate(frequent)}
    truths = column.levels or (False, True)  # the table's words for False and True
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


def _binned_numbers(
    cells: list[Numbers], column: Column, most: int
) -> tuple[list[str], list[Codes]]:
    """Returns (labels of the bins, index of the bin of each number in both tables).

    `most` - 2 bins of equal width divide the range from the 1 % to the 99 % quantile; the first one
    also contains all lower numbers, the last one all higher ones. A frequent number far from all
    others, such as -9999, has a bin of its own, and so have missing cells (NaN).
    """
    present = np.concatenate([x[~np.isnan(x)] for x in cells])
    labels: list[str] = []
    edges = present
    if len(present):
        apart = isolated_frequent_values(present)
        near = present[~np.isin(present, apart)]
        low, high = np.quantile(near, [0.01, 0.99])
        starts = np.where(apart < near.min(), near.min(), apart)
        edges = np.unique([*np.linspace(low, high, most - 1)[1:-1], *starts])
        labels = _interval_labels(edges, is_date=column.datetime_format is not None)
    codes = [
        np.where(np.isnan(x), len(labels), np.searchsorted(edges, x, side="right")).astype(np.int64)
        for x in cells
    ]
    return _without_empty([*labels, "missing"], codes)


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
    day = _EPOCH + np.timedelta64(int(days), "D")
    return str(min(day, LAST_TIME.astype("datetime64[D]")))  # rounding may exceed it


def _without_empty(labels: list[str], codes: list[Codes]) -> tuple[list[str], list[Codes]]:
    used = max(int(part.max(initial=0)) for part in codes) + 1
    return labels[: max(used, 1)], codes
