"""Laws of the intervals and p-values of attacks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from gcvae.evaluation.report.intervals import (
    area,
    area_interval,
    area_p_value,
    difference_interval,
    difference_p_value,
    holm,
    rate_interval,
    visible_area,
)


def test_the_area_is_that_of_scikit_learn_and_infinite_scores_tie() -> None:
    random = np.random.default_rng(0)
    members, unseen = random.integers(0, 5, 40).astype(float), random.integers(0, 5, 30) * 1.0
    truth = np.repeat([1, 0], [40, 30])
    expected = roc_auc_score(truth, np.concatenate([members, unseen]))
    assert area(members, unseen) == pytest.approx(expected, abs=1e-12)
    assert area(np.full(3, -math.inf), np.full(4, -math.inf)) == 0.5


def test_delongs_variance_is_that_of_the_placements_one_by_one() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(0.3, 1, 25), random.normal(size=35)
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    found = wins.mean()
    variance = wins.mean(axis=1).var(ddof=1) / 25 + wins.mean(axis=0).var(ddof=1) / 35
    reach = 1.959963984540054 * math.sqrt(variance) / (found * (1 - found))
    log_odds = math.log(found / (1 - found))
    expected = [1 / (1 + math.exp(-(log_odds + side * reach))) for side in (-1, 1)]
    assert area_interval(a, b, 0.95) == pytest.approx(expected, abs=1e-6)


def test_intervals_cover_chance_and_p_values_are_even_where_nothing_leaks() -> None:
    random = np.random.default_rng(2)
    covered, rejected = 0, 0
    for _ in range(400):
        a, b = random.normal(size=(2, 60)).round(1)
        low, high = area_interval(a, b, 0.95)
        covered += low <= 0.5 <= high
        rejected += area_p_value(a, b) < 0.05
    assert covered / 400 >= 0.90
    assert rejected / 400 <= 0.09


def test_differences_cover_nothing_where_nothing_differs() -> None:
    random = np.random.default_rng(3)
    covered = rejected = 0
    for _ in range(400):
        a, b = (random.random((2, 80)) < 0.1).astype(float)
        low, high = difference_interval(a, b, 0.95)
        covered += low <= 0 <= high
        rejected += difference_p_value(a, b) < 0.05
    assert covered / 400 >= 0.90
    assert rejected / 400 <= 0.07


def test_what_would_have_been_seen_is_found_four_times_in_five() -> None:
    assert [round(visible_area(n, 1 - 0.05 / 12), 2) for n in (120, 325, 1_500, 3_256)] == [
        0.64,
        0.58,
        0.54,
        0.53,
    ]


def test_corrected_p_values_grow_with_their_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_a_rate_of_none_and_of_all_has_an_interval() -> None:
    assert rate_interval(0, 100, 0.95) == pytest.approx((0.0, 0.0362), abs=1e-4)
    assert rate_interval(100, 100, 0.95) == pytest.approx((0.9638, 1.0), abs=1e-4)
