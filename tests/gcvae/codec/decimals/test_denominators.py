"""Numbers that are fractions, written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.codec.decimals.denominators import (
    common_denominators,
    denominators_of,
    nearest_fractions,
)


@given(st.integers(1, 180), st.integers(0, 10**5), st.integers(6, 9))
def test_a_fraction_has_its_denominator(q: int, k: int, decimals: int) -> None:
    number = np.array([round(k / q, decimals)])
    found = denominators_of(number, np.array([decimals]))
    assert found == [q // math.gcd(k, q)]


@given(st.floats(1.0, 1e5), st.integers(2, 180))
def test_the_nearest_fraction_is_in_lowest_terms_and_near(number: float, q: int) -> None:
    found = nearest_fractions(np.array([number, -number]), np.array([q, q]), np.array([9, 9]))
    assert found[0] == -found[1]
    assert abs(found[0] - number) <= 4.0 / q
    assert denominators_of(found[:1], np.array([9])) == [q]


def test_random_decimals_have_no_denominators() -> None:
    for decimals in (3, 6, 9):
        numbers = np.unique(np.random.default_rng(0).uniform(0.0, 100.0, 5000).round(decimals))
        rows = np.ones(len(numbers), dtype=np.int64)
        found, which = common_denominators(numbers, rows, np.full(len(numbers), decimals))
        assert len(found) == 0
        assert (which == -1).all()


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_denominators_that_several_numbers_have_are_found(share: float) -> None:
    random = np.random.default_rng(0)
    fractions = random.integers(0, 10**4, 4000) / random.choice([3, 7, 12], 4000)
    noise = random.uniform(0.0, 1000.0, 4000)
    numbers = np.unique(np.where(random.random(4000) < share, fractions, noise).round(7))
    rows = np.ones(len(numbers), dtype=np.int64)
    found, which = common_denominators(numbers, rows, np.full(len(numbers), 7))
    assert {3, 7, 12} <= set(found.tolist())
    assert (found[which[which >= 0]] <= 12).mean() > 0.9


@given(st.floats(1e13, 1.7e308), st.integers(1_000, 5_000))
def test_numbers_without_such_digits_stay(number: float, q: int) -> None:
    found = nearest_fractions(np.array([number, -number]), np.array([q, q]), np.array([9, 9]))
    assert found.tolist() == [number, -number]
