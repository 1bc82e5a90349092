"""`--set key=value`: the value is JSON where it is JSON, and text otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterable

from gcvae_cli.errors import WrongUsageError


def parse_assignments(assignments: Iterable[str]) -> dict[str, object]:
    """The settings, typed.

    >>> parse_assignments(["rank=2", "learning_rate=1e-3", "objective=exact", "d_latent=null"])
    {'rank': 2, 'learning_rate': 0.001, 'objective': 'exact', 'd_latent': None}

    Raises:
        WrongUsageError: no `key=value`, or a key given twice.
    """
    settings: dict[str, object] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not key or not equals:
            raise WrongUsageError(f"--set {assignment}: write --set key=value")
        if key in settings:
            raise WrongUsageError(f"--set {key} is given twice; give it once")
        settings[key] = _typed(value)
    return settings


def _typed(value: str) -> object:
    try:
        return json.loads(value, parse_constant=str)
    except json.JSONDecodeError:
        return value
