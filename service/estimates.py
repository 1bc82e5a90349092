"""What a job of a model is likely to take: known before it starts, and shown in its record."""

from __future__ import annotations

from collections.abc import Callable

from catalog.records import Document, Model
from gcvae.training.costs import Cost
from gcvae.training.settings import PRESETS


def estimate(model: Model, cost: Callable[..., Cost]) -> Document | None:
    """The cost of a job; None where this version has no preset of the model's name.

    Args:
        cost: takes the preset that the model was trained with, and `columns`, their number.
    """
    preset = (model.record or {}).get("preset")
    if preset not in PRESETS:
        return None
    return cost(preset, columns=len((model.schema or {"columns": []})["columns"])).to_json()
