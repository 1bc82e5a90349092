"""What several private models of a table promise together, and the cap on it."""

from __future__ import annotations

from typing import Any

import pytest

from gcvae.errors import BudgetError
from gcvae.training.differential_privacy.composition import (
    RHO_UNIT,
    joint_epsilon,
    privacy_cost,
    require_within,
)
from gcvae.training.differential_privacy.ledger import Ledger
from tests.wordings import refuses

CAP = {"epsilon": 3.0, "delta": 1e-6, "of": "the dataset", "changed_by": "its owner"}
# (epsilon of each at delta 1e-6, how many models, epsilon of all at delta 1e-6): Gaussian noise of
# that rho, composed so often by the Renyi accountant of dp-accounting 0.6.0 with 4,000 orders. That
# package needs an attrs older than other tools do, so its figures are kept here.
BY_RENYI = [
    (1.0, 1, 1.0), (1.0, 2, 1.45104), (1.0, 5, 2.38485),
    (3.0, 1, 3.0), (3.0, 2, 4.40833), (3.0, 5, 7.42474),
]  # fmt: skip
DISCOVERING = {"discover": ["city"]}


def rho_of(epsilon: float, **more: Any) -> dict[str, Any]:
    found = privacy_cost({"epsilon": epsilon, "delta": 1e-6, **more})
    assert found is not None
    return found


def test_a_promise_is_the_whole_budget_of_its_ledger() -> None:
    assert privacy_cost({}) is None
    for more in ({}, DISCOVERING):
        found = rho_of(3.0, **more)
        ledger = Ledger(3.0, 1e-6, found["threshold_delta"])
        assert found["nano_rho"] == ledger.rho * RHO_UNIT
    assert rho_of(3.0, **DISCOVERING)["threshold_delta"] == pytest.approx(1e-7)


@pytest.mark.parametrize(("epsilon", "n", "together"), BY_RENYI)
def test_models_together_promise_what_dp_accounting_says_of_as_many_gaussians(
    epsilon: float, n: int, together: float
) -> None:
    found = joint_epsilon(n * rho_of(epsilon)["nano_rho"], 0.0, 1e-6)
    assert found == pytest.approx(together, rel=1e-5)


def test_nothing_spent_is_no_epsilon_and_thresholds_take_their_part_of_delta() -> None:
    assert joint_epsilon(0, 0.0, 1e-6) == 0.0
    rho = rho_of(1.0)["nano_rho"]
    without, with_some = joint_epsilon(rho, 0.0, 1e-6), joint_epsilon(rho, 9e-7, 1e-6)
    assert without is not None
    assert with_some is not None
    assert without < with_some
    assert joint_epsilon(rho, 1e-6, 1e-6) is None


def test_a_model_of_the_caps_own_promise_is_within_it_and_a_second_one_is_not() -> None:
    whole = rho_of(3.0)
    require_within([CAP], whole, 0)
    twice = {"nano_rho": 2 * whole["nano_rho"], "threshold_delta": 0.0}
    with refuses(BudgetError):
        require_within([CAP], twice, whole["nano_rho"])


def test_what_is_said_to_be_left_is_within_the_cap_and_hardly_more_is_not() -> None:
    spent = rho_of(1.0)["nano_rho"]
    too_much = {"nano_rho": spent + rho_of(3.0)["nano_rho"], "threshold_delta": 0.0}
    with pytest.raises(BudgetError) as raised:
        require_within([CAP], too_much, spent)
    left = float(str(raised.value.problems[0].expected).split("under ")[1].split(";")[0])
    within, beyond = (
        {"nano_rho": spent + rho_of(left + more)["nano_rho"], "threshold_delta": 0.0}
        for more in (-0.01, 0.02)
    )
    require_within([CAP], within, spent)
    with pytest.raises(BudgetError):
        require_within([CAP], beyond, spent)


def test_every_cap_that_is_exceeded_is_named_and_no_promise_exceeds_any() -> None:
    caps = [CAP, CAP | {"of": "this service", "epsilon": 1.0}]
    with refuses(BudgetError):
        require_within(caps, rho_of(2.0), 0)
    with pytest.raises(BudgetError) as raised:
        require_within(caps, None, 0)
    assert len(raised.value.problems) == 2
    require_within([], None, 0)


def test_thresholds_that_take_the_caps_delta_exceed_it() -> None:
    with pytest.raises(BudgetError):
        require_within([CAP], {"nano_rho": 1, "threshold_delta": 1e-6}, 0)
