"""What a careful reader sees is seen, and chance is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.known_truth.orders import draw_orders
from gcvae import infer_schema
from gcvae.cells.values import parse_table
from gcvae.errors import TableError
from gcvae.evaluation.fidelity import c2st_fine, classifier_two_sample_auc
from gcvae.evaluation.fine_features import MOST_PAIRS, fit_fine_features
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

TEXT = draw_orders(1_200, 0)
SCHEMA = infer_schema(TEXT).schema
TRAIN, HELD_OUT, DRAWN = (parse_table(draw_orders(1_200, s), SCHEMA) for s in (0, 1, 2))


def area(drawn: pd.DataFrame) -> float:
    return c2st_fine(TRAIN, drawn, SCHEMA, held_out=HELD_OUT, n_folds=3).value


def column_schema(*columns: dict[str, object]) -> TableSchema:
    missing = {"allowed": True, "markers": [""]}
    return TableSchema.from_json({"columns": [{"missing": missing} | c for c in columns]})


def numbers_schema(*names: str) -> TableSchema:
    return column_schema(*({"name": name, "kind": "continuous"} for name in names))


def derived(frame: pd.DataFrame, schema: TableSchema, train: pd.DataFrame | None = None):
    """The features beside the plain columns; of the training table itself where none is given."""
    features = fit_fine_features(frame if train is None else train, schema)
    cells = features.matrix(frame, are_training_rows=train is None)
    return cells[:, len(features.plain.columns) :]


def test_real_rows_can_not_be_told_from_held_out_ones() -> None:
    assert area(DRAWN) == pytest.approx(0.5, abs=0.04)


def test_real_rows_can_not_be_told_from_training_ones() -> None:
    assert c2st_fine(TRAIN, DRAWN, SCHEMA, n_folds=3).value == pytest.approx(0.5, abs=0.04)


def test_a_lost_ending_is_seen() -> None:
    random = np.random.default_rng(0)
    free = DRAWN["price"] + random.integers(-45, 46, len(DRAWN)) / 100
    broken = DRAWN.assign(price=free.round(2))
    assert area(broken) > 0.95


def test_a_broken_sum_is_seen_by_the_linear_fit_and_hardly_without() -> None:
    random = np.random.default_rng(1)
    schema = numbers_schema("a", "b", "total")

    def table(n: int, error: float) -> pd.DataFrame:
        a, b = random.gamma(2, 300, n).round(2), random.gamma(2, 400, n).round(2)
        return pd.DataFrame(
            {"a": a, "b": b, "total": a + b + error * random.normal(size=n).round(2)}
        )

    tables = table(1_000, 0), table(1_000, 5)
    assert c2st_fine(*tables, schema, held_out=table(1_000, 0)).value > 0.97
    assert classifier_two_sample_auc(*tables, schema).value < 0.6


def test_a_lost_time_of_day_is_seen() -> None:
    moved = DRAWN["ordered"].dt.normalize() + pd.Timedelta(hours=9)
    assert area(DRAWN.assign(ordered=moved)) > 0.95


def test_an_end_before_its_start_is_seen() -> None:
    random = np.random.default_rng(2)
    minutes = pd.to_timedelta(random.integers(-600, 600, len(DRAWN)), unit="min")
    assert area(DRAWN.assign(shipped=DRAWN["ordered"] + minutes)) > 0.9


def test_pairs_of_levels_that_never_stood_together_are_seen() -> None:
    random = np.random.default_rng(3)
    swapped = np.where(random.random(len(DRAWN)) < 0.5, "Norway", DRAWN["country"])
    assert area(DRAWN.assign(country=swapped.astype(object))) > 0.7


def test_remainders_are_those_of_decimals_and_not_of_floats() -> None:
    schema = numbers_schema("x")
    x = np.append(np.arange(1, 400) / 10, np.nan)
    found = derived(pd.DataFrame({"x": x}), schema)
    tenths = np.append(np.arange(1, 400), np.nan)
    expected = [np.mod(tenths, m) / 10 for m in (10, 50, 100, 1_000, 1, 5, 10, 100)]
    assert found[:, :8] == pytest.approx(np.stack(expected, axis=1), nan_ok=True)


def test_one_cell_with_many_decimals_does_not_give_them_to_all() -> None:
    x = np.append(np.arange(1.0, 100.0), 0.123456)
    features = fit_fine_features(pd.DataFrame({"x": x}), numbers_schema("x"))
    assert features.decimals == {"x": 0}


def test_the_linear_fit_leaves_nothing_of_a_sum_and_the_error_of_a_broken_one() -> None:
    random = np.random.default_rng(4)
    a, b = random.normal(size=(2, 300)).round(3)
    train = pd.DataFrame({"a": a, "b": b, "y": 3 + 2 * a - b})
    broken = train.assign(y=train["y"] + np.where(np.arange(300) < 10, -0.5, 0.0))
    features = fit_fine_features(train, numbers_schema("a", "b", "y"))
    numbers = {name: broken[name].to_numpy() for name in broken}
    remainder = features.fits["y"].remainder(numbers["y"], numbers)
    assert remainder[:10] == pytest.approx(-0.5, abs=1e-6)
    assert remainder[10:] == pytest.approx(0.0, abs=1e-6)


def test_a_term_that_is_missing_in_nearly_all_rows_is_left_out_of_fits() -> None:
    random = np.random.default_rng(5)
    a, rare = random.normal(size=(2, 300))
    rare[5:] = np.nan
    train = pd.DataFrame({"a": a, "rare": rare, "y": 2 * a})
    features = fit_fine_features(train, numbers_schema("a", "rare", "y"))
    assert features.fits["y"].terms == ("a",)


def test_columns_without_cells_are_no_trouble() -> None:
    schema = numbers_schema("x", "y")
    frame = pd.DataFrame({"x": np.full(40, np.nan), "y": np.arange(40.0)})
    found = derived(frame, schema)
    assert np.isnan(found[:, :4]).all()  # the remainders of x
    assert np.isfinite(found[:, 4:8]).all()


def test_a_pair_of_a_training_row_has_to_stand_in_another_one() -> None:
    levels = [{"name": n, "kind": "categorical", "levels": list("abc")} for n in ("k", "l")]
    schema = column_schema(*levels)
    train = pd.DataFrame({"k": ["a", "a", "b", None], "l": ["b", "b", "c", "c"]}, dtype=object)
    assert derived(train, schema)[:, 0].tolist() == [1, 1, 0, 0]
    others = pd.DataFrame({"k": ["a", "b", None, "z"], "l": ["b", "b", "c", "c"]}, dtype=object)
    assert derived(others, schema, train)[:, 0].tolist() == [1, 0, 1, 0]


def test_of_very_many_pairs_the_dependent_ones_are_taken() -> None:
    random = np.random.default_rng(6)
    names = [f"k{i}" for i in range(25)]
    cells = {name: random.choice(list("abc"), 400).astype(object) for name in names}
    cells["k24"] = cells["k3"]
    schema = column_schema(
        *({"name": name, "kind": "categorical", "levels": list("abc")} for name in names)
    )
    pairs = fit_fine_features(pd.DataFrame(cells), schema).level_pairs
    assert len(pairs) == MOST_PAIRS
    assert ("k3", "k24") in pairs


def test_the_order_of_columns_and_their_script_do_not_matter() -> None:
    names = {name: f"列 {name}" for name in SCHEMA.names}
    columns = [column | {"name": names[column["name"]]} for column in SCHEMA.to_json()["columns"]]
    turned = TableSchema.from_json({"columns": columns[::-1]})
    tables = [table.rename(columns=names) for table in (TRAIN, DRAWN, HELD_OUT)]
    found = c2st_fine(tables[0], tables[1], turned, held_out=tables[2], n_folds=3).value
    assert found == pytest.approx(area(DRAWN), abs=0.03)


def test_fewer_rows_than_folds_are_refused() -> None:
    with refuses(TableError):
        c2st_fine(TRAIN, DRAWN[:3], SCHEMA)
