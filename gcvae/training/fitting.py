"""The steps of a fit, from a prepared table to the parts of a synthesizer."""

from __future__ import annotations

import logging
from typing import Any

import torch

from gcvae.dependence.map_kinds import map_of_data
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.training.assembly import build_model, column_shapes, context_shapes
from gcvae.training.change_points import find_change_points
from gcvae.training.finishing import adjust, kept_rules, measure, memory_gap
from gcvae.training.functions import level_functions
from gcvae.training.loop import split, train
from gcvae.training.model_file import ModelParts
from gcvae.training.preparation import PreparedTable, table_digest
from gcvae.training.progress.fit_progress import FitProgress, TableSize
from gcvae.training.progress.training_progress import TrainingResult
from gcvae.training.settings import SettledConfig, TrainingConfig, settle

_log = logging.getLogger(__name__)


def fit_prepared(
    prepared: PreparedTable,
    config: TrainingConfig,
    progress: FitProgress,
    *,
    seed: int,
    device: torch.device,
) -> ModelParts:
    """Trains a model on a prepared table, calibrates it and measures it.

    Args:
        device: Device on which the model is trained; the result is on the CPU.

    Raises:
        SchemaError: The model cannot enforce a functional dependency that it has to enforce.
        DivergedError: The loss becomes infinite or NaN, also with smaller step sizes.
        HardRuleError: Too few generated rows satisfy the hard rules.
        CancelledError: Raised by the callback of `progress`.
    """
    codec, rows = prepared.codec, prepared.rows
    settled = _resolve_settings(prepared, config, progress)
    functions = level_functions(codec, rows, prepared.schema.rules or (), settled)
    shapes = column_shapes(codec)
    change_points = []
    if settled.refinement:
        training, _ = split(len(rows), settled.held_out_share, seed, rows.held_out)
        change_points = find_change_points(shapes, rows, training, functions, seed)
    context = context_shapes(prepared.context)
    model = build_model(settled, shapes, seed, functions, change_points, context)
    model.marginals.start_at(rows.code_counts)
    model = model.to(device)
    result = train(
        model,
        rows.to(device),
        settled,
        seed=seed,
        log_scale=rows.log_units,
        progress=progress.training,
        checkpoints=prepared.checkpoints,
    )
    _log_training(result)
    progress.trained(result)
    model = model.cpu()
    model.contexts = rows.context
    adjusted = adjust(model, settled, prepared, result, seed, progress)
    acceptance, measured = measure(model, prepared, result, seed, progress)
    with progress.finishing("map"):
        data_map = map_of_data(codec, prepared.learned, rows, seed)
    constrained = ConstrainedModel(model.eval(), codec, prepared.hard_rules, acceptance)
    record = result.record(settled, seed) | {
        **measured,
        "memory_gap": memory_gap(model, rows, result, seed),
        "device": str(device),
        **adjusted,
        **_record(prepared, constrained, progress, seed),
    }
    model.contexts = None
    _log.info("fitted in %.1f s", progress.seconds)
    return ModelParts(
        prepared.schema,
        codec,
        model,
        settled,
        progress.preset,
        record,
        data_map,
        prepared.hard_rules,
        prepared.context,
        table_notes=prepared.notes,
    )


def _resolve_settings(
    prepared: PreparedTable, config: TrainingConfig, progress: FitProgress
) -> SettledConfig:
    """Returns the settings resolved for the table's size, and estimates the time of the fit."""
    size = TableSize(len(prepared.rows), len(prepared.codec.columns), prepared.codec.n_numbers)
    progress.plan(config, size, has_hard_rules=len(prepared.hard_rules) > 0)
    _log.info("training %s on %s rows, %s columns", progress.preset, size.rows, size.columns)
    return settle(config, n_rows=size.rows, n_columns=size.columns)


def _record(
    prepared: PreparedTable, constrained: ConstrainedModel, progress: FitProgress, seed: int
) -> dict[str, Any]:
    """Returns the entries of the training record that describe the table and the rules."""
    return {
        "preset": progress.preset,
        "rows": len(prepared.rows),
        "table_sha256": table_digest(prepared.typed),
        "seconds": round(progress.seconds, 3),
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
