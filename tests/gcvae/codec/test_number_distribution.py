"""F of a column's numbers: a cdf that is inverted exactly, as smooth as unseen rows want it."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from gcvae.codec.number_distribution import LEAST_ROWS_PER_INTERVAL, NumberDistribution

Numbers = npt.NDArray[np.float64]
SHAPES = ["normal", "lognormal", "Pareto", "two peaks", "decades"]


def numbers(shape: str, n: int, seed: int = 0) -> Numbers:
    random = np.random.default_rng(seed)
    if shape == "normal":
        return random.normal(size=n)
    if shape == "lognormal":
        return random.lognormal(0.0, 1.5, n)
    if shape == "Pareto":
        return random.pareto(0.8, n)
    if shape == "two peaks":
        return np.where(random.random(n) < 0.5, 0.0, 9.0) + random.normal(0.0, 0.01, n)
    return 10.0 ** random.uniform(-12.0, 0.0, n)


def fitted(values: Numbers, half_step: float = np.nan) -> NumberDistribution:
    return NumberDistribution.fit(*np.unique(values, return_counts=True), half_step)


def log_density(distribution: NumberDistribution, values: Numbers) -> float:
    return float(distribution.log_slopes(distribution.scores_at(values)).mean())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_inverse_gives_back_every_number(shape: str) -> None:
    values = np.sort(numbers(shape, 1500))
    distribution = fitted(values)
    far = np.concatenate([values[0] - 10.0 ** np.arange(8), values[-1] + 10.0 ** np.arange(8)])
    for at in (values, distribution.knots, far):
        back = distribution.positions_at(distribution.scores_at(at))
        np.testing.assert_allclose(back, at, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
def test_f_rises_and_its_slope_is_the_density(shape: str) -> None:
    distribution = fitted(numbers(shape, 800))
    u = np.linspace(0.001, 0.999, 4001)
    x = distribution.positions_at(norm.ppf(u))
    assert (np.diff(x) > 0.0).all()
    slopes = np.exp(distribution.log_slopes(norm.ppf(u)))
    # dx/du by its inverse: the trapezoid over each small step, where the slope bends little.
    steps = np.diff(u) / np.diff(x)
    is_even = np.abs(np.diff(np.log(slopes))) < 0.01
    assert is_even.mean() > 0.2
    np.testing.assert_allclose(
        steps[is_even], (slopes[1:] * slopes[:-1])[is_even] ** 0.5, rtol=0.01
    )


def test_few_knots_describe_unseen_rows_of_a_smooth_column_better() -> None:
    for seed in range(3):
        seen, unseen = numbers("normal", 1200, seed), numbers("normal", 20_000, seed + 100)
        distribution = fitted(seen)
        found, counts = np.unique(seen, return_counts=True)
        many = NumberDistribution._with_intervals(found, counts, 300)
        assert len(distribution.knots) < 60
        loss = norm.logpdf(unseen).mean() - log_density(distribution, unseen)
        assert loss < 0.03
        assert log_density(distribution, unseen) > log_density(many, unseen) + 0.05


def test_steps_of_a_column_are_worth_their_knots() -> None:
    """Nine in ten numbers stand on whole hundreds: unseen ones do so too."""
    random = np.random.default_rng(0)
    values = random.integers(0, 20_000, 4000).astype(float)
    values = np.where(random.random(4000) < 0.9, np.round(values, -2), values)
    assert len(fitted(values, 0.5).knots) > 150


def test_between_two_knots_are_at_least_some_rows() -> None:
    for shape in SHAPES:
        values = np.unique(numbers(shape, 700))
        rows = np.diff(np.searchsorted(values, fitted(values).knots))
        assert rows.min() >= LEAST_ROWS_PER_INTERVAL


@pytest.mark.parametrize("n_intervals", [48, 96, 192])
def test_no_knot_is_lost_by_rounding(n_intervals: int) -> None:
    found = np.arange(4.0 * n_intervals) / 7.0
    counts = np.ones(len(found), dtype=np.int64)
    distribution = NumberDistribution._with_intervals(found, counts, n_intervals)
    assert len(distribution.knots) == n_intervals + 1


def test_the_mass_of_a_rounding_cell_judges_where_there_is_one() -> None:
    distribution = fitted(numbers("normal", 900))
    at, half_step = np.array([-5.0, -1.0, 0.0, 0.7, 6.0]), 0.05
    masses = ndtr(distribution.scores_at(at + half_step)) - ndtr(
        distribution.scores_at(at - half_step)
    )
    expected = np.log(masses / (2 * half_step)).sum()
    assert distribution.log_likelihood(at, half_step) == pytest.approx(expected)
    densities = distribution.log_slopes(distribution.scores_at(at)).sum()
    assert distribution.log_likelihood(at, 1e-15) == pytest.approx(densities)
    assert distribution.log_likelihood(at, np.nan) == pytest.approx(densities)


def test_without_smoothing_f_is_straight_between_its_knots() -> None:
    smooth = fitted(numbers("lognormal", 400))
    straight = NumberDistribution(smooth.knots, smooth.heights, is_smooth=False)
    at = np.linspace(smooth.knots[0], smooth.knots[-1], 999)
    expected = np.interp(at, smooth.knots, smooth.heights)
    np.testing.assert_allclose(ndtr(straight.scores_at(at)), expected, atol=1e-12)
    assert np.abs(ndtr(smooth.scores_at(at)) - expected).max() > 1e-3


def test_an_f_comes_back_from_its_document() -> None:
    distribution = fitted(numbers("Pareto", 300))
    back = NumberDistribution.from_json(json.loads(json.dumps(distribution.to_json())))
    scores = np.linspace(-6.0, 6.0, 99)
    assert np.array_equal(back.positions_at(scores), distribution.positions_at(scores))
    assert np.array_equal(back.log_slopes(scores), distribution.log_slopes(scores))


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 4.0], [1.0, 1.0, 1.0, 2.0]])
def test_a_few_numbers_have_an_f(values: list[float]) -> None:
    distribution = fitted(np.array(values))
    at = np.linspace(0.0, 5.0, 21)
    back = distribution.positions_at(distribution.scores_at(at))
    np.testing.assert_allclose(back, at, atol=1e-12)
    assert np.isfinite(distribution.log_slopes(distribution.scores_at(at))).all()
