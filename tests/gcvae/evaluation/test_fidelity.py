"""The fidelity measures: laws, and the published definitions worked out by hand."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks.quality.measures import floor
from gcvae.errors import TableError
from gcvae.evaluation.fidelity import (
    classifier_two_sample_auc,
    shape_error,
    trend_error,
    two_way_tv,
)
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

MEASURES = [shape_error, trend_error, two_way_tv]


def schema_of(**kinds: str) -> TableSchema:
    """A schema of columns that may have missing cells; levels are those of the frames below."""
    levels = {"boolean": [False, True], "categorical": ["a", "b", "c"], "ordinal": [1, 2, 3]}
    columns = [
        {"name": name, "kind": kind, "missing": {"allowed": True, "markers": [""]}}
        | ({"levels": levels[kind]} if kind in levels else {})
        | ({"datetime_format": "%Y-%m-%d"} if kind == "datetime" else {})
        for name, kind in kinds.items()
    ]
    return TableSchema.from_json({"version": 1, "columns": columns})


MIXED = schema_of(
    x="continuous", n="integer", k="categorical", o="ordinal", b="boolean", t="datetime"
)


def mixed_frame(n: int, seed: int, *, blanks: bool = True) -> pd.DataFrame:
    """Columns of every kind that depend on one another, with missing cells in three of them."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(
        np.rint(100 + 30 * x).astype(int), unit="D"
    )
    frame = pd.DataFrame(
        {
            "x": x,
            "n": np.rint(10 * x + random.normal(size=n)).astype(np.int64),
            "k": np.array(["a", "b", "c"], dtype=object)[np.digitize(x, [-0.5, 0.8])],
            "o": random.integers(1, 4, n),
            "b": random.random(n) < 0.3,
            "t": days.astype("datetime64[ns]"),
        }
    )
    if blanks:
        for name in ("x", "k", "t"):
            frame.loc[random.random(n) < 0.1, name] = None
    return frame


@pytest.mark.parametrize("measure", MEASURES)
def test_equal_tables_have_no_error(measure) -> None:
    frame = mixed_frame(500, 0)
    error = measure(frame, frame.copy(), MIXED)
    assert error.value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_order_of_rows_does_not_matter(measure) -> None:
    real, synthetic = mixed_frame(500, 0), mixed_frame(400, 1)
    turned = synthetic.sample(frac=1, random_state=0).reset_index(drop=True)
    expected = measure(real, synthetic, MIXED).value
    assert measure(real, turned, MIXED).value == pytest.approx(expected)


@pytest.mark.parametrize("measure", MEASURES)
def test_errors_are_shares(measure) -> None:
    real, synthetic = mixed_frame(300, 0), mixed_frame(50, 1)
    synthetic["x"] = 1e300
    synthetic["k"] = "z"
    error = measure(real, synthetic, MIXED)
    each = list(error.each.values())
    assert all(0 <= value <= 1 for value in each)
    assert error.value == pytest.approx(np.mean(each))


def test_columns_shuffled_by_themselves_keep_their_shape_and_lose_their_trend() -> None:
    real, random = mixed_frame(2_000, 0), np.random.default_rng(5)
    shuffled = pd.DataFrame({c: real[c].to_numpy()[random.permutation(len(real))] for c in real})
    shuffled["k"] = shuffled["k"].astype(object)
    assert shape_error(real, shuffled, MIXED).value == pytest.approx(0.0, abs=1e-12)
    for measure in (trend_error, two_way_tv):
        error = measure(real, shuffled, MIXED)
        assert error.value > 3 * floor(real, MIXED, measure, n_bootstraps=3).value
        assert error.each["x", "n"] > 0.3
        assert error.each["o", "b"] < 0.05


def test_the_shape_of_numbers_is_the_largest_gap_between_two_distributions() -> None:
    real = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    synthetic = pd.DataFrame({"x": [1.0, 1.0, 1.0, 4.0, 5.0]})
    # At 1: 1/4 and 3/5. At 3: 3/4 and 3/5. At 4: 1 and 4/5.
    assert shape_error(real, synthetic, schema_of(x="continuous")).value == pytest.approx(0.35)


def test_missing_numbers_count_as_a_share_of_their_own() -> None:
    real = pd.DataFrame({"x": [1.0, 2.0, np.nan, np.nan]})
    synthetic = pd.DataFrame({"x": [1.0, 2.0, 1.0, 2.0]})
    # Of all rows: at 1 ¼ and ½, at 2 ½ and 1.
    assert shape_error(real, synthetic, schema_of(x="continuous")).value == pytest.approx(0.5)


