"""The paper's score of a model: the density of test rows under kernels placed on generated rows.

Kernels are Gaussian for numbers (Parzen windows), and those of Aitchison and Aitken 1976 for
levels: 1 - h at the level of the generated row, h / (E - 1) at each of the E - 1 others. The widths
σ and h are chosen on validation rows from the paper's grids (its footnote on the kernel estimator).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

SIGMAS = (1000.0, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001)
_CHUNK_POINTS = 500
MIXINGS = (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05)


@dataclass(frozen=True)
class KernelRows:
    """Rows as arrays of numbers and of codes.

    Attributes:
        numbers: Numbers, scaled so that one σ suits all C columns. Shape: (n, C).
        codes: Integer codes of levels. Shape: (n, D).
        n_levels: Number of levels E of each of the D columns. Shape: (D,).
    """

    numbers: Numbers
    codes: Codes
    n_levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelEstimate:
    """Log densities of test rows, at the widths that validation rows chose.

    Attributes:
        log_density: Log density of each test row, nats. Shape: (n,).
        sigma: Width σ of Gaussian kernels.
        mixing: Width h of kernels on levels; None without columns of levels.
    """

    log_density: Numbers
    sigma: float
    mixing: float | None

    @property
    def mean(self) -> float:
        """Mean log density in nats per row."""
        return float(self.log_density.mean())


class KernelEstimator:
    """Log density of rows under kernels placed on other rows. Source: the paper's mixed-variate
    estimator."""

    def __init__(self, points: KernelRows, centres: KernelRows) -> None:
        """Computes the distance of every row in `points` to every row in `centres`, on which
        kernels are placed."""
        self._n_numbers = points.numbers.shape[1]
        self._n_codes = points.codes.shape[1]
        shape = (len(points.numbers), len(centres.numbers))
        self._squared = (
            cdist(points.numbers, centres.numbers, "sqeuclidean")
            if self._n_numbers
            else np.zeros(shape)
        )
        self._different, self._log_others = np.zeros(shape), np.zeros(shape)
        for j, n in enumerate(points.n_levels):
            differs = points.codes[:, j, None] != centres.codes[None, :, j]
            self._different += differs
            self._log_others += differs * math.log(max(n - 1, 1))

    def log_density(self, sigma: float, mixing: float | None) -> Numbers:
        """Returns the log density of each point, in nats. Shape: (n,).

        Args:
            sigma: Width σ of Gaussian kernels on numbers.
            mixing: Width h of kernels on levels; None without columns of levels.
        """
        log_kernel = -0.5 * self._squared / sigma**2
        log_kernel -= self._n_numbers * (math.log(sigma) + 0.5 * math.log(2 * math.pi))
        if mixing is not None:
            equal = self._n_codes - self._different
            log_kernel += equal * math.log1p(-mixing) + self._different * math.log(mixing)
            log_kernel -= self._log_others
        found: Numbers = logsumexp(log_kernel, axis=1) - math.log(log_kernel.shape[1])
        return found


def parzen_windows(
    points: npt.NDArray[Any], centres: npt.NDArray[Any], sigmas: Sequence[float]
) -> Numbers:
    """Returns log densities of points under Gaussian kernels on centres, for each width σ.

    The result is that of `KernelEstimator` for numbers alone, but distances are computed in single
    precision by matrix products, which is faster for images.

    Shape: n points (n, D), N centres (N, D), S widths (S,) -> (S, n), nats.
    """
    at, n_columns = centres.mean(0), points.shape[1]
    middle = (centres - at).astype(np.float32)
    norms = np.square(middle).sum(1, dtype=np.float64)
    found = np.empty((len(sigmas), len(points)))
    for start in range(0, len(points), _CHUNK_POINTS):
        some = (points[start : start + _CHUNK_POINTS] - at).astype(np.float32)
        squared = (
            np.square(some).sum(1, dtype=np.float64)[:, None] + norms - 2.0 * (some @ middle.T)
        )
        for i, sigma in enumerate(sigmas):
            windows = logsumexp(-0.5 * squared.clip(0.0) / sigma**2, axis=1)
            found[i, start : start + len(some)] = windows - math.log(len(centres))
            found[i, start : start + len(some)] -= n_columns * math.log(
                sigma * math.sqrt(2.0 * math.pi)
            )
    return found


def estimate(
    test: KernelRows,
    validation: KernelRows,
    drawn: KernelRows,
    sigmas: Sequence[float] = SIGMAS,
) -> KernelEstimate:
    """Returns the log densities of test rows under kernels on generated rows, at the widths with
    the highest mean density of validation rows."""
    chosen_by, judged = KernelEstimator(validation, drawn), KernelEstimator(test, drawn)
    mixings: Sequence[float | None] = MIXINGS if test.n_levels else (None,)
    widths: Sequence[float] = sigmas if test.numbers.shape[1] else (1.0,)
    sigma, mixing = max(
        product(widths, mixings), key=lambda pair: chosen_by.log_density(*pair).mean()
    )
    return KernelEstimate(judged.log_density(sigma, mixing), sigma, mixing)
