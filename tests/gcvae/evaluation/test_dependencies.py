"""Other real rows keep the dependencies of real rows, and a shuffled column has none."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from gcvae.evaluation.dependencies import strongest_dependencies
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import ColumnKind
from tests.lengths import tries

SCHEMA = TableSchema(
    (
        Column("x", ColumnKind.CONTINUOUS),
        Column("y", ColumnKind.CONTINUOUS),
        Column("level", ColumnKind.CATEGORICAL),
        Column("time", ColumnKind.DATETIME),
        Column("free", ColumnKind.CATEGORICAL),
    )
)


def _table(seed: int, n: int, noise: float) -> pd.DataFrame:
    """y and level depend on x, y is blank at times, and x on the hour."""
    random = np.random.default_rng(seed)
    minutes = random.integers(0, 100 * 24 * 60, n)
    x = np.cos(2 * np.pi * minutes / 1440) + noise * random.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "y": np.where(random.random(n) < 0.1, np.nan, x + noise * random.normal(size=n)),
            "level": np.where(x > 0.3, "high", np.where(x > -0.3, "middle", None)),
            "time": pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, unit="min"),
            "free": random.choice(list("abcdefghijkl"), n),
        }
    )


@tries(20)
@given(st.integers(0, 10**6), st.integers(400, 2_000), st.floats(0.05, 0.3))
def test_other_real_rows_keep_every_dependency_and_a_shuffled_column_has_none(
    seed: int, n: int, noise: float
) -> None:
    real, other = _table(seed, n, noise), _table(seed + 1, n, noise)
    found = strongest_dependencies(real, other, SCHEMA)
    assert {each.columns for each in found} >= {("x", "y"), ("x", "time (hour)")}
    assert all(each.most_kept > 0.75 for each in found)
    assert not any(each.columns[0] == "free" for each in found)
    other["x"] = np.random.default_rng(seed).permutation(other["x"].to_numpy())
    lost = strongest_dependencies(real, other, SCHEMA)
    assert all(each.most_kept < 0.5 for each in lost if each.columns[0] == "x")


def test_independent_columns_and_few_rows_have_no_dependency() -> None:
    random = np.random.default_rng(0)
    tables = [
        pd.DataFrame({name: random.normal(size=n) for name in ("x", "y")})
        for n in (5, 5, 1_000, 1_000)
    ]
    schema = TableSchema(SCHEMA.columns[:2])
    assert strongest_dependencies(*tables[:2], schema) == []
    assert strongest_dependencies(*tables[2:], schema) == []
