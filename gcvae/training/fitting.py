"""The steps of a fit after preparation: train, fit the prior, calibrate, and measure the model."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcvae.arrays import Numbers
from gcvae.codec.encoded_rows import EncodedRows
from gcvae.dependence.map_kinds import map_of_data
from gcvae.evaluation.moved_columns import moved_columns
from gcvae.files.typed_columns import rows_at
from gcvae.model.bounds import iwae_bound
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.numerics.row_noise import RowNoise
from gcvae.rules.search import measured
from gcvae.sampling.constrained import Acceptance, ConstrainedModel, measure_acceptance
from gcvae.sampling.samplers import SAMPLE_BLOCK_ROWS
from gcvae.scoring.blank_references import mid_ranks
from gcvae.scoring.row_scores import REFERENCE_ROWS, reference_scores
from gcvae.training.assembly import build_model, column_shapes, context_shapes
from gcvae.training.calibration import calibrate, mixture_prior, shrink
from gcvae.training.change_points import find_change_points
from gcvae.training.functions import level_functions
from gcvae.training.loop import TrainingResult, split, train
from gcvae.training.model_file import ModelParts
from gcvae.training.preparation import PreparedTable, table_digest
from gcvae.training.progress import FitProgress
from gcvae.training.settings import SettledConfig, TrainingConfig, settle

_GAP_ROWS, _GAP_DRAWS = 2_000, 4
_RULE_ROWS = 4_096
"""Number of generated rows in which the shares of rows that satisfy rules are measured."""
_log = logging.getLogger(__name__)


def fit_prepared(
    prepared: PreparedTable,
    preset: str,
    config: TrainingConfig,
    progress: FitProgress,
    *,
    seed: int,
    device: torch.device,
) -> ModelParts:
    """Trains a model on a prepared table, calibrates it and measures it.

    Args:
        preset: Name of the preset from which the settings come.
        device: Device on which the model is trained; the result is on the CPU.

    Raises:
        SchemaError: The model cannot enforce a hard or user-specified functional dependency.
        DivergedError: The loss becomes infinite or NaN, also with smaller step sizes.
        HardRuleError: Too few generated rows satisfy the hard rules.
        CancelledError: Raised by the callback of `progress`.
    """
    codec, rows = prepared.codec, prepared.rows
    settled = settle(config, n_rows=len(rows), n_columns=len(codec.columns))
    _log.info("training %s on %s rows, %s columns", preset, len(rows), len(codec.columns))
    model = _untrained(prepared, settled, seed)
    result = train(
        model.to(device),
        rows.to(device),
        settled,
        seed=seed,
        log_scale=rows.log_units,
        progress=progress.training,
        checkpoints=prepared.checkpoints,
    )
    _log_training(result)
    model = model.cpu()
    model.contexts = rows.context
    factors = _adjust(model, settled, prepared, result, seed, progress)
    acceptance, measures = _measure(model, prepared, result, seed, progress)
    with progress.finishing("map"):
        data_map = map_of_data(codec, prepared.learned, rows, seed)
    constrained = ConstrainedModel(model.eval(), codec, prepared.hard_rules, acceptance)
    record = result.record(settled, seed) | {
        **measures,
        "memory_gap": memory_gap(model, rows, result, seed),
        "device": str(device),
        "logit_factors": factors,
        "preset": preset,
        "rows": len(rows),
        "table_sha256": table_digest(prepared.typed),
        "seconds": round(progress.seconds, 3),
        **prepared.record,
        "rules": _kept_rules(constrained, seed),
    }
    model.contexts = None
    _log.info("fitted in %.1f s", progress.seconds)
    return ModelParts(
        prepared.schema,
        codec,
        model,
        settled,
        preset,
        record,
        data_map,
        prepared.hard_rules,
        prepared.context,
        table_notes=prepared.notes,
    )


def _untrained(prepared: PreparedTable, settled: SettledConfig, seed: int) -> GenerativeModel:
    """Returns an untrained model for a prepared table, with the functional dependencies and change
    points of its rows."""
    codec, rows = prepared.codec, prepared.rows
    functions = level_functions(codec, rows, prepared.schema.rules or (), settled)
    shapes, change_points = column_shapes(codec), []
    if settled.refinement:
        training, _ = split(len(rows), settled.held_out_share, seed, rows.held_out)
        change_points = find_change_points(shapes, rows, training, functions, seed)
    context = context_shapes(prepared.context)
    model = build_model(settled, shapes, seed, functions, change_points, context)
    model.marginals.start_at(rows.code_counts)
    return model


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


def _adjust(
    model: GenerativeModel,
    config: SettledConfig,
    prepared: PreparedTable,
    result: TrainingResult,
    seed: int,
    progress: FitProgress,
) -> dict[str, float]:
    """Fits the prior, shrinks overfitted logits and calibrates the marginals of a model, in place,
    as the settings select. Returns the factor of each column whose logits were shrunk."""
    rows, factors = prepared.rows, list[float]()
    if config.prior == "mixture":
        with progress.finishing("prior") as report:
            model.prior = mixture_prior(model, rows, result.held_out, seed, report)
    if config.calibration:
        factors = shrink(model, rows, result.held_out, seed)
        with progress.finishing("calibration") as report:
            calibrate(model, rows.code_counts, seed, report)
    names = [column.name for column in prepared.codec.columns]
    return {names[j]: factor for j, factor in enumerate(factors) if factor < 1.0}


def _measure(
    model: GenerativeModel,
    prepared: PreparedTable,
    result: TrainingResult,
    seed: int,
    progress: FitProgress,
) -> tuple[Acceptance, dict[str, Any]]:
    """Measures a model: the share of generated rows that satisfy the hard rules (acceptance), and
    the scores of held-out rows.

    Returns:
        The acceptance, and entries for the training record: `held_out_scores` and, if there are
        hard rules, `hard_rule_acceptance`. Its member `moved` lists the columns whose distribution
        changes when the rows that violate hard rules are rejected.
    """
    codec, hard_rules = prepared.codec, prepared.hard_rules
    with progress.finishing("acceptance") as report:
        acceptance, rows, is_kept = measure_acceptance(
            model, codec, hard_rules, seed, SAMPLE_BLOCK_ROWS, report
        )
    record: dict[str, Any] = {}
    if len(hard_rules):
        moved = moved_columns(rows, is_kept, codec.schema)
        document = acceptance.to_json(hard_rules.pointers) | {"moved": moved}
        record["hard_rule_acceptance"] = document
    chosen = result.held_out[:REFERENCE_ROWS]
    held_out = prepared.rows.take(chosen)
    if prepared.learned is not prepared.typed:  # encoded like rows that users score
        encoded = codec.encode(rows_at(prepared.typed, chosen.cpu().numpy()))
        held_out = replace(encoded, context=held_out.context)
    with progress.finishing("scores") as report:
        counts = prepared.rows.code_counts
        scores = reference_scores(model, codec, held_out, acceptance, seed, report, counts)
    return acceptance, record | {"held_out_scores": scores}


def memory_gap(
    model: GenerativeModel, rows: EncodedRows, result: TrainingResult, seed: int
) -> dict[str, float]:
    """Measures memorisation: how much higher the log-likelihood of training rows is than that of
    held-out rows. Held-out rows influence the model slightly, because they determine when training
    stops.

    Returns:
        A dict with `nats`, the mean difference in nats per row; `standard_error`, the standard
        error of this difference; `area`, the share of all pairs of a training row and a held-out
        row in which the training row is likelier (0.5 without memorisation); and `rows`, the number
        of held-out rows that were scored.
    """
    held_out = result.held_out.cpu()
    is_trained = torch.ones(len(rows), dtype=torch.bool).index_fill(0, held_out, False)
    trained = is_trained.nonzero()[:, 0] if is_trained.any() else held_out
    likely, others = (_some_bounds(model, rows, of_sort, seed) for of_sort in (trained, held_out))
    squared = [float(np.var(found)) / len(found) for found in (likely, others)]
    return {
        "nats": round(float(likely.mean() - others.mean()), 3),
        "standard_error": round(sum(squared) ** 0.5, 3),
        "area": round(float(mid_ranks(np.sort(others), likely).mean() / 100), 3),
        "rows": len(others),
    }


def _some_bounds(model: GenerativeModel, rows: EncodedRows, of_sort: Tensor, seed: int) -> Numbers:
    """Returns lower bounds on the log-likelihoods of rows, in nats, with densities per unit of the
    table's columns. At most `_GAP_ROWS` rows are randomly chosen from the indices `of_sort`."""
    generator = generator_for(seed, "memory gap")
    chosen = of_sort[torch.randperm(len(of_sort), generator=generator)[:_GAP_ROWS]].sort().values
    noise = RowNoise.numbered(seed, "memory gap", chosen.tolist())
    with torch.no_grad():
        bounds = iwae_bound(model, rows.take(chosen), noise, n_draws=_GAP_DRAWS).bound
    in_units: Numbers = (bounds - rows.log_units[chosen]).double().numpy()
    return in_units


def _kept_rules(constrained: ConstrainedModel, seed: int) -> list[dict[str, Any]]:
    """Returns the model's rules as dicts, each with `share_of_drawn`, the share of generated rows
    that satisfy it."""
    schema = constrained.codec.schema
    rules = [rule for rule in schema.rules or () if rule.keep != "off"]
    if not rules:
        return []
    generator = generator_for(seed, "kept rules")
    rows = constrained.decode(constrained.draw(_RULE_ROWS, _RULE_ROWS, generator), 0, seed)
    return [
        rule.to_json() | {"formula": str(rule), "share_of_drawn": finding.rule.share}
        for rule, finding in zip(rules, measured(rules, rows, schema), strict=True)
    ]
