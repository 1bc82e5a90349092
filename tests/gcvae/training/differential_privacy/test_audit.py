"""An attack on the counts of two worst-case tables: what it proves stays under what is promised."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from gcvae.training.differential_privacy.counts import BinnedRows
from gcvae.training.differential_privacy.ledger import Ledger, variance_of
from gcvae.training.differential_privacy.noise import discrete_gaussians

N_RUNS = 500
DELTA = 1e-6
CONFIDENCE = 1 - 1e-6
WITHOUT = BinnedRows(np.zeros((20, 1), dtype=np.int64), (2,))
WITH_ONE = BinnedRows(np.append(WITHOUT.bins, [[1]], axis=0), (2,))


def proved_epsilon(without: list[int], with_one: list[int]) -> float:
    """The epsilon under which no mechanism tells the tables apart so well, by a count of one."""
    false, hits = sum(count >= 1 for count in without), sum(count >= 1 for count in with_one)
    most = stats.beta.ppf(CONFIDENCE, false + 1, N_RUNS - false)
    least = stats.beta.ppf(1 - CONFIDENCE, hits, N_RUNS - hits + 1)
    return math.log((least - DELTA) / most)


def audited(epsilon: float, noise_share: Fraction) -> float:
    """The lower bound of epsilon from counts with this share of their noise's deviation."""
    variance = variance_of(Ledger(epsilon, DELTA).rho) * noise_share**2
    runs = [
        (rows.one_way(0)[1] + discrete_gaussians(N_RUNS, variance)).tolist()
        for rows in (WITHOUT, WITH_ONE)
    ]
    return proved_epsilon(*runs)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_what_an_attack_proves_is_under_the_stated_epsilon(epsilon: float) -> None:
    assert audited(epsilon, Fraction(1)) < epsilon


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_an_attack_finds_noise_that_is_cut_to_a_tenth(epsilon: float) -> None:
    assert audited(epsilon, Fraction(1, 10)) > epsilon
