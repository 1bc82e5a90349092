"""Train on synthetic, test on real."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.quality.measures import utility
from gcvae.errors import TableError, UnknownColumnError
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses


def schema_of(target: dict[str, object]) -> TableSchema:
    columns = [{"name": "x", "kind": "continuous"}, {"name": "y", "kind": "continuous"}, target]
    return TableSchema.from_json({"version": 1, "columns": columns})


TWO = schema_of({"name": "t", "kind": "categorical", "levels": ["no", "yes"]})
THREE = schema_of({"name": "t", "kind": "categorical", "levels": ["low", "middle", "high"]})
NUMBER = schema_of({"name": "t", "kind": "continuous"})


def rows(n: int, seed: int, schema: TableSchema) -> pd.DataFrame:
    """Rows whose target is the sum of the other columns, or where it falls."""
    x, y = np.random.default_rng(seed).normal(size=(2, n))
    total, levels = x + y, schema["t"].levels
    if levels is not None:
        edges = [0.0] if len(levels) == 2 else [-0.7, 0.7]
        total = np.array(levels, dtype=object)[np.digitize(total, edges)]
    return pd.DataFrame({"x": x, "y": y, "t": total})


@pytest.mark.parametrize(
    ("schema", "measure"), [(TWO, "auc"), (THREE, "macro-auc"), (NUMBER, "r2")]
)
def test_a_second_sample_is_as_useful_as_the_first(schema: TableSchema, measure: str) -> None:
    answer = utility(rows(600, 0, schema), rows(600, 1, schema), rows(400, 2, schema), schema, "t")
    assert answer.measure == measure
    assert answer.real > 0.95
    assert answer.value == pytest.approx(answer.real, abs=0.02)


@pytest.mark.parametrize("schema", [TWO, THREE])
def test_a_target_that_knows_nothing_of_the_rest_is_useless(schema: TableSchema) -> None:
    synthetic = rows(4_000, 1, schema)
    synthetic["t"] = synthetic["t"].sample(frac=1, random_state=0).to_numpy()
    answer = utility(rows(600, 0, schema), synthetic, rows(2_000, 2, schema), schema, "t")
    assert answer.value == pytest.approx(0.5, abs=0.1)


def test_a_class_that_was_never_made_is_not_told_from_the_rest() -> None:
    synthetic = rows(600, 1, THREE)
    synthetic = synthetic[synthetic["t"] != "middle"]
    answer = utility(rows(600, 0, THREE), synthetic, rows(400, 2, THREE), THREE, "t")
    assert 0.6 < answer.value < 0.9  # two of three classes, and one at 0.5


def test_a_table_of_one_class_is_worth_a_coin() -> None:
    synthetic = rows(100, 1, TWO).assign(t="yes")
    assert utility(rows(300, 0, TWO), synthetic, rows(100, 2, TWO), TWO, "t").value == 0.5


def test_rows_without_the_target_are_left_out() -> None:
    schema = NUMBER
    train, test = rows(400, 0, schema), rows(200, 1, schema)
    holes = train.assign(t=train["t"].where(train.index % 2 == 0))
    holes_in_test = pd.concat([test, test.assign(t=np.nan)])
    answer = utility(train, holes, holes_in_test, schema, "t")
    assert answer.value == utility(train, train[::2], test, schema, "t").value


def test_an_unknown_target_and_test_rows_of_one_class_are_refused() -> None:
    train = rows(100, 0, TWO)
    with pytest.raises(UnknownColumnError):
        utility(train, train, train, TWO, "z")
    with refuses(TableError):
        utility(train, train, train.assign(t="yes"), TWO, "t")
