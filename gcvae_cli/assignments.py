"""Parses the option `--set key=value`; the value is JSON if it can be parsed as such, else text.

A key with a dot sets a member of an object: `--set differential_privacy.epsilon=3`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from gcvae_cli.errors import WrongUsageError


def parse_assignments(assignments: Iterable[str]) -> dict[str, object]:
    """Returns the settings in a list of `key=value` strings, with values parsed and dotted keys
    nested.

    >>> parse_assignments(["rank=0", "learning_rate=1e-3", "objective=exact", "d_latent=null"])
    {'rank': 0, 'learning_rate': 0.001, 'objective': 'exact', 'd_latent': None}

    >>> parse_assignments(["differential_privacy.epsilon=3", "differential_privacy.delta=1e-6"])
    {'differential_privacy': {'epsilon': 3, 'delta': 1e-06}}

    Raises:
        WrongUsageError: An argument is not `key=value`, or a key is given twice.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not key or not equals:
            raise WrongUsageError(f"--set {assignment}: write --set key=value")
        name, point, member = key.partition(".")
        members = settings.setdefault(name, {}) if point else settings
        entry = member if point else key
        if not isinstance(members, dict) or entry in members:
            raise WrongUsageError(f"--set {key} is given twice; give it once")
        members[entry] = _typed(value)
    return settings


def _typed(value: str) -> object:
    try:
        return json.loads(value, parse_constant=str)
    except json.JSONDecodeError:
        return value
