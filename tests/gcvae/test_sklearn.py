"""The estimators of scikit-learn keep its contracts, and read every kind of table."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gcvae import Synthesizer
from gcvae.errors import InputError, SettingError
from gcvae.sklearn import AnomalyDetector, TableImputer
from tests.lengths import first_of

pytestmark = pytest.mark.usefixtures("few_rows")
QUICK: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 5}, "device": "cpu"}
PLAIN: dict[str, Any] = QUICK | {"preset": "paper-vae"}
"""The preset whose fit is the shortest; its models have no anomalies."""
CHECKED: dict[str, Any] = {"settings": {"max_steps": 2}, "random_state": 0}


def mixed(n: int = 60) -> pd.DataFrame:
    """Numbers, texts, dates, truths and categories, each with blanks, under an index."""
    random = np.random.default_rng(0)
    size = random.normal(size=n)
    table = pd.DataFrame(
        {
            "size": size,
            "rooms": pd.array(random.integers(1, 5, n), dtype="Int64"),
            "colour": np.where(size > 0, "red", "blue"),
            "built": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 90, n), "D"),
            "sold": pd.array(random.random(n) < 0.5, dtype="boolean"),
            "grade": pd.Categorical(random.choice(["a", "b", "c"], n)),
        },
        index=pd.Index(np.arange(n) * 3, name="lot"),
    )
    return table.mask(random.random(table.shape) < 0.1)


@pytest.fixture(scope="module")
def imputer() -> TableImputer:
    return TableImputer(**QUICK, random_state=1).fit(mixed())


@pytest.fixture(scope="module")
def detector() -> AnomalyDetector:
    return AnomalyDetector(**QUICK, random_state=1).fit(mixed())


@parametrize_with_checks(
    first_of(TableImputer(**PLAIN | CHECKED), AnomalyDetector(**QUICK | CHECKED))
)
def test_every_check_of_scikit_learn_holds(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_mixed_frame_comes_back_filled_with_known_cells_dtypes_and_index(
    imputer: TableImputer,
) -> None:
    table = mixed()
    filled = imputer.transform(table)
    assert not filled.isna().any().any()
    assert_frame_equal(filled.where(table.notna()), table.where(table.notna()), check_dtype=False)
    assert (filled.dtypes == table.dtypes).all()
    assert filled.index.equals(table.index)
    assert list(imputer.get_feature_names_out()) == list(table.columns)


def test_polars_and_arrow_come_back_as_they_came(imputer: TableImputer) -> None:
    table = mixed().astype({"grade": object})
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    polars = pl.from_arrow(arrow)
    assert isinstance(polars, pl.DataFrame)
    for given, kind in ((polars, pl.DataFrame), (arrow, pa.Table)):
        filled = TableImputer(**PLAIN, random_state=1).fit_transform(given)
        assert isinstance(filled, kind)
        assert sum(pa.table(filled)[name].null_count for name in table) == 0
    detector = AnomalyDetector(**QUICK, random_state=1).fit(polars)
    assert list(detector.feature_names_in_) == list(table)
    assert_array_equal(detector.score_samples(polars), detector.score_samples(arrow))


def test_arrays_of_numbers_and_of_objects_keep_their_dtype_and_known_cells() -> None:
    random = np.random.default_rng(1)
    numbers = random.normal(size=(40, 3)).astype(np.float32)
    numbers[random.random(numbers.shape) < 0.1] = np.nan
    objects = mixed()[["size", "colour", "grade"]].astype(object).to_numpy()
    for array in (numbers, objects):
        filled = TableImputer(**PLAIN, random_state=1).fit_transform(array)
        known = pd.notna(array)
        assert filled.dtype == array.dtype
        assert pd.notna(filled).all()
        assert (filled[known] == array[known]).all()
    assert AnomalyDetector(**QUICK, random_state=1).fit(objects).predict(objects).shape == (60,)
    whole = random.integers(0, 9, size=(40, 2))
    assert_array_equal(TableImputer(**PLAIN, random_state=1).fit_transform(whole), whole)


def test_numbers_that_are_all_different_are_filled_unless_the_schema_names_them() -> None:
    table = pd.DataFrame({"income": np.arange(40.0) * 3, "size": np.arange(40) % 7})
    table.loc[3, "income"] = np.nan
    assert TableImputer(**PLAIN).fit_transform(table)["income"].notna().all()
    schema = {"columns": [{"name": "income", "kind": "identifier"}]}
    left = TableImputer(**PLAIN, schema=schema).fit_transform(table)["income"]
    assert left.isna().sum() == 1
    empty = TableImputer(**PLAIN).fit_transform(table.assign(width=np.nan))["width"]
    assert empty.isna().all()
    assert schema == {"columns": [{"name": "income", "kind": "identifier"}]}
    complete = TableImputer(**PLAIN, schema=schema).fit(table).model_.schema
    assert TableImputer(**PLAIN, schema=complete).fit(table).model_.schema == complete


def test_frames_without_names_are_numbered_as_arrays_are() -> None:
    table = pd.DataFrame(np.random.default_rng(2).normal(size=(30, 2))).mask(lambda x: x > 1)
    imputer = TableImputer(**PLAIN, random_state=1).fit(table)
    assert list(imputer.get_feature_names_out()) == ["x0", "x1"]
    assert not hasattr(imputer, "feature_names_in_")
    assert_allclose(imputer.transform(table), imputer.transform(table.to_numpy()))
    assert list(imputer.transform(table).columns) == [0, 1]


def test_columns_come_in_any_order_and_no_others_come(
    imputer: TableImputer, detector: AnomalyDetector
) -> None:
    table = mixed()
    turned = table[table.columns[::-1]]
    assert_frame_equal(imputer.transform(turned), imputer.transform(table))
    assert_array_equal(detector.score_samples(turned), detector.score_samples(table))
    for estimator in (imputer.transform, detector.predict):
        with pytest.raises(ValueError, match="missing:\n- size"):
            estimator(table.drop(columns="size"))
        with pytest.raises(ValueError, match="unseen at fit time:\n- width"):
            estimator(table.assign(width=1.0))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("given", ["array", "frame"])
def test_set_output_decides_the_kind_of_the_output(kind: str, given: str) -> None:
    table = mixed()[["size"]].assign(width=lambda t: t["size"] * 2 + 1).astype(float)
    X = table.to_numpy() if given == "array" else table
    imputer = TableImputer(**PLAIN, random_state=1).set_output(transform=kind)
    filled = imputer.fit_transform(X)
    assert isinstance(filled, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    assert list(filled.columns) == (["x0", "x1"] if given == "array" else ["size", "width"])


def test_of_many_draws_the_median_and_the_mode_come() -> None:
    table = mixed()
    many = TableImputer(**PLAIN, n_draws=5, random_state=1).fit(table)
    draws = many.model_.impute(table, draws=5, seed=1)
    row = table["size"].isna().to_numpy().argmax()
    of_row = draws[5 * row : 5 * row + 5]
    filled = many.transform(table)
    assert filled["size"].iloc[row] == of_row["size"].sort_values().iloc[2]
    row = table["grade"].isna().to_numpy().argmax()
    counts = draws["grade"].iloc[5 * row : 5 * row + 5].value_counts()
    assert counts[filled["grade"].iloc[row]] == counts.max()
    assert (filled.dtypes == table.dtypes).all()
    assert filled.index.equals(table.index)


def test_scores_are_finite_logarithms_of_p_values(detector: AnomalyDetector) -> None:
    table = mixed()
    odd = table.assign(colour=table["colour"].where(table.index > 30, "green"))
    scores = detector.score_samples(odd)
    assert np.isfinite(scores).all()
    assert (scores <= 0).all()
    assert (detector.predict(odd)[odd["colour"] == "green"] == -1).all()
    p = detector.model_.log_likelihood(table)["anomaly"]
    assert np.corrcoef(np.exp(detector.score_samples(table)), p)[0, 1] > 0.85
    assert detector.offset_ == pytest.approx(np.log(0.01))


def test_a_row_scores_alike_in_any_company(detector: AnomalyDetector) -> None:
    table = mixed()
    alone = [detector.score_samples(table.iloc[[i]])[0] for i in (0, 7, 31)]
    assert_allclose(alone, detector.score_samples(table)[[0, 7, 31]], rtol=1e-6)


def test_contamination_is_the_share_of_outliers() -> None:
    table = pd.DataFrame(np.random.default_rng(3).normal(size=(400, 3)), columns=list("abc"))
    detector = AnomalyDetector(**QUICK, contamination=0.1, random_state=1)
    assert (detector.fit_predict(table) == -1).mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("share", [0.0, 0.6, "some", None])
def test_contamination_out_of_range_is_refused(share: Any) -> None:
    with pytest.raises(ValueError, match="contamination"):
        AnomalyDetector(**QUICK, contamination=share).fit(mixed())


def test_what_can_not_be_learned_is_refused() -> None:
    with pytest.raises(ValueError, match="n_draws"):
        TableImputer(**PLAIN, n_draws=0).fit(mixed())
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        TableImputer(**PLAIN).fit(mixed().head(1))
    with pytest.raises(ValueError, match="infinity"):
        TableImputer(**PLAIN).fit(np.array([[1.0, np.inf], [2.0, 3.0]]))
    with pytest.raises(SettingError, match="anomalies"):
        AnomalyDetector(**QUICK | {"preset": "paper-vae"}, random_state=1).fit(mixed())
    with pytest.raises(InputError):
        TableImputer(**QUICK | {"preset": "quick"}).fit(mixed())


def test_the_random_state_is_the_seed() -> None:
    table = mixed()
    first = TableImputer(**PLAIN, random_state=5).fit(table)
    assert first.seed_ == 5
    assert_frame_equal(
        first.transform(table), TableImputer(**PLAIN, random_state=5).fit_transform(table)
    )
    drawn = [TableImputer(**PLAIN, random_state=np.random.RandomState(5)).fit(table).seed_]
    drawn += [TableImputer(**PLAIN, random_state=np.random.RandomState(5)).fit(table).seed_]
    assert drawn[0] == drawn[1]
    unseeded = TableImputer(**PLAIN)
    assert unseeded.fit(table).seed_ != unseeded.fit(table).seed_


def test_both_are_cloned_and_pickled(imputer: TableImputer, detector: AnomalyDetector) -> None:
    table = mixed()
    assert clone(imputer).get_params() == imputer.get_params()
    assert not hasattr(clone(detector), "model_")
    assert_frame_equal(
        pickle.loads(pickle.dumps(imputer)).transform(table), imputer.transform(table)
    )
    again = pickle.loads(pickle.dumps(detector))
    assert_array_equal(again.score_samples(table), detector.score_samples(table))


def test_the_imputer_is_a_step_that_a_search_tries() -> None:
    table = mixed()[["size", "rooms"]].astype(float)
    target = np.arange(len(table)) % 2
    steps = make_pipeline(
        TableImputer(**PLAIN, random_state=1), StandardScaler(), LogisticRegression()
    )
    search = GridSearchCV(steps, {"tableimputer__n_draws": [1, 3]}, cv=2).fit(table, target)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    detectors = make_pipeline(
        TableImputer(**PLAIN, random_state=1), AnomalyDetector(**QUICK, random_state=1)
    )
    assert set(detectors.fit(table).predict(table)) <= {-1, 1}


def test_the_library_loads_without_scikit_learn_and_without_these() -> None:
    script = "import sys, gcvae; assert not {'sklearn', 'gcvae.sklearn', 'torch'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_synthesizer_that_is_built_first_learns_the_same() -> None:
    table, given = mixed(), {"columns": [{"name": "rooms", "kind": "categorical"}]}
    asked = {"schema": given, "preset": "fast", "settings": QUICK["settings"], "seed": 3}
    built = Synthesizer(**asked, device="cpu")
    assert repr(built) == "<Synthesizer: preset fast, not fitted yet>"
    assert not hasattr(built, "codec")
    with pytest.raises(AttributeError, match=r"\.fit\(table\) is to come first"):
        built.sample(3)
    assert built.fit(table) is built
    at_once = Synthesizer.fit(table, **asked, device="cpu")  # seconds of training are its own
    assert built.to_bytes(minimal=True) == at_once.to_bytes(minimal=True)
    assert {name: built.arguments[name] for name in asked} == asked
    assert built.arguments["schema"] is given
    first = built.to_bytes()
    with pytest.raises(InputError):
        built.fit(table.iloc[:0])
    assert built.to_bytes() == first
    assert built.fit(table.tail(30)).to_bytes() != first
