"""Limits of numbers that tell of no single row."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from gcvae.numerics.outward import plain_limits, plain_number


def limits(values: object, rows: int = 5, unit: str = "0") -> tuple[float, float]:
    low, high = plain_limits(*np.unique(values, return_counts=True), rows, Decimal(unit))
    return float(low), float(high)


@pytest.mark.parametrize("seed", range(20))
def test_every_number_is_within_and_keeps_its_sign(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.round(
        random.pareto(0.7, random.integers(1, 90)) * 10.0 ** random.integers(-3, 9), 3
    )
    for signed in (values, -values, values - np.median(values)):
        low, high = limits(signed, unit="0.001")
        assert low <= signed.min()
        assert signed.max() <= high
        assert np.sign(low) in (0.0, np.sign(signed.min()))
        assert low > 0 or signed.min() <= 0
        assert high < 0 or signed.max() >= 0


@pytest.mark.parametrize("seed", range(20))
def test_a_limit_hardly_moves_with_the_outermost_number(seed: int) -> None:
    """By a hundredth of the range it moves by one plain number at most, the other end not."""
    random = np.random.default_rng(seed)
    values = random.normal(50.0, 9.0, 400)
    moved = np.where(values == values.max(), values.max() + 0.01 * np.ptp(values), values)
    assert limits(values)[0] == limits(moved)[0]
    step = float(plain_number(Decimal(float(np.ptp(values)) / 20)))
    assert limits(values)[1] - values.max() <= step
    assert 0.0 <= limits(moved)[1] - limits(values)[1] <= step
    assert limits(values)[1] % 1 == 0


def test_what_enough_rows_share_is_told_as_it_is() -> None:
    values = np.concatenate([np.full(5, 17.3), np.linspace(20.0, 80.0, 300), [91.37]])
    assert limits(values) == (17.3, 92.0)
    assert limits(values, rows=6)[0] == 16.0
    assert limits(values, rows=1) == (17.3, 91.37)


def test_far_from_all_others_a_limit_is_as_rough_as_it_is_far() -> None:
    assert limits([*range(100), 1_234_567])[1] == 1_250_000
    assert limits([7]) == (7.0, 7.0)
    assert limits([7.03]) == (7.0, 7.2)


def test_whole_numbers_have_whole_limits_whatever_their_size() -> None:
    low, high = plain_limits(np.array([3, 2**62 + 1]), np.ones(2, dtype=np.int64), 5, Decimal(1))
    assert (low, high % 10**17, high > 2**62) == (2, 0, True)
