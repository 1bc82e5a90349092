"""Profile of a table for users: for each column the share of missing cells, quantiles or level
counts, and a histogram.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import FIRST_TIME, LAST_TIME, TIMES, Numbers
from gcvae.files.typed_columns import TypedTable
from gcvae.numerics.isolated_values import isolated_frequent_values
from gcvae.profiling.table_rules import LineOf, shown_finding
from gcvae.rules.search import measured
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.spelling.date_text import write_dates

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
MOST_BINS = 30
MOST_LEVELS = 50  # maximum number of levels that are listed; all others are counted together


def profile_table(
    table: TypedTable, schema: TableSchema, line_of: LineOf | None = None
) -> dict[str, Any]:
    """Returns a JSON document with the number of rows, the profile of each column, and the rules.

    For a dropped column, the profile contains only the name. For a rule, the document contains its
    JSON form, its formula, the numbers of rows to which it applies and that satisfy it, and the
    first rows that violate it. `line_of` returns the line of a row in the file; None: no file.
    """
    columns = [
        {"name": c.name, "drop": True} if c.drop else profile_column(table[c.name], c)
        for c in schema
        if c.drop or c.name in table.columns
    ]
    findings = measured(schema.rules or (), table, schema)
    rules = [shown_finding(finding, line_of or (lambda _: None)) for finding in findings]
    return {"rows": len(table), "columns": columns, "rules": rules}


def profile_column(series: pd.Series[Any], column: Column) -> dict[str, Any]:
    """Returns a JSON document on a parsed column: the share of missing cells, the number of
    distinct cells, and quantiles with a histogram, or counts of levels. The document on an
    identifier contains no values.
    """
    present = series[series.notna()]
    profile: dict[str, Any] = {
        "name": column.name,
        "kind": str(column.kind),
        "missing_share": int(series.isna().sum()) / len(series) if len(series) else 0.0,
        "distinct": int(present.nunique()),
    }
    if column.has_times:
        profile |= _profile_dates(present, column)
    elif column.kind.is_real:
        profile |= _profile_numbers(present.to_numpy(dtype=np.float64))
    elif column.kind.outcomes is not Outcomes.KEYS:
        profile |= _profile_levels(present)
    return profile


def _profile_numbers(values: Numbers) -> dict[str, Any]:
    if not len(values):
        return {"quantiles": {}, "histogram": {"edges": [], "counts": []}}
    found = np.quantile(values, QUANTILES)
    counts, edges = np.histogram(values, bins=_edges(values))
    return {
        "mean": float(values.mean()),
        "standard_deviation": float(values.std()),
        "quantiles": {str(q): float(x) for q, x in zip(QUANTILES, found, strict=True)},
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
    }


def _edges(values: Numbers) -> Numbers:
    """Returns the edges of the B bins of a histogram: bins of equal width, and one more bin for
    each frequent value far from all others, such as -999. Shape: (n,) -> (B + 1,)."""
    apart = isolated_frequent_values(values)
    near = values[~np.isin(values, apart)]
    n_bins = min(MOST_BINS, max(len(np.unique(near)), 1))
    edges = np.histogram_bin_edges(near, bins=n_bins)
    if (apart > edges[-1]).any():  # the last bin would also contain its right edge
        edges[-1] = np.nextafter(edges[-1], np.inf)
    return np.union1d(edges, apart)


def _profile_dates(present: pd.Series[Any], column: Column) -> dict[str, Any]:
    times = present.to_numpy(dtype=TIMES).astype(np.int64)
    profile = _profile_numbers(times.astype(np.float64))
    if not len(times):
        return profile
    quantiles = _written_times(list(profile["quantiles"].values()), column)
    return {
        "quantiles": dict(zip(profile["quantiles"], quantiles, strict=True)),
        "histogram": {
            "edges": _written_times(profile["histogram"]["edges"], column),
            "counts": profile["histogram"]["counts"],
        },
    }


def _written_times(microseconds: list[float], column: Column) -> list[str]:
    times = np.array(microseconds).astype(np.int64).astype(TIMES).clip(FIRST_TIME, LAST_TIME)
    date_format = column.date_format
    return [str(text) for text in write_dates(times, date_format, column.decimals).to_pylist()]


def _profile_levels(present: pd.Series[Any]) -> dict[str, Any]:
    counts = present.astype(object).value_counts()
    levels = [
        {"level": _plain(level), "count": int(n)} for level, n in counts.iloc[:MOST_LEVELS].items()
    ]
    return {"levels": levels, "other_count": int(counts.iloc[MOST_LEVELS:].sum())}


def _plain(level: Any) -> Any:
    if isinstance(level, pd.Timestamp):
        return str(level)
    return level.item() if isinstance(level, np.generic) else level
