"""Permutations that a key chooses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.numerics.permutations import shuffled, unshuffled


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 97, 1000, 12_345])
def test_every_number_has_a_place_of_its_own(size: int) -> None:
    numbers = np.arange(size, dtype=np.uint64)
    assert sorted(shuffled(numbers, size, 7).tolist()) == numbers.tolist()


@given(st.integers(1, 2**63 - 1), st.integers(0, 2**63), st.lists(st.floats(0, 1), max_size=9))
def test_the_number_at_a_place_is_the_one_that_was_put_there(
    size: int, key: int, shares: list[float]
) -> None:
    numbers = np.array([min(int(share * size), size - 1) for share in shares], dtype=np.uint64)
    places = shuffled(numbers, size, key)
    assert (places < size).all()
    assert (unshuffled(places, size, key) == numbers).all()


def test_keys_choose_permutations_that_look_random() -> None:
    numbers = np.arange(10_000, dtype=np.uint64)
    one, other = (shuffled(numbers, 10_000, key).astype(float) for key in (1, 2))
    assert abs(np.corrcoef(numbers, one)[0, 1]) < 0.05
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.05
