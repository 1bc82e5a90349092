"""The paper's kernel estimators beside sums written out, and their law."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from experiments.kernel_estimators import (
    KernelEstimator,
    KernelRows,
    estimate,
    parzen_windows,
)

GENERATOR = np.random.default_rng(0)


def rows(n: int, n_levels: tuple[int, ...] = (2, 3), n_numbers: int = 2) -> KernelRows:
    codes = np.column_stack([GENERATOR.integers(0, size, n) for size in n_levels])
    return KernelRows(GENERATOR.normal(size=(n, n_numbers)), codes, n_levels)


def test_the_estimate_is_the_papers_sum() -> None:
    points, centres, sigma, h = rows(4), rows(7), 0.6, 0.3
    found = KernelEstimator(points, centres).log_density(sigma, h)
    for i in range(4):
        total = 0.0
        for n in range(7):
            kernel = norm.pdf(points.numbers[i], centres.numbers[n], sigma).prod()
            for d, size in enumerate(points.n_levels):
                is_equal = points.codes[i, d] == centres.codes[n, d]
                kernel *= 1 - h if is_equal else h / (size - 1)
            total += kernel
        assert found[i] == pytest.approx(np.log(total / 7), abs=1e-12)


def test_masses_of_all_levels_sum_to_one() -> None:
    sizes = (2, 3, 4)
    every = np.array(list(product(*map(range, sizes))))
    points = KernelRows(np.empty((len(every), 0)), every, sizes)
    centres = KernelRows(
        np.empty((9, 0)), np.column_stack([GENERATOR.integers(0, n, 9) for n in sizes]), sizes
    )
    masses = np.exp(KernelEstimator(points, centres).log_density(1.0, 0.2))
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_widths_are_those_that_suit_the_validation_rows() -> None:
    sizes = (2, 3)
    drawn, validation, test = rows(400, sizes), rows(60, sizes), rows(60, sizes)
    found = estimate(test, validation, drawn, (0.01, 0.4, 10.0))
    assert (found.sigma, found.log_density.shape) == (0.4, (60,))
    narrow = KernelEstimator(validation, drawn).log_density(0.01, found.mixing).mean()
    chosen = KernelEstimator(validation, drawn).log_density(0.4, found.mixing).mean()
    assert chosen > narrow


def test_windows_by_matrix_products_are_those_of_the_estimator() -> None:
    points, centres = GENERATOR.uniform(size=(700, 30)), GENERATOR.uniform(size=(40, 30))
    found = parzen_windows(points, centres, (0.1, 0.7))
    empty = [np.empty((n, 0), dtype=np.int64) for n in (700, 40)]
    estimator = KernelEstimator(KernelRows(points, empty[0]), KernelRows(centres, empty[1]))
    expected = [estimator.log_density(sigma, None) for sigma in (0.1, 0.7)]
    np.testing.assert_allclose(found, expected, atol=1e-3)
