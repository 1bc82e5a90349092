"""Estimates the time and memory of jobs, which are shown with the jobs."""

from __future__ import annotations

from collections.abc import Callable

from catalog.records import Document, Model
from gcvae.training.costs import Cost
from gcvae.training.settings import PRESETS


def estimate(model: Model, cost: Callable[..., Cost]) -> Document | None:
    """Returns the estimated cost of a job as JSON.

    Returns None if the model was trained with a preset that this version does not have.

    Args:
        cost: Function that is called as `cost(preset, columns=n_columns)` and returns time and
            memory.
    """
    preset = (model.record or {}).get("preset")
    if preset not in PRESETS:
        return None
    return cost(preset, columns=len((model.schema or {"columns": []})["columns"])).to_json()
