"""Row scores are the model's likelihood: masses sum to one, densities integrate to one."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.special import ndtri

from gcvae import Synthesizer
from gcvae.errors import SettingError
from gcvae.scoring.row_scores import SCORE_BLOCK_ROWS
from gcvae.scoring.score_measures import measured
from tests.lengths import PRESETS_TRIED
from tests.wordings import refuses

pytestmark = pytest.mark.usefixtures("few_rows")
QUICK: dict[str, object] = {"max_steps": 30, "evaluate_every_steps": 10, "d_hidden": 32}
N_ROWS = 300
LEVELS: dict[str, list[Any]] = {
    "colour": ["red", "green", "blue"],
    "size": [1, 2, 3, 4],
    "sold": [False, True],
}


def discrete_table(with_blanks: bool) -> pd.DataFrame:
    """Levels, ordered levels and truths that depend on each other; some of them missing."""
    random = np.random.default_rng(0)
    hidden = random.standard_normal(N_ROWS)
    noisy = [hidden + random.standard_normal(N_ROWS) for _ in range(3)]
    frame = pd.DataFrame(
        {
            "colour": np.array(LEVELS["colour"], dtype=object)[np.digitize(noisy[0], [-0.5, 1.0])],
            "size": 1 + np.digitize(noisy[1], [-1.0, 0.0, 1.5]),
            "sold": noisy[2] > 0.3,
        }
    )
    if with_blanks:
        frame = frame.astype(object)
        for name in ("colour", "size"):
            frame.loc[random.choice(N_ROWS, 60, replace=False), name] = None
    return frame


SCHEMA = {
    "columns": [
        {"name": "colour", "kind": "categorical"},
        {"name": "size", "kind": "ordinal"},
        {"name": "sold", "kind": "boolean"},
    ]
}


@cache
def discrete_model(preset: str, with_blanks: bool) -> Synthesizer:
    return Synthesizer.fit(
        discrete_table(with_blanks), schema=SCHEMA, preset=preset, settings=QUICK, device="cpu"
    )


def combinations(levels: dict[str, list[Any]]) -> pd.DataFrame:
    """Every row that can be made of the levels."""
    rows = list(itertools.product(*levels.values()))
    return pd.DataFrame(rows, columns=list(levels), dtype=object)


def total_mass(scores: pd.DataFrame) -> tuple[float, float]:
    """The sum of exp(score) and its standard error."""
    mass = np.exp(scores["log_likelihood"])
    return float(mass.sum()), float(np.sqrt(((mass * scores["standard_error"]) ** 2).sum()))


@pytest.mark.parametrize("with_blanks", [False, True])
@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_the_masses_of_all_combinations_sum_to_one(preset: str, with_blanks: bool) -> None:
    missing = [None] if with_blanks else []
    levels = LEVELS | {name: [*LEVELS[name], *missing] for name in ("colour", "size")}
    scores = discrete_model(preset, with_blanks).log_likelihood(
        combinations(levels), draws=200, score_missingness=with_blanks
    )
    mass, error = total_mass(scores)
    assert abs(mass - 1.0) < 4.0 * error + 1e-4
    assert error < 0.02


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_a_blank_is_the_sum_over_its_outcomes_the_missing_level_included(preset: str) -> None:
    scored = discrete_model(preset, True)
    for name, level in (("colour", None), ("size", None)):
        row = {"colour": ["green"], "size": [2], "sold": [True]} | {name: [level]}
        blank = scored.log_likelihood(pd.DataFrame(row, dtype=object), draws=2000)
        outcomes = combinations({**row, name: [*LEVELS[name], None]})
        each = scored.log_likelihood(outcomes, draws=2000, score_missingness=True)
        mass, error = total_mass(each)
        tolerance = 4.0 * math.hypot(error / mass, float(blank["standard_error"][0])) + 1e-4
        assert abs(float(blank["log_likelihood"][0]) - math.log(mass)) < tolerance


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_a_blank_in_a_column_without_blanks_is_the_sum_over_its_levels(preset: str) -> None:
    scored = discrete_model(preset, False)
    row: dict[str, list[Any]] = {"colour": ["green"], "size": [2], "sold": [True]}
    blank = pd.DataFrame(row | {"size": [None]}, dtype=object)
    integrated = scored.log_likelihood(blank, draws=2000)
    each = scored.log_likelihood(combinations(row | {"size": LEVELS["size"]}), draws=2000)
    mass, error = total_mass(each)
    tolerance = 4.0 * math.hypot(error / mass, float(integrated["standard_error"][0])) + 1e-4
    assert abs(float(integrated["log_likelihood"][0]) - math.log(mass)) < tolerance
    missing = scored.log_likelihood(blank, score_missingness=True)
    assert missing["log_likelihood"][0] == -np.inf


def continuous_table() -> pd.DataFrame:
    """Two dependent columns whose margins are smooth and spread: no value is an atom."""
    random = np.random.default_rng(1)
    hidden = random.standard_normal(N_ROWS)
    noisy = hidden + 0.7 * random.standard_normal(N_ROWS)
    x, y = (ndtri((column.argsort().argsort() + 0.5) / N_ROWS) for column in (hidden, noisy))
    x, y = 2.0 * x, 3.0 * y
    return pd.DataFrame({"x": x.round(2), "y": y.round(2)})


@cache
def continuous_model(preset: str, *columns: str) -> Synthesizer:
    return Synthesizer.fit(
        continuous_table()[list(columns)], preset=preset, settings=QUICK, device="cpu"
    )


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_the_density_of_one_column_integrates_to_one(preset: str) -> None:
    scored = continuous_model(preset, "x")
    axis = np.arange(-900, 900) / 100.0 + 0.0037
    scores = scored.log_likelihood(pd.DataFrame({"x": axis}), draws=20)
    density = np.exp(scores["log_likelihood"])
    error = 0.01 * math.sqrt(float(((density * scores["standard_error"]) ** 2).sum()))
    inside = float(trapezoid(density, axis))
    tails = 0.02 if preset in ("gcvae", "default") else 1e-3
    assert abs(inside - 1.0) < 4.0 * error + tails


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_the_rounding_cells_of_one_column_sum_to_one(preset: str) -> None:
    scored = continuous_model(preset, "x")
    values = np.arange(-1600, 1601, 1) / 100.0
    scores = scored.log_likelihood(pd.DataFrame({"x": values}), draws=10, measure="rounding_cell")
    mass, error = total_mass(scores)
    assert abs(mass - 1.0) < 4.0 * error + 2e-3
    assert scores["percentile"].isna().all()


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_the_density_of_two_columns_integrates_to_one(preset: str) -> None:
    scored = continuous_model(preset, "x", "y")
    x, y = np.arange(-8.0, 8.0, 0.4) + 0.013, np.arange(-13.0, 13.0, 0.4) + 0.017
    grid = pd.DataFrame([(a, b) for a in x for b in y], columns=["x", "y"])
    scores = scored.log_likelihood(grid, draws=15)
    mass, error = total_mass(scores)
    assert abs(mass * 0.16 - 1.0) < 4.0 * error * 0.16 + 0.03


@pytest.mark.parametrize("preset", ["gcvae", "default"])
def test_the_bins_of_a_column_sum_to_one(preset: str) -> None:
    scored = continuous_model(preset, "x")
    grid = pd.DataFrame({"x": np.arange(-1500, 1500) / 100.0 + 0.0013})
    rows = scored.codec.encode(grid)
    bins = measured(scored.codec, rows, "pmf").intervals
    assert bins is not None
    once = grid[~pd.DataFrame(bins[:, 0].numpy()).duplicated()]
    mass, error = total_mass(scored.log_likelihood(once, draws=20, measure="pmf"))
    assert abs(mass - 1.0) < 4.0 * error + 2e-3


def test_contributions_add_up_and_name_what_makes_a_row_impossible() -> None:
    scored = discrete_model("default", True)
    rows = pd.DataFrame(
        {"colour": ["red", "pink", None], "size": [1, 2, 3], "sold": [True, False, True]},
        dtype=object,
    )
    scores = scored.log_likelihood(rows, draws=20)
    parts = scores[[f"contributions.{name}" for name in LEVELS]]
    assert list(scores.columns)[3:5] == ["anomaly", "odd_cell"]
    assert list(scores.columns)[5:] == list(parts.columns)
    assert parts.sum(axis=1).tolist() == pytest.approx(scores["log_likelihood"].tolist())
    assert parts["contributions.colour"].tolist()[1:] == [-np.inf, 0.0]
    assert np.isfinite(parts.drop(columns="contributions.colour").to_numpy()).all()


def test_scores_follow_from_the_seed_and_come_in_order_block_by_block() -> None:
    scored = discrete_model("default", True)
    rows = pd.concat([discrete_table(True)] * 2, ignore_index=True).head(500)
    whole = scored.log_likelihood(rows, draws=5, seed=3)
    blocks = list(scored.score_blocks(rows, draws=5, seed=3))
    assert max(len(block) for block in blocks) == SCORE_BLOCK_ROWS
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), whole)
    assert not whole.equals(scored.log_likelihood(rows, draws=5, seed=4))
    assert list(scored.log_likelihood(rows.head(0)).columns) == list(whole.columns)


@pytest.mark.parametrize("preset", PRESETS_TRIED)
def test_a_blank_beside_a_rounding_cell_is_integrated_out(preset: str) -> None:
    """The mass of x = 1.00 alone is that of its density times the width, at a smooth place."""
    scored = continuous_model(preset, "x", "y")
    row = pd.DataFrame({"x": [1.0], "y": [np.nan]})
    mass = scored.log_likelihood(row, draws=1000, measure="rounding_cell")
    density = scored.log_likelihood(row, draws=1000)
    difference = float(mass["log_likelihood"][0] - density["log_likelihood"][0])
    error = math.hypot(*mass["standard_error"], *density["standard_error"])
    assert abs(difference - math.log(0.01)) < 4.0 * error + 0.02
    assert mass["contributions.y"][0] == density["contributions.y"][0] == 0.0


def test_a_number_far_beyond_the_training_range_has_a_density() -> None:
    for preset in ("gcvae", "default"):
        far = continuous_model(preset, "x").log_likelihood(pd.DataFrame({"x": [1e3, -1e6]}))
        assert np.isfinite(far["log_likelihood"]).all()
        assert (far["percentile"] == 0.0).all()


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("default", {"measure": "mass"}),
        ("paper-gcvae", {"measure": "pmf"}),
    ],
)
def test_options_that_can_not_be_are_named(preset: str, options: dict[str, Any]) -> None:
    scored = continuous_model(preset, "x")
    with refuses(SettingError):
        scored.log_likelihood(continuous_table()[["x"]].head(3), **options)


def test_a_row_whose_blank_term_stands_for_none_is_possible_at_any_number_of_draws() -> None:
    random = np.random.default_rng(4)
    is_back = random.random(600) < 0.4
    total = random.integers(500, 9000, 600) / 10
    fee = np.where(is_back, np.nan, random.integers(0, 90, 600) / 10)
    refund = np.where(is_back, np.round(total * random.choice([0.5, 0.9, 1.0], 600), 1), np.nan)
    net = np.round(total - np.nan_to_num(fee) - np.nan_to_num(refund), 1)
    back = np.where(is_back, "yes", "no")
    rows = pd.DataFrame({"back": back, "total": total, "refund": refund, "fee": fee, "net": net})
    rules = [{"rule": "net == total - fee"}]
    fitted = Synthesizer.fit(
        rows, schema={"rules": rules}, preset="fast", settings={"max_steps": 20}, seed=1
    )
    scores = Synthesizer.from_bytes(fitted.to_bytes()).log_likelihood(rows.head(200), draws=5)
    assert np.isfinite(scores["log_likelihood"]).all()
