"""Distances of columns and of pairs beside those of SDMetrics, where that is installed.

    pip install -c constraints.txt -e '.[bench]'
    python -m pytest tests/gcvae/evaluation/test_agreement_with_sdmetrics.py

Its quality report leaves out pairs that depend little on each other; here it takes all of them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae.evaluation.fidelity import shape_error, trend_error
from gcvae.schema.columns import TableSchema

pytest.importorskip("sdmetrics", reason="SDMetrics is not installed (extra `bench`)")

_KINDS = {
    "x": ("continuous", "numerical"),
    "skewed": ("continuous", "numerical"),
    "n": ("integer", "numerical"),
    "дата": ("datetime", "datetime"),
    "k": ("categorical", "categorical"),
    "b": ("boolean", "boolean"),
}
_SCHEMA = TableSchema.from_json(
    {
        "version": 1,
        "columns": [
            {"name": name, "kind": kind}
            | ({"levels": ["a", "b", "c", "d"]} if kind == "categorical" else {})
            | ({"levels": [False, True]} if kind == "boolean" else {})
            | ({"datetime_format": "%Y-%m-%d"} if kind == "datetime" else {})
            for name, (kind, _) in _KINDS.items()
        ],
    }
)


def _table(n_rows: int, seed: int, shift: float) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x = random.normal(shift, 1, n_rows)
    days = pd.to_timedelta(np.rint(90 * x + 20 * random.normal(size=n_rows)), unit="D")
    return pd.DataFrame(
        {
            "x": x,
            "skewed": np.exp(x + random.normal(size=n_rows)),
            "n": np.rint(5 * x + random.normal(size=n_rows)).astype(np.int64),
            "дата": (pd.Timestamp("2021-03-01") + days).astype("datetime64[ns]"),
            "k": np.array(list("abcd"), dtype=object)[np.digitize(x, [-1, 0, 1.5])],
            "b": random.random(n_rows) < 0.3 + shift / 4,
        }
    )


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    return _table(1_500, 1, 0.0), _table(1_200, 2, 0.3)


@pytest.fixture(scope="module")
def quality(tables: tuple[pd.DataFrame, pd.DataFrame]) -> Any:
    metadata = {"columns": {name: {"sdtype": sdtype} for name, (_, sdtype) in _KINDS.items()}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this report will have another name
        from sdmetrics.reports.single_table import QualityReport

        report = QualityReport()
        report.real_correlation_threshold = report.real_association_threshold = 0
        report.generate(*tables, metadata, verbose=False)
    return report


def test_each_columns_distance_is_one_less_its_score(
    tables: tuple[pd.DataFrame, pd.DataFrame], quality: Any
) -> None:
    found = shape_error(*tables, _SCHEMA)
    details = quality.get_details("Column Shapes").set_index("Column")
    for name, error in found.each.items():
        assert error == pytest.approx(1 - details.loc[name, "Score"], abs=1e-6), name
    scores = quality.get_properties().set_index("Property")["Score"]
    assert found.value == pytest.approx(1 - scores["Column Shapes"], abs=1e-6)


def test_each_pairs_difference_of_dependence_is_one_less_its_score(
    tables: tuple[pd.DataFrame, pd.DataFrame], quality: Any
) -> None:
    found = trend_error(*tables, _SCHEMA)
    details = quality.get_details("Column Pair Trends").set_index(["Column 1", "Column 2"])
    assert len(details) == len(found.each)
    for names, error in found.each.items():
        assert error == pytest.approx(1 - details.loc[names, "Score"], abs=1e-6), names
    scores = quality.get_properties().set_index("Property")["Score"]
    assert found.value == pytest.approx(1 - scores["Column Pair Trends"], abs=1e-6)
