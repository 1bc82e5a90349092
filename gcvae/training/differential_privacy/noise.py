"""Samples integer noise with the operating system's randomness, exactly, without floating point.

The last bits of floating-point noise can reveal the true value (Mironov 2012), so all comparisons
are between integers and the distribution is exact. There is no seed, because repeatable noise gives
no protection.

Source: Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
Algorithms 1 to 3.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

Below = Callable[[int], int]
"""Function of n that returns a uniform integer from 0 to n - 1."""


def bernoulli_exp(n: int, d: int = 1, below: Below = secrets.randbelow) -> bool:
    """Returns True with probability exp(-n/d), for n >= 0 and d > 0.

    `below(m)` returns a uniformly random integer from 0 to m - 1.
    """
    whole, rest = divmod(n, d)
    for _ in range(whole):
        if not _bernoulli_exp_of_fraction(1, 1, below):
            return False
    return _bernoulli_exp_of_fraction(rest, d, below)


def _bernoulli_exp_of_fraction(n: int, d: int, below: Below) -> bool:
    """Returns True with probability exp(-n/d), for 0 <= n <= d.

    Trials are made until one fails; trial k succeeds with probability n/(d k). The result is True
    if the number of trials is odd.
    """
    k = 1
    while below(d * k) < n:
        k += 1
    return k % 2 == 1


def _discrete_laplace(t: int, below: Below) -> int:
    """Returns an integer y with probability proportional to exp(-|y|/t)."""
    while True:
        u = below(t)
        if not _bernoulli_exp_of_fraction(u, t, below):
            continue
        v = 0
        while _bernoulli_exp_of_fraction(1, 1, below):
            v += 1
        magnitude = u + t * v
        is_negative = below(2) == 1
        if not (is_negative and magnitude == 0):
            return -magnitude if is_negative else magnitude


def discrete_gaussian(variance: Fraction, below: Below = secrets.randbelow) -> int:
    """Returns an integer y with probability proportional to exp(-y^2 / (2 variance)).

    A count that one row changes by at most one is 1/(2 variance)-zCDP (zero-concentrated
    differential privacy) if this noise is added. `below(m)` returns a uniformly random integer from
    0 to m - 1.
    """
    p, q = variance.numerator, variance.denominator
    t = isqrt(p // q) + 1
    while True:
        y = _discrete_laplace(t, below)
        # (|y| - variance/t)^2 / (2 variance) as one fraction of integers
        if bernoulli_exp((abs(y) * q * t - p) ** 2, 2 * p * q * t * t, below):
            return y


def discrete_gaussians(
    n: int, variance: Fraction, below: Below = secrets.randbelow
) -> npt.NDArray[np.int64]:
    """Returns n independent samples of `discrete_gaussian`. Shape: (n,).

    How long a sample takes depends on its value. All samples are therefore drawn before the first
    is used, so that the timing of the caller's steps does not reveal single values.
    """
    return np.array([discrete_gaussian(variance, below) for _ in range(n)], dtype=np.int64)


def choose(scores: Sequence[int], epsilon: Fraction, below: Below = secrets.randbelow) -> int:
    """Returns an index i with probability proportional to exp(epsilon scores_i / 2).

    This is the exponential mechanism. If one row changes each score by at most one, it is
    epsilon-differentially private with bounded range epsilon, and so epsilon^2/8-zCDP (Cesar and
    Rogers 2021). Sampling is exact: candidates are proposed uniformly, and accepted with a
    probability that depends on the difference of their score from the best.
    """
    best = max(scores)
    while True:
        i = below(len(scores))
        n = epsilon.numerator * (best - scores[i])
        if bernoulli_exp(n, 2 * epsilon.denominator, below):
            return i
