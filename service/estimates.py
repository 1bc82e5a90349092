"""What a job is likely to take: known before it starts, and shown in its record."""

from __future__ import annotations

from catalog.records import Dataset, Document, Model
from catalog.specs import SampleSpec
from gcvae.costs import sampling_cost, scoring_cost, training_cost
from gcvae.presets import PRESETS, configure, settle

_NOT_SETTINGS = ("preset", "seed", "device")


def estimate_training(training: Document, dataset: Dataset) -> Document:
    """What training on a dataset takes, by its checked training document."""
    settings = {name: value for name, value in training.items() if name not in _NOT_SETTINGS}
    config = configure(training["preset"], settings)
    settled = settle(config, n_rows=dataset.rows, n_columns=dataset.columns)
    return training_cost(training["preset"], settled, dataset.rows, dataset.columns).to_json()


def estimate_sample(model: Model, spec: SampleSpec) -> Document | None:
    """What drawing rows takes; None under conditions, whose price is not known before."""
    preset = _preset_of(model)
    if preset is None or any((spec.given, spec.distribution, spec.given_rows)):
        return None
    return sampling_cost(preset, spec.rows, _n_columns(model)).to_json()


def estimate_scores(model: Model, rows: int, draws: int) -> Document | None:
    """What scoring rows takes."""
    preset = _preset_of(model)
    if preset is None:
        return None
    return scoring_cost(preset, rows, _n_columns(model), draws).to_json()


def _preset_of(model: Model) -> str | None:
    """The preset that the model was trained with; None where this version has none of the name."""
    preset = (model.record or {}).get("preset")
    return preset if preset in PRESETS else None


def _n_columns(model: Model) -> int:
    return len((model.schema or {"columns": []})["columns"])
