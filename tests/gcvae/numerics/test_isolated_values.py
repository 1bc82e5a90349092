"""Frequent values far from all others are found at either end, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from gcvae.numerics.isolated_values import isolated_frequent_values

NEAR = np.arange(100.0)


@pytest.mark.parametrize(
    ("far", "n", "found"),
    [
        ([9999.0], 5, [9999.0]),
        ([-9999.0], 5, [-9999.0]),
        ([-9999.0, 1e6], 5, [-9999.0, 1e6]),
        ([9999.0], 1, []),
        ([150.0], 50, []),
        ([5000.0, 9999.0], 5, []),
    ],
    ids=["above", "below", "both", "rare", "near", "two of one side"],
)
def test_a_frequent_value_farther_than_all_others_stands_apart(
    far: list[float], n: int, found: list[float]
) -> None:
    values = np.concatenate([NEAR, np.repeat(far, n), [np.nan]])
    assert isolated_frequent_values(values).tolist() == found


def test_few_values_have_none_that_stands_apart() -> None:
    assert not len(isolated_frequent_values(np.array([1.0, 2.0, 3.0, 9999.0])))
    assert not len(isolated_frequent_values(np.zeros(0)))