def test_the_shape_of_dates_is_that_of_their_days() -> None:
    dates = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", None])
    real = pd.DataFrame({"t": dates.astype("datetime64[ns]")})
    synthetic = real.assign(t=real["t"] + pd.Timedelta(days=1))
    assert shape_error(real, synthetic, schema_of(t="datetime")).value == pytest.approx(0.25)


def test_the_shape_of_levels_is_half_the_sum_of_differences_with_missing_a_level() -> None:
    real = pd.DataFrame({"k": ["a", "a", "b", None]})
    synthetic = pd.DataFrame({"k": ["a", "b", "c", "c"]})
    # a ½ − ¼, b 0, c ½, missing ¼: half of 1.
    assert shape_error(real, synthetic, schema_of(k="categorical")).value == pytest.approx(0.5)


def test_the_trend_of_two_numbers_is_half_the_difference_of_correlations() -> None:
    real = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan], "y": [2.0, 4.0, 6.0, -50.0]})
    synthetic = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 3.0, 2.0]})  # r = 1/2
    error = trend_error(real, synthetic, schema_of(x="continuous", y="continuous"))
    assert error.each == {("x", "y"): pytest.approx(0.25)}


def test_the_trend_of_a_constant_column_takes_its_correlation_for_zero() -> None:
    real = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    synthetic = real.assign(y=7.0)
    error = trend_error(real, synthetic, schema_of(x="continuous", y="continuous"))
    assert error.value == pytest.approx(0.5)


def test_the_trend_of_two_level_columns_is_the_total_variation_of_their_table() -> None:
    real = pd.DataFrame({"k": ["a", "a", "b", "b"], "b": [True, True, False, False]})
    synthetic = pd.DataFrame({"k": ["a", "a", "b", "b"], "b": [True, False, True, False]})
    # (a, T) ½ − ¼, (a, F) ¼, (b, T) ¼, (b, F) ½ − ¼: half of 1.
    error = trend_error(real, synthetic, schema_of(k="categorical", b="boolean"))
    assert error.value == pytest.approx(0.5)


def test_the_trend_of_a_number_and_a_level_has_bins_of_each_tables_own_range() -> None:
    schema = schema_of(x="continuous", k="categorical")
    real = pd.DataFrame({"x": [0.0, 1.0, 2.0, 10.0], "k": ["a", "a", "b", "b"]})
    scaled = real.assign(x=real["x"] * 7)
    assert trend_error(real, scaled, schema).value == 0.0  # the same bins, of another range
    without_extreme = real.assign(x=[0.0, 1.0, 2.0, 2.0])
    # Bins 1, 2, 3, 11 against 1, 6, 11, 11: of the cells (bin, level) (1, a) and one (11, b) agree.
    assert trend_error(real, without_extreme, schema).value == pytest.approx(0.5)


def test_two_way_tables_have_the_quantile_bins_of_the_real_table() -> None:
    schema = schema_of(x="continuous", k="categorical")
    real = pd.DataFrame({"x": np.arange(100.0), "k": "a"})
    shifted = real.assign(x=real["x"] + 10)  # one of ten bins on, the last ones fall together
    assert two_way_tv(real, shifted, schema).value == pytest.approx(0.1)
    stretched = real.assign(x=np.where(real["x"] == 99, 1e9, real["x"]))
    assert two_way_tv(real, stretched, schema).value == 0.0


def test_two_way_tables_see_what_is_beyond_a_value_that_nearly_all_rows_have() -> None:
    schema = schema_of(x="continuous", k="categorical")
    real = pd.DataFrame({"x": [0.0] * 95 + [5.0] * 5, "k": "a"})
    assert two_way_tv(real, real.assign(x=0.0), schema).value == pytest.approx(0.05)
    assert two_way_tv(real, real.assign(x=3.0), schema).value == pytest.approx(0.95)


