"""Joint privacy guarantee of several models of one table, and its limits (caps).

The costs rho (of zero-concentrated differential privacy) of trainings add up, and so do the deltas
that the discovery of levels costs. In this module rho is a whole number of billionths (`nano_rho`),
so that sums are exact.

The module does not import torch, because the service imports it to check caps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gcvae.errors import BudgetError, Problem
from gcvae.training.differential_privacy.budget import Budget

RHO_UNIT = 10**9


def privacy_cost(setting: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the maximum privacy cost of a training, or None for an empty setting.

    Args:
        setting: Value of the setting `differential_privacy`.

    Returns:
        A dict with `epsilon`, `delta`, `nano_rho` (rho in billionths) and `threshold_delta` (the
        part of delta that the discovery of levels costs).

    >>> privacy_cost({"epsilon": 3, "delta": 1e-6})["nano_rho"]
    185069683

    Raises:
        SettingError: The setting is invalid.
    """
    from gcvae.training.differential_privacy.ledger import Ledger

    budget = Budget.of(setting)
    if budget is None:
        return None
    ledger = Ledger(budget.epsilon, budget.delta, budget.threshold_delta)
    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "nano_rho": int(ledger.rho * RHO_UNIT),
        "threshold_delta": budget.threshold_delta,
    }


def joint_epsilon(nano_rho: int, threshold_delta: float, delta: float) -> float | None:
    """Returns the joint epsilon of several trainings of one table, at a given delta.

    Args:
        nano_rho: Sum of the trainings' rho, in billionths.
        threshold_delta: Sum of the deltas that the discovery of levels cost.
        delta: Delta of the joint guarantee.

    Returns:
        None if `threshold_delta` is at least `delta`, so that there is no guarantee.

    >>> round(joint_epsilon(2 * 185069683, 0.0, 1e-6), 2)
    4.41
    """
    from gcvae.training.differential_privacy.ledger import epsilon_of

    if threshold_delta >= delta:
        return None
    return epsilon_of(nano_rho / RHO_UNIT, delta - threshold_delta) if nano_rho else 0.0


def strictest(caps: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the name of the strictest privacy cap (a maximum `epsilon` at a `delta`): the one
    that allows the smallest cost rho of zero-concentrated differential privacy.

    >>> strictest({"one": {"epsilon": 3, "delta": 1e-6}, "other": {"epsilon": 2, "delta": 1e-6}})
    'other'
    """
    from gcvae.training.differential_privacy.ledger import rho_of

    return min(caps, key=lambda name: rho_of(caps[name]["epsilon"], caps[name]["delta"]))


def require_within(
    caps: Sequence[Mapping[str, Any]], total: Mapping[str, Any] | None, spent: int
) -> None:
    """Checks that the privacy cost of a requested training and all earlier ones of a table is
    within each cap.

    Args:
        caps: Maximum `epsilon` at a `delta`, with the cap's owner in the member `of` and how to
            change it in `changed_by`.
        total: Cost of all trainings, including the requested one: `nano_rho` (rho in billionths)
            and `threshold_delta`. None if the requested one has no privacy guarantee.
        spent: Sum of `nano_rho` spent or reserved by earlier trainings.

    Raises:
        BudgetError: A cap is exceeded.
    """
    problems = [problem for cap in caps if (problem := _beyond(cap, total, spent)) is not None]
    if problems:
        raise BudgetError(*problems)


def _beyond(cap: Mapping[str, Any], total: Mapping[str, Any] | None, spent: int) -> Problem | None:
    """Returns the problem if a cap is exceeded, else None; arguments as for `require_within`."""
    from gcvae.training.differential_privacy.ledger import rho_of

    capped = f"the cap of {cap['of']}, epsilon {cap['epsilon']:g} at delta {cap['delta']:g}"
    place = "/training/differential_privacy"
    if total is None:
        message = f"a training without differential privacy has no bound, and exceeds {capped}"
        return Problem(message, place, expected='{"epsilon": …, "delta": …}')
    delta = cap["delta"] - total["threshold_delta"]
    most = int(rho_of(cap["epsilon"], delta) * Fraction(RHO_UNIT)) if delta > 0.0 else 0
    if total["nano_rho"] <= most:
        return None
    left = joint_epsilon(max(0, most - spent), total["threshold_delta"], cap["delta"]) or 0.0
    message = (
        f"with this training the models of this table would exceed {capped}: "
        f"rho {total['nano_rho'] / RHO_UNIT:.6f} of {most / RHO_UNIT:.6f}"
    )
    expected = f"an epsilon under {left:.2f}" if left >= 0.01 else "nothing is left"
    return Problem(message, f"{place}/epsilon", expected=f"{expected}; {cap['changed_by']}")
