"""Figures of a report beside the same from their definitions, with SciPy and scikit-learn."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau, ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, roc_auc_score

from gcvae import infer_schema
from gcvae.evaluation.report.documents import Part
from gcvae.evaluation.report.fidelity import fidelity_part
from gcvae.evaluation.report.privacy import privacy_part
from gcvae.evaluation.report.rows import ReportRows
from gcvae.evaluation.report.utility import utility_part

_N = 400
_NUMBERS, _LEVELS = ["x", "y"], ["k", "b"]


def _table(seed: int, shift: float = 0.0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    x = random.normal(shift, 1, _N)
    return pd.DataFrame(
        {
            "x": x,
            "y": 2 * x + random.normal(size=_N),
            "k": np.array(list("abc"), dtype=object)[np.digitize(x, [-1, 0.7])],
            "b": np.where(x + random.normal(size=_N) > 0, "да", "нет"),
        }
    )


MEMBERS, UNSEEN, REFERENCE, DRAWN = _table(1), _table(2), _table(3), _table(4, 0.3)
ROWS = ReportRows(infer_schema(MEMBERS).schema, MEMBERS, REFERENCE, UNSEEN, DRAWN, True, True)


@pytest.fixture(scope="module")
def fidelity() -> dict[str, Any]:
    return _by_name(fidelity_part(ROWS, seed=0)[0])


@pytest.fixture(scope="module")
def attacks() -> dict[str, Any]:
    part = privacy_part(ROWS, {}, _N, mismatch=None, seed=0)
    return {found["name"]: found for found in part.tables["attacks"]}


def _by_name(part: Part) -> dict[str, Any]:
    return {figure.name: figure for figure in part.figures}


def _levels_apart(a: pd.Series[Any], b: pd.Series[Any]) -> float:
    p, q = a.value_counts(normalize=True), b.value_counts(normalize=True)
    return float(p.sub(q, fill_value=0).abs().sum() / 2)


def _pairs_of(table: pd.DataFrame, one: str, two: str) -> pd.Series[Any]:
    """Both cells as one text; a number is its tenth of the range that it has in its table."""
    parts = []
    for name in (one, two):
        if name in _NUMBERS:
            low, high = table[name].min(), table[name].max()
            parts.append(np.floor((table[name] - low) / (high - low) * 10).astype(int).astype(str))
        else:
            parts.append(table[name])
    return parts[0] + "|" + parts[1]


def _column_difference(real: pd.DataFrame, other: pd.DataFrame) -> float:
    numbers = [ks_2samp(real[name], other[name]).statistic for name in _NUMBERS]
    return float(np.mean(numbers + [_levels_apart(real[n], other[n]) for n in _LEVELS]))


def _trend_difference(real: pd.DataFrame, other: pd.DataFrame) -> float:
    found = []
    for one, two in combinations(_NUMBERS + _LEVELS, 2):
        if one in _NUMBERS and two in _NUMBERS:
            r = [np.corrcoef(table[one], table[two])[0, 1] for table in (real, other)]
            found.append(abs(r[0] - r[1]) / 2)
        else:
            found.append(_levels_apart(*(_pairs_of(t, one, two) for t in (real, other))))
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("name", "recomputed"), [("columns", _column_difference), ("trends", _trend_difference)]
)
def test_distances_and_their_floors(name: str, recomputed: Any, fidelity: dict[str, Any]) -> None:
    assert fidelity[name].value == pytest.approx(recomputed(UNSEEN, DRAWN), abs=1e-6)
    assert fidelity[name].floor == pytest.approx(recomputed(UNSEEN, MEMBERS), abs=1e-6)


def test_the_difference_of_tau(fidelity: dict[str, Any]) -> None:
    taus = [kendalltau(table["x"], table["y"]).statistic for table in (UNSEEN, DRAWN)]
    assert fidelity["tau"].value == pytest.approx(abs(taus[0] - taus[1]), abs=1e-6)


def _places(table: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Numbers in units of the spread of what attackers have, levels at the corners of a simplex."""
    known = pd.concat([REFERENCE, DRAWN])
    axes = []
    for name in _NUMBERS:
        low, middle, high = np.quantile(known[name], [0.25, 0.5, 0.75])
        axes.append(np.arcsinh((table[name] - middle) / ((high - low) / 1.349)))
    for name in _LEVELS:
        axes += [(table[name] == level) * np.sqrt(0.5) for level in sorted(known[name].unique())]
    return np.stack(axes, axis=1).astype(np.float64)


def test_the_attacks_by_distance(attacks: dict[str, Any]) -> None:
    attacked = np.concatenate([_places(MEMBERS), _places(UNSEEN)])
    to_drawn, to_reference = (cdist(attacked, _places(t)).min(axis=1) for t in (DRAWN, REFERENCE))
    is_member = np.repeat([1, 0], _N)
    assert attacks["distance"]["area"] == pytest.approx(
        roc_auc_score(is_member, -to_drawn), abs=1e-6
    )
    ratio = np.log(to_reference + 1e-6) - np.log(to_drawn + 1e-6)
    isolated = np.argsort(-to_reference, kind="stable")[: round(0.1 * len(attacked))]
    for name, rows in (("distance_ratio", slice(None)), ("distance_ratio_isolated", isolated)):
        expected = roc_auc_score(is_member[rows], ratio[rows])
        assert attacks[name]["area"] == pytest.approx(expected, abs=1e-6)


def test_the_attack_by_density_ratio(attacks: dict[str, Any]) -> None:
    known = pd.concat([DRAWN, REFERENCE])
    codes = {n: {k: i for i, k in enumerate(known[n].value_counts().index)} for n in _LEVELS}

    def matrix(table: pd.DataFrame) -> npt.NDArray[np.float64]:
        columns = [*(table[n] for n in _NUMBERS), *(table[n].map(codes[n]) for n in _LEVELS)]
        return np.stack(columns, axis=1).astype(np.float64)

    trees = HistGradientBoostingClassifier(
        categorical_features=[False, False, True, True],
        class_weight="balanced",
        early_stopping=False,
        max_iter=50,
        random_state=0,
    ).fit(matrix(known), np.repeat([1, 0], _N))
    scores = trees.decision_function(matrix(pd.concat([MEMBERS, UNSEEN])))
    expected = roc_auc_score(np.repeat([1, 0], _N), scores)
    assert attacks["density_ratio"]["area"] == pytest.approx(expected, abs=1e-6)


def test_what_a_linear_model_learns_to_predict() -> None:
    part = utility_part(ROWS, ["y"], seed=0)
    found = next(line for line in part.tables["targets"] if line["learner"] == "linear")
    n_real = part.tables["settings"]["rows_learned_from"]
    for side, table in (("drawn", DRAWN), ("real", MEMBERS)):

        def inputs(rows: pd.DataFrame, known: pd.DataFrame = MEMBERS) -> npt.NDArray[np.float64]:
            low, middle, high = np.quantile(known["x"], [0.25, 0.5, 0.75])
            levels = [rows[n] == level for n in _LEVELS for level in sorted(known[n].unique())]
            x = np.arcsinh((rows["x"] - middle) / ((high - low) / 1.349))
            return np.stack([x, *(of * np.sqrt(0.5) for of in levels)], axis=1).astype(np.float64)

        learned = table.head(n_real)
        ridge = Ridge(1.0).fit(inputs(learned), learned["y"])
        expected = r2_score(UNSEEN["y"], ridge.predict(inputs(UNSEEN)))
        assert found[side] == pytest.approx(expected, abs=1e-6), side