def test_two_way_tables_keep_ten_levels_apart_and_pool_the_rest() -> None:
    names = [f"level {i}" for i in range(13)]
    cells = np.repeat(names, [20] * 10 + [1, 1, 1])
    schema = TableSchema.from_json(
        {
            "version": 1,
            "columns": [
                {"name": "k", "kind": "categorical", "levels": names},
                {"name": "b", "kind": "boolean", "levels": [False, True]},
            ],
        }
    )
    real = pd.DataFrame({"k": cells.astype(object), "b": True})
    rare_swapped = real.replace({"k": {"level 11": "level 12"}})
    assert two_way_tv(real, rare_swapped, schema).value == 0.0
    never_seen = real.replace({"k": {"level 11": "new"}})
    assert two_way_tv(real, never_seen, schema).value == 0.0
    frequent = real.replace({"k": {"level 0": "level 1"}})
    assert two_way_tv(real, frequent, schema).value == pytest.approx(20 / 203)


def test_identifiers_constants_and_dropped_columns_are_not_measured() -> None:
    document = MIXED.to_json()
    document["columns"] += [
        {"name": "id", "kind": "identifier"},
        {"name": "c", "kind": "constant"},
        {"name": "d", "kind": "integer", "drop": True},
    ]
    frame = mixed_frame(100, 0)
    error = shape_error(frame, frame, TableSchema.from_json(document))
    assert set(error.each) == set(MIXED.names)


def test_the_floor_is_what_a_second_sample_of_the_same_distribution_scores() -> None:
    real = mixed_frame(2_000, 0)
    for measure in (shape_error, two_way_tv):
        expected = np.mean([measure(real, mixed_frame(2_000, s), MIXED).value for s in range(1, 6)])
        assert floor(real, MIXED, measure).value == pytest.approx(expected, rel=0.25)


def test_the_floor_falls_with_the_root_of_the_rows() -> None:
    few, many = mixed_frame(500, 0), mixed_frame(8_000, 0)
    ratio = floor(few, MIXED, two_way_tv).value / floor(many, MIXED, two_way_tv).value
    assert ratio == pytest.approx(math.sqrt(8_000 / 500), rel=0.2)


def test_trees_can_not_tell_two_samples_of_one_distribution() -> None:
    answer = classifier_two_sample_auc(mixed_frame(1_500, 0), mixed_frame(2_000, 1), MIXED)
    assert answer.value == pytest.approx(0.5, abs=0.04)
    assert answer.n_rows == 1_500
    assert len(answer.folds) == 5


def test_trees_tell_a_table_whose_columns_do_not_depend_on_each_other() -> None:
    real, random = mixed_frame(1_000, 0), np.random.default_rng(5)
    shuffled = real.assign(k=real["k"].to_numpy()[random.permutation(len(real))])
    assert classifier_two_sample_auc(real, shuffled, MIXED).value > 0.7


def test_trees_see_what_is_missing() -> None:
    full, holes = mixed_frame(400, 0, blanks=False), mixed_frame(400, 1, blanks=False)
    holes.loc[:200, "x"] = np.nan
    assert classifier_two_sample_auc(full, holes, MIXED).value > 0.7


def test_the_area_repeats_with_its_seed() -> None:
    real, synthetic = mixed_frame(200, 0), mixed_frame(200, 1)
    first = classifier_two_sample_auc(real, synthetic, MIXED, n_repeats=2, seed=3)
    assert first == classifier_two_sample_auc(real, synthetic, MIXED, n_repeats=2, seed=3)
    assert len(first.folds) == 10


def test_a_table_of_fewer_rows_than_folds_is_refused() -> None:
    with refuses(TableError):
        classifier_two_sample_auc(mixed_frame(3, 0), mixed_frame(50, 1), MIXED)


def test_text_in_a_column_of_numbers_is_named() -> None:
    real = mixed_frame(10, 0)
    with refuses(TableError, column="n"):
        shape_error(real, real.assign(n="many"), MIXED)


def test_the_measures_load_without_torch_and_scikit_learn() -> None:
    modules = ", ".join(
        f"gcvae.evaluation.{name}" for name in ("fidelity", "report.utility", "report.privacy")
    )
    check = f"import sys, {modules}; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


def test_columns_of_more_levels_than_trees_take_are_pooled() -> None:
    names = [f"level {i}" for i in range(600)]
    schema = TableSchema.from_json(
        {
            "version": 1,
            "columns": [
                {"name": "k", "kind": "categorical", "levels": names},
                {"name": "x", "kind": "continuous"},
            ],
        }
    )
    random = np.random.default_rng(0)
    tables = [
        pd.DataFrame({"k": random.choice(names, 900).astype(object), "x": random.random(900)})
        for _ in range(2)
    ]
    assert classifier_two_sample_auc(*tables, schema).value == pytest.approx(0.5, abs=0.08)
