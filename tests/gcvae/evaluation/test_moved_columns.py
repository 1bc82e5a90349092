"""Columns that move when rows are rejected, and those that do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.evaluation.moved_columns import moved_columns
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import ColumnKind

KINDS = {
    "number": ColumnKind.CONTINUOUS,
    "free": ColumnKind.CONTINUOUS,
    "date": ColumnKind.DATETIME,
    "level": ColumnKind.CATEGORICAL,
}


@given(st.integers(0, 10**6), st.floats(0.05, 0.95))
def test_a_column_moves_where_it_decides_what_is_kept_and_no_other_does(
    seed: int, share: float
) -> None:
    random = np.random.default_rng(seed)
    n = 4_000
    rows = pd.DataFrame(
        {
            "number": random.normal(size=n),
            "free": random.normal(size=n),
            "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.permutation(n), unit="D"),
            "level": random.choice(["a", "b", None], n),
        }
    )
    schema = TableSchema(tuple(Column(name, kind) for name, kind in KINDS.items()))
    is_kept = rows["number"].to_numpy() < np.quantile(rows["number"], share)
    (moved,) = moved_columns(rows, is_kept, schema)
    assert moved["column"] == "number"
    assert moved["after"] == 1.0
    assert moved["before"] == pytest.approx(is_kept.mean(), abs=1e-4)
    late = (rows["date"] >= "2026-01-01").to_numpy()
    (moved,) = moved_columns(rows, late, schema)
    assert moved["column"] == "date"
    assert moved["cells"] == "at most 2025-12-31 00:00:00"
    (moved,) = moved_columns(rows, rows["level"].notna().to_numpy(), schema)
    assert (moved["column"], moved["cells"], moved["after"]) == ("level", "blank", 0.0)
