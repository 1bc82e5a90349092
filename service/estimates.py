"""Cost estimates of jobs, shown in their records."""

from __future__ import annotations

from collections.abc import Callable

from catalog.records import Document, Model
from gcvae.training.costs import Cost
from gcvae.training.settings import PRESETS


def estimate(model: Model, cost: Callable[..., Cost]) -> Document | None:
    """Returns the estimated cost of a job; None if this version lacks the model's preset.

    Args:
        cost: Computes the cost from the model's preset and its number of `columns`.
    """
    preset = (model.record or {}).get("preset")
    if preset not in PRESETS:
        return None
    return cost(preset, columns=len((model.schema or {"columns": []})["columns"])).to_json()
