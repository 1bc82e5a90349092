"""The noise has exactly the distribution that the guarantee is computed from."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from scipy import stats

from gcvae.training.differential_privacy.noise import (
    bernoulli_exp,
    choose,
    discrete_gaussian,
    discrete_gaussians,
)

N_DRAWS = 6_000
IMPROBABLE = 1e-6
"""The system's randomness has no seed: a right sampler fails once in a million runs."""


def p_value(drawn: list[int], masses: dict[int, float]) -> float:
    """Of the chi-square test, values that are expected less than five times taken together."""
    found = Counter(drawn)
    often = [y for y, mass in masses.items() if mass * len(drawn) >= 5]
    rest = 1.0 - sum(masses[y] for y in often)
    observed = [found[y] for y in often] + [len(drawn) - sum(found[y] for y in often)]
    expected = [masses[y] * len(drawn) for y in often] + [rest * len(drawn)]
    return float(stats.chisquare(observed, np.array(expected) * len(drawn) / sum(expected)).pvalue)


def gaussian_masses(variance: float) -> dict[int, float]:
    y = np.arange(-200, 201)
    weights = np.exp(-(y**2) / (2 * variance))
    return dict(zip(y.tolist(), (weights / weights.sum()).tolist(), strict=True))


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(177, 64)])
def test_draws_have_the_masses_of_the_discrete_gaussian(variance: Fraction) -> None:
    drawn = discrete_gaussians(N_DRAWS, variance).tolist()
    assert p_value(drawn, gaussian_masses(float(variance))) > IMPROBABLE


def test_a_wrong_variance_would_be_noticed() -> None:
    drawn = discrete_gaussians(N_DRAWS, Fraction(1)).tolist()
    assert p_value(drawn, gaussian_masses(1.3)) < IMPROBABLE


def test_a_wide_gaussian_has_its_deviation() -> None:
    drawn = discrete_gaussians(N_DRAWS, Fraction(40_000))
    assert drawn.std() == pytest.approx(200, rel=0.06)
    assert abs(drawn.mean()) < 6 * 200 / N_DRAWS**0.5


@pytest.mark.parametrize(("n", "d"), [(0, 1), (1, 3), (1, 1), (5, 2)])
def test_a_coin_falls_with_the_exponential_of_its_exponent(n: int, d: int) -> None:
    hits = sum(bernoulli_exp(n, d) for _ in range(N_DRAWS))
    assert stats.binomtest(hits, N_DRAWS, float(np.exp(-n / d))).pvalue > IMPROBABLE


def test_the_exponential_mechanism_chooses_by_half_of_epsilon_times_the_score() -> None:
    scores, epsilon = [3, 0, 5, -40], Fraction(1, 2)
    weights = np.exp(float(epsilon) * np.array(scores) / 2)
    masses = dict(enumerate((weights / weights.sum()).tolist()))
    assert p_value([choose(scores, epsilon) for _ in range(N_DRAWS)], masses) > IMPROBABLE


def test_a_draw_asks_for_whole_numbers_only_and_the_same_ones_give_the_same_draw() -> None:
    asked: list[int] = []
    drawn = []
    for _ in range(2):
        random = Random(1)

        def below(n: int, random: Random = random) -> int:
            asked.append(n)
            return random.randrange(n)

        drawn.append(discrete_gaussian(Fraction(1_000_001, 64), below))
    assert {type(n) for n in asked} == {int}
    assert drawn[0] == drawn[1]
