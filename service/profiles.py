"""What a table holds, by column: kind, missing share, quantiles or level counts, histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel

from catalog.records import Dataset
from gcvae.schema import Column, ColumnKind, TableSchema
from gcvae.tables import parse_table

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
N_BINS = 30
N_LEVELS = 100


class Histogram(BaseModel):
    """`counts[i]` values lie between `edges[i]` and `edges[i + 1]`."""

    edges: list[float] | list[str]
    counts: list[int]


class LevelCount(BaseModel):
    """How often a level comes; `level` is null for the levels that are not listed."""

    level: str | int | float | bool | None
    count: int


class ColumnProfile(BaseModel):
    """What one column holds. What its kind does not have is null."""

    name: str
    kind: ColumnKind
    missing_share: float
    n_distinct: int
    mean: float | None = None
    standard_deviation: float | None = None
    quantiles: dict[str, float] | dict[str, str] | None = None
    histogram: Histogram | None = None
    levels: list[LevelCount] | None = None


class TableProfile(BaseModel):
    """What a table holds."""

    dataset_id: str
    rows: int
    columns: list[ColumnProfile]


def profile_table(dataset: Dataset, frame: pd.DataFrame) -> TableProfile:
    """The profile of a table as it was read, under its dataset's schema."""
    schema = TableSchema.from_json(dataset.schema)
    typed = parse_table(frame, schema)
    columns = [_profile_column(column, typed[column.name]) for column in schema]
    return TableProfile(dataset_id=dataset.id, rows=len(typed), columns=columns)


def _profile_column(column: Column, cells: pd.Series[Any]) -> ColumnProfile:
    known = cells.dropna()
    profile: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "missing_share": float(cells.isna().mean()),
        "n_distinct": int(known.nunique()),
    }
    if column.kind is ColumnKind.DATETIME:
        return ColumnProfile(**profile, **_profile_dates(known))
    if column.kind.is_real:
        return ColumnProfile(**profile, **_profile_numbers(known.astype("float64")))
    if column.kind is ColumnKind.IDENTIFIER:  # its values are nobody's statistics
        return ColumnProfile(**profile)
    return ColumnProfile(**profile, levels=_count_levels(column, known))


def _profile_numbers(known: pd.Series[Any]) -> dict[str, Any]:
    if known.empty:
        return {}
    values = known.to_numpy()
    counts, edges = np.histogram(values, bins=N_BINS)
    return {
        "mean": float(values.mean()),
        "standard_deviation": float(values.std()),
        "quantiles": {f"{q:g}": float(np.quantile(values, q)) for q in QUANTILES},
        "histogram": Histogram(edges=edges.tolist(), counts=counts.tolist()),
    }


def _profile_dates(known: pd.Series[Any]) -> dict[str, Any]:
    if known.empty:
        return {}
    seconds = known.to_numpy("datetime64[ns]").astype("int64") / 1e9
    numbers = _profile_numbers(pd.Series(seconds))
    histogram = numbers["histogram"]
    return {
        "quantiles": {q: _date(value) for q, value in numbers["quantiles"].items()},
        "histogram": Histogram(
            edges=[_date(edge) for edge in histogram.edges], counts=histogram.counts
        ),
    }


def _date(seconds: float) -> str:
    return pd.Timestamp(round(seconds * 1e6), unit="us").isoformat()


def _count_levels(column: Column, known: pd.Series[Any]) -> list[LevelCount]:
    counts = known.value_counts()
    order = list(column.levels or ()) if column.kind is ColumnKind.ORDINAL else list(counts.index)
    listed = [LevelCount(level=_plain(level), count=int(counts.get(level, 0))) for level in order]
    rest = sum(item.count for item in listed[N_LEVELS:])
    listed = listed[:N_LEVELS]
    return listed + ([LevelCount(level=None, count=rest)] if rest else [])


def _plain(level: Any) -> Any:
    return level.item() if isinstance(level, np.generic) else level
