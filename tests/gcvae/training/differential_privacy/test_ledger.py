"""What answers cost, what the sum of them promises, and what no attack then exceeds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from gcvae.training.differential_privacy.ledger import (
    Entry,
    Ledger,
    attack_ceilings,
    delta_of,
    epsilon_of,
    rho_of,
    selection_epsilon,
    variance_of,
)
from tests.lengths import tries

# epsilon of Gaussian noise of that rho at delta 1e-6, by the Renyi accountant of dp-accounting 0.6
BY_RENYI = [
    (0.01, 0.62170),
    (0.0241, 0.99437),
    (0.1836, 2.98686),
    (0.5, 5.22154),
    (1.53, 9.96429),
]
budgets = st.tuples(st.floats(0.05, 20), st.floats(1e-12, 1e-4))


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of Gaussian noise, of which rho-zCDP knows only the Renyi divergences."""
    mu = math.sqrt(2 * rho)
    high, low = norm.cdf(mu / 2 - epsilon / mu), norm.cdf(-mu / 2 - epsilon / mu)
    return float(high - math.exp(epsilon) * low)


@pytest.mark.parametrize(("rho", "epsilon"), BY_RENYI)
def test_the_conversion_is_that_of_dp_accounting(rho: float, epsilon: float) -> None:
    assert epsilon_of(rho, 1e-6) == pytest.approx(epsilon, rel=2e-3)


@given(budgets)
@tries(25)
def test_the_whole_of_rho_is_what_was_promised_and_hardly_less(budget: tuple[float, float]) -> None:
    epsilon, delta = budget
    rho = rho_of(epsilon, delta)
    assert delta_of(float(rho), epsilon) <= delta
    assert epsilon_of(float(rho), delta) == pytest.approx(epsilon, rel=1e-3)


@given(st.floats(0.001, 3), st.floats(0.1, 20))
@tries(50)
def test_no_delta_is_under_that_of_gaussian_noise(rho: float, epsilon: float) -> None:
    assert delta_of(rho, epsilon) >= gaussian_delta(rho, epsilon) * (1 - 1e-9)


@given(st.fractions(Fraction(1, 10**7), 10))
@tries(50)
def test_noise_and_choices_cost_at_most_what_they_were_given(rho: Fraction) -> None:
    assert 1 / (2 * variance_of(rho)) <= rho
    assert selection_epsilon(rho) ** 2 / 8 <= rho
    assert float(selection_epsilon(rho)) == pytest.approx(math.sqrt(8 * rho), rel=0.01)


def test_a_ledger_adds_up_and_is_never_overdrawn() -> None:
    ledger = Ledger(3.0, 1e-6)
    ledger.noise("one-way", ("a",), 3, ledger.rho / 3)
    ledger.noise("pair", ("a", "b"), 4, ledger.left / 2)
    assert ledger.spent + ledger.left == ledger.rho
    written = ledger.to_json()
    assert written["rho_spent"] == pytest.approx(sum(e["rho"] for e in written["measured"]))
    with pytest.raises(AssertionError, match="budget is spent"):
        ledger.spend(Entry("pair", ("a", "b"), ledger.left + Fraction(1, 10**9)))
    with pytest.raises(AssertionError, match="thresholds' delta"):
        ledger.spend(Entry("levels", ("a",), ledger.left / 2, delta=1e-9))


@pytest.mark.parametrize(
    ("epsilon", "area", "hits"), [(1, 0.577, 0.019), (3, 0.703, 0.053), (10, 0.942, 0.418)]
)
def test_ceilings_are_those_of_every_renyi_bound(epsilon: float, area: float, hits: float) -> None:
    found = attack_ceilings(float(rho_of(epsilon, 0.9e-6)))
    assert found["auc"] == pytest.approx(area, abs=1e-3)
    assert found["true_positives_at_1_percent"] == pytest.approx(hits, abs=1e-3)


@pytest.mark.parametrize("rho", [0.02, 0.2, 1.5])
def test_the_best_attack_on_gaussian_noise_is_under_the_ceilings(rho: float) -> None:
    mu = math.sqrt(2 * rho)
    found = attack_ceilings(rho)
    assert norm.cdf(mu / math.sqrt(2)) < found["auc"] < 1
    assert norm.cdf(norm.ppf(0.01) + mu) < found["true_positives_at_1_percent"] < 1


def test_ceilings_rise_with_rho() -> None:
    areas = [attack_ceilings(rho)["auc"] for rho in (0.001, 0.01, 0.1, 1.0)]
    assert np.all(np.diff(areas) > 0)
