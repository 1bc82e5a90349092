"""The setting `differential_privacy`: the guarantee, and what the privacy budget is spent on.

The module does not import torch, because the service imports it to check settings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcvae.errors import Problem, SettingError
from gcvae.schema.suggestions import unknown_names

_POINTER = "/differential_privacy"
MOST_EPSILON, MOST_DELTA = 100.0, 1e-3
LEAST_EPSILON, LEAST_DELTA = 0.01, 1e-15


@dataclass(frozen=True)
class Budget:
    """Privacy budget: the bound on what a model may reveal about any single row.

    Attributes:
        epsilon: Maximum change of the log probability of any output by one row.
        delta: Probability with which the change may be larger.
        target: Column that users want to predict, or None. Pairs of columns are counted in noisy
            two-way tables; with a target, in three-way tables of the pair and the target.
        discover: Categorical columns whose levels are found by a threshold on noisy counts instead
            of being specified in the schema.
    """

    epsilon: float
    delta: float
    target: str | None = None
    discover: tuple[str, ...] = ()

    @property
    def threshold_delta(self) -> float:
        """Part of delta that the discovery of levels costs: a tenth, or 0 without `discover`."""
        return self.delta / 10 if self.discover else 0.0

    @classmethod
    def of(cls, setting: Mapping[str, Any]) -> Budget | None:
        """Returns the budget that a setting specifies; None for an empty setting.

        >>> Budget.of({"epsilon": 3, "delta": 1e-6}).epsilon
        3.0

        Raises:
            SettingError: Members are missing, unknown or out of range; the error names each.
        """
        if not setting:
            return None
        if problems := budget_problems(setting):
            raise SettingError(*problems)
        given = {name: value for name, value in setting.items() if value is not None}
        numbers = {name: float(given[name]) for name in ("epsilon", "delta") if name in given}
        return cls(**given | numbers | {"discover": tuple(given.get("discover", ()))})


_MEMBERS = ("epsilon", "delta", "target", "discover")
_REQUIRED = {
    "epsilon": '"epsilon": 3, less for more privacy',
    "delta": '"delta": 1e-6, well under one by the number of rows',
}


def budget_problems(setting: Mapping[str, Any]) -> list[Problem]:
    """Returns the errors in a value of `differential_privacy`; an empty value has none."""
    if not setting:
        return []
    places = [
        (str(key), {"pointer": f"{_POINTER}/{key}"}) for key in setting if key not in _MEMBERS
    ]
    problems = unknown_names("there is no such member", places, _MEMBERS)
    for name, line in _REQUIRED.items():
        if setting.get(name) is None:
            problems.append(Problem(f"{name} is not given", f"{_POINTER}/{name}", expected=line))
    return problems + [
        Problem(f"{name} is {value!r}", f"{_POINTER}/{name}", expected=_EXPECTED[name])
        for name, value in setting.items()
        if name in _MEMBERS and value is not None and not _is_right(name, value)
    ]


_RANGES = {
    "epsilon": (LEAST_EPSILON, MOST_EPSILON),
    "delta": (LEAST_DELTA, MOST_DELTA),
}
_EXPECTED = {
    "epsilon": f"a number from {LEAST_EPSILON} to {MOST_EPSILON:g}",
    "delta": f"a number from {LEAST_DELTA} to {MOST_DELTA}",
    "target": "the name of a column",
    "discover": "a list of names of categorical columns",
}


def _is_right(name: str, value: object) -> bool:
    if name == "target":
        return isinstance(value, str)
    if name == "discover":
        return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    low, high = _RANGES[name]
    return low <= value <= high
