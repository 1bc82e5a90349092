"""F of a column's numbers: a cdf that is inverted exactly, as smooth as unseen rows want it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from gcvae.arrays import Numbers
from gcvae.codec.number_distribution import (
    LEAST_ROWS_PER_INTERVAL,
    KnotLimits,
    NumberDistribution,
)

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


def test_each_step_of_a_column_is_one_of_f() -> None:
    """Nine in ten numbers stand on whole hundreds: unseen ones do so too."""
    random = np.random.default_rng(0)
    values = random.integers(0, 20_000, 4000).astype(float)
    values = np.where(random.random(4000) < 0.9, np.round(values, -2), values)
    repeated = fitted(values, 0.5).repeated
    assert repeated is not None
    assert len(repeated.shares) == pytest.approx(201, abs=3)
    assert repeated.shares.sum() == pytest.approx(0.9 - 201 / 4000, abs=0.03)


def names(n: int, seed: int) -> Numbers:
    """Whole numbers that are names: 800 of 8,000, some far more often than others, and noise."""
    table = np.random.default_rng(0)
    known = np.sort(table.choice(8000, 800, replace=False)).astype(float)
    weights = table.pareto(1.5, 800) + 0.2
    random = np.random.default_rng(seed)
    noise = np.rint(random.uniform(0.0, 8000.0, n))
    drawn = random.choice(known, n, p=weights / weights.sum())
    return np.where(random.random(n) < 0.9, drawn, noise)


def test_numbers_that_come_again_are_what_unseen_rows_have_too() -> None:
    seen, unseen = names(6000, 1), names(6000, 2)
    distribution = fitted(seen, 0.5)
    assert distribution.repeated is not None
    found, counts = np.unique(seen, return_counts=True)
    smooth = max(
        NumberDistribution._with_intervals(found, counts, k).log_likelihood(unseen, 0.5)
        for k in (8, 32, 128, 512)
    )
    assert distribution.log_likelihood(unseen, 0.5) / 6000 > smooth / 6000 + 0.4
    scores = norm.ppf(np.random.default_rng(3).random(20_000))
    drawn = np.rint(distribution.positions_at(scores))
    common = found[counts >= 5]
    share = np.isin(unseen, common).mean()
    assert np.isin(drawn, common).mean() == pytest.approx(share, abs=0.03)
    assert distribution.are_repeated(scores).mean() == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("rows", [1, 5, 12, 40])
def test_a_step_is_of_no_fewer_rows_than_knots_may_tell_of(rows: int) -> None:
    values = names(6000, 1)
    found, counts = np.unique(values, return_counts=True)
    distribution = NumberDistribution.fit(found, counts, 0.5, limits=KnotLimits(rows))
    scores = distribution.scores_at(found)
    assert set(counts[distribution.are_repeated(scores)] >= max(rows, 5)) == {True}


def test_f_with_steps_is_inverted_and_its_slope_is_the_density() -> None:
    values = names(6000, 1)
    distribution = fitted(values, 0.5)
    x = np.linspace(values.min() - 5.0, values.max() + 5.0, 4001)
    scores = distribution.scores_at(x)
    assert (np.diff(scores) > 0.0).all()
    np.testing.assert_allclose(distribution.positions_at(scores), x, rtol=1e-9)
    cells = np.unique(values)
    low, high = (ndtr(distribution.scores_at(cells + h)) for h in (-0.01, 0.01))
    slopes = np.exp(distribution.log_slopes(distribution.scores_at(cells)))
    np.testing.assert_allclose((high - low) / 0.02, slopes, rtol=0.02)
    document = json.loads(json.dumps(distribution.to_json()))
    again = NumberDistribution.from_json(document)
    np.testing.assert_array_equal(again.scores_at(x), scores)


def test_numbers_that_are_only_dense_have_no_steps() -> None:
    for seed in range(5):
        values = np.rint(300.0 * numbers("normal", 8000, seed))
        assert fitted(values, 0.5).repeated is None


def test_between_two_knots_are_at_least_some_rows() -> None:
    for shape in SHAPES:
        values = np.unique(numbers(shape, 700))
        rows = np.diff(np.searchsorted(values, fitted(values).knots))
        assert rows[rows > 0].min() >= LEAST_ROWS_PER_INTERVAL
        assert (rows == 0).sum() == (shape == "two peaks")  # the gap between them


@pytest.mark.parametrize("rows", [1, 5])
def test_clusters_that_lie_apart_have_hardly_a_number_between_them(rows: int) -> None:
    random = np.random.default_rng(0)
    values = np.unique((random.integers(0, 20, 2_000) + 0.01 * random.normal(size=2_000)).round(5))
    limits = KnotLimits(rows, values[0] - 1.0, values[-1] + 1.0)
    distribution = NumberDistribution.fit(values, np.ones(len(values), np.int64), limits=limits)
    drawn = distribution.positions_at(ndtri(np.linspace(0.0005, 0.9995, 20_000)))
    assert (np.abs(drawn - np.rint(drawn)) > 0.06).mean() < 0.002
    between = np.arange(19) + 0.5  # not impossible: finite, and inverted
    scores = distribution.scores_at(between)
    assert np.isfinite(distribution.log_slopes(scores)).all()
    np.testing.assert_allclose(distribution.positions_at(scores), between, atol=1e-6)


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


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 4.0], [1.0, 1.0, 1.0, 2.0]])
def test_a_few_numbers_have_an_f(values: list[float]) -> None:
    distribution = fitted(np.array(values))
    at = np.linspace(0.0, 5.0, 21)
    back = distribution.positions_at(distribution.scores_at(at))
    np.testing.assert_allclose(back, at, atol=1e-12)
    assert np.isfinite(distribution.log_slopes(distribution.scores_at(at))).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_under_limits_no_row_says_where_a_knot_is(shape: str) -> None:
    values = np.unique(numbers(shape, 700))
    limits = KnotLimits(5, values[0] - 3.0, values[-1] + 3.0)
    distribution = NumberDistribution.fit(values, np.ones(700, dtype=np.int64), limits=limits)
    knots = distribution.knots
    rows = np.diff(np.searchsorted(values, knots[1:-1]), prepend=0)
    assert min(rows[0], *rows[rows > 0], 700 - np.searchsorted(values, knots[-2])) >= 5
    assert (np.diff(knots) > 0.0).all()
    assert knots[0] >= limits.low
    assert limits.high >= knots[-1]
    back = distribution.positions_at(distribution.scores_at(values))
    np.testing.assert_allclose(back, values, rtol=1e-12, atol=1e-13)
    # The largest of all ends nothing: farther out, among as many, it moves only the mean.
    farther = np.append(values[:-1], values[-1] + 2.0)
    moved = NumberDistribution._with_intervals(farther, np.ones(700, int), 8, limits)
    before = NumberDistribution._with_intervals(values, np.ones(700, int), 8, limits)
    np.testing.assert_array_equal(moved.knots[:-1], before.knots[:-1])
    assert moved.knots[-1] - before.knots[-1] <= 3.0 * 2.0 / 5.0 + 1e-9


def test_of_fewer_rows_than_limits_ask_for_f_tells_nothing() -> None:
    limits = KnotLimits(5, 0.0, 50.0)
    for values in ([17.31], [3.0, 21.7, 44.4]):
        found = np.array(values)
        counts = np.ones(len(found), dtype=np.int64)
        distribution = NumberDistribution.fit(found, counts, limits=limits)
        assert distribution.knots.tolist() == [0.0, 50.0]
