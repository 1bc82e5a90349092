"""A fit from a table to the parts of a synthesizer."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch

from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.constraints.constraint_set import ConstraintSet
from gcvae.dependence.map_kinds import map_of_data
from gcvae.dependence.maps import DependencyMap
from gcvae.model.decoders import GenerativeModel
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.schema.columns import TableSchema
from gcvae.training.assembly import build_model, column_shapes, context_shapes
from gcvae.training.change_points import find_change_points
from gcvae.training.finishing import adjust, kept_rules, measure, memory_gap
from gcvae.training.functions import level_functions
from gcvae.training.loop import split, train
from gcvae.training.preparation import PreparedTable, table_digest
from gcvae.training.progress.fit_costs import TableSize
from gcvae.training.progress.fit_progress import FitProgress
from gcvae.training.progress.training_progress import TrainingResult
from gcvae.training.settings import SettledConfig, TrainingConfig, settle

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fitted:
    """Result of a fit; the members are those of `Synthesizer`."""

    schema: TableSchema
    codec: TableCodec
    model: GenerativeModel
    config: SettledConfig
    training_record: dict[str, Any]
    data_map: DependencyMap
    constraints: ConstraintSet
    context: ContextCodec | None
    table_notes: tuple[str, ...]


def fit_prepared(
    prepared: PreparedTable,
    config: TrainingConfig,
    line: FitProgress,
    *,
    seed: int,
    place: torch.device,
) -> Fitted:
    """Trains a model on a prepared table, and measures what its users will ask of it.

    Raises: as `Synthesizer.fit`.
    """
    codec, rows = prepared.codec, prepared.rows
    settled = _settled(prepared, config, line)
    functions = level_functions(codec, rows, prepared.schema.rules or (), settled)
    shapes = column_shapes(codec)
    change_points = []
    if settled.refinement:
        training, _ = split(len(rows), settled.held_out_share, seed, rows.held_out)
        change_points = find_change_points(shapes, rows, training, functions, seed)
    context = context_shapes(prepared.context)
    model = build_model(settled, shapes, seed, functions, change_points, context)
    model.marginals.start_at(rows.code_counts)
    model = model.to(place)
    result = train(
        model,
        rows.to(place),
        settled,
        seed=seed,
        log_scale=rows.log_units,
        progress=line.training,
        checkpoints=prepared.checkpoints,
    )
    _log_training(result)
    line.trained(result)
    model = model.cpu()
    model.contexts = rows.context
    adjusted = adjust(model, settled, prepared, result, seed, line)
    acceptance, measured = measure(model, prepared, result, seed, line)
    with line.finishing("map"):
        data_map = map_of_data(codec, prepared.learned, rows, seed)
    constrained = ConstrainedModel(model.eval(), codec, prepared.constraints, acceptance)
    record = result.record(settled, seed) | {
        **measured,
        "memory_gap": memory_gap(model, rows, result, seed),
        "device": str(place),
        **adjusted,
        **_record(prepared, constrained, line, seed),
    }
    model.contexts = None
    _log.info("fitted in %.1f s", line.seconds)
    return Fitted(
        prepared.schema,
        codec,
        model,
        settled,
        record,
        data_map,
        prepared.constraints,
        prepared.context,
        prepared.notes,
    )


def _settled(prepared: PreparedTable, config: TrainingConfig, line: FitProgress) -> SettledConfig:
    """Returns the settings for a table of this size, with the time that they are likely to take."""
    size = TableSize(len(prepared.rows), len(prepared.codec.columns), prepared.codec.n_numbers)
    line.plan(config, size, has_constraints=len(prepared.constraints) > 0)
    _log.info("training %s on %s rows, %s columns", line.preset, size.rows, size.columns)
    return settle(config, n_rows=size.rows, n_columns=size.columns)


def _record(
    prepared: PreparedTable, constrained: ConstrainedModel, line: FitProgress, seed: int
) -> dict[str, Any]:
    """What the training record says of the table, and of the rows of the model."""
    return {
        "preset": line.preset,
        "rows": len(prepared.rows),
        "table_sha256": table_digest(prepared.typed),
        "seconds": round(line.seconds, 3),
        **prepared.record,
        "rules": kept_rules(constrained, seed),
    }


def _log_training(result: TrainingResult) -> None:
    for divergence in result.divergences:
        _log.warning(
            "the loss left the finite numbers at step %s with step size %.2g; begun anew with a "
            "smaller one",
            divergence.step,
            divergence.learning_rate,
        )
    _log.info(
        "trained %s steps in %s passes; the best weights are those of step %s, held-out bound "
        "%.3f nats per row",
        result.n_steps,
        result.n_epochs,
        result.best.step,
        result.best.bound_held_out,
    )
