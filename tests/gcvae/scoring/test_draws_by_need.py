"""Scores to within a tolerance: as many draws as a row needs, and errors that hold."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer
from gcvae.errors import SettingError
from gcvae.scoring.draws_by_need import _further
from gcvae.scoring.score_options import FIRST_DRAWS, MOST_DRAWS, ScoreOptions
from tests.lengths import first_of
from tests.wordings import refuses

pytestmark = pytest.mark.usefixtures("few_rows")
ROUNDING = 1e-5
"""In nats. Another share of draws moves a score by a hundred times as much."""


@cache
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    hidden = random.standard_normal(400)
    frame = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"], dtype=object)[
                np.digitize(hidden, [-0.5, 1.0])
            ],
            "length": (hidden + 0.3 * random.standard_normal(400)).round(2),
            "size": 1 + np.digitize(hidden + 0.5 * random.standard_normal(400), [-1.0, 0.0, 1.5]),
        }
    )
    frame.loc[random.choice(400, 60, replace=False), "colour"] = None
    return frame


@cache
def fitted(preset: str = "default") -> Synthesizer:
    settings = {"max_steps": 60, "evaluate_every_steps": 20, "d_hidden": 32}
    return Synthesizer.fit(table(), preset=preset, settings=settings, device="cpu")


@pytest.mark.parametrize("preset", first_of("default", "gcvae"))
def test_errors_come_near_the_tolerance_and_hold(preset: str) -> None:
    rows = table()[:40]
    exact = fitted(preset).log_likelihood(rows, draws=1500, seed=7)
    for tolerance in (0.1, 0.04):
        scores = fitted(preset).log_likelihood(rows, tolerance=tolerance)
        assert (scores["standard_error"] < 1.5 * tolerance).mean() > 0.7
        error = np.hypot(scores["standard_error"], exact["standard_error"])
        off = (scores["log_likelihood"] - exact["log_likelihood"]).abs()
        assert (off < 1.96 * error + 1e-9).mean() > 0.85
        assert (off < 5.0 * error + 1e-9).all()


def test_a_half_has_as_many_draws_as_the_other_says() -> None:
    variance = torch.tensor([0.0, 0.025, 0.035, 0.1, 10.0], dtype=torch.float64)
    found = _further(variance, 0.1).tolist()
    assert found == [0, 0, 6, 24, MOST_DRAWS // 2 - FIRST_DRAWS // 2]
    assert _further(variance[1:2], 0.01).tolist() == [MOST_DRAWS // 2 - FIRST_DRAWS // 2]


@pytest.mark.slow
def test_scores_by_tolerance_are_not_biased_by_the_choice_of_their_draws() -> None:
    """A small tolerance, at which rows differ in their draws: means of many scores of one row."""
    row = table()[:1].assign(colour="red", length=[2.9], size=[1])
    rows = pd.concat([row] * 2000, ignore_index=True)
    scores = fitted().log_likelihood(rows, tolerance=0.15)
    many = fitted().log_likelihood(rows[:20], draws=5000)
    means, exact = (np.exp(found["log_likelihood"]) for found in (scores, many))
    error = np.hypot(means.std() / np.sqrt(len(means)), exact.std() / np.sqrt(len(exact)))
    assert scores["standard_error"].nunique() > 1000
    assert abs(means.mean() - exact.mean()) < 4.0 * error


def test_without_draws_the_tolerance_rules_and_with_draws_it_says_nothing() -> None:
    rows = table()[:8]
    by_default = fitted().log_likelihood(rows)
    pd.testing.assert_frame_equal(by_default, fitted().log_likelihood(rows, tolerance=0.1))
    assert ScoreOptions().to_json().get("tolerance") == 0.1
    assert "draws" not in ScoreOptions().to_json()
    assert "tolerance" not in ScoreOptions(7).to_json()
    with refuses(SettingError, "/tolerance"):
        fitted().log_likelihood(rows, draws=5, tolerance=0.2)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf"), "x", True, [0.1]])
def test_a_tolerance_is_a_finite_number(wrong: Any) -> None:
    with refuses(SettingError, "/tolerance"):
        fitted().log_likelihood(table()[:2], tolerance=wrong)


@pytest.mark.parametrize("option", [{"draws": "x"}, {"draws": 2.5}])
def test_draws_are_a_whole_number(option: dict[str, Any]) -> None:
    with refuses(SettingError):
        fitted().log_likelihood(table()[:2], **option)


@pytest.mark.parametrize("options", [{}, {"draws": 7}])
def test_a_row_has_its_score_whatever_rows_come_after_it(options: dict[str, int]) -> None:
    whole = fitted().log_likelihood(table(), **options).drop(columns=["percentile", "odd_cell"])
    first = (
        fitted().log_likelihood(table()[:37], **options).drop(columns=["percentile", "odd_cell"])
    )
    found = first.to_numpy() - whole[:37].to_numpy()
    assert np.abs(found).max() < ROUNDING


def test_an_impossible_row_is_so_by_any_number_of_draws() -> None:
    row = pd.DataFrame({"colour": ["pink"], "length": [0.1], "size": [2]})
    score = fitted().log_likelihood(row)
    assert score["log_likelihood"][0] == -np.inf
    assert score["standard_error"][0] == 0.0
