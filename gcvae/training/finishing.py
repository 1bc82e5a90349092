"""Steps after training: fits the prior, calibrates the marginals, and measures the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcvae.arrays import Numbers
from gcvae.codec.encoded_rows import EncodedRows
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
from gcvae.training.calibration import calibrate, mixture_prior, shrink
from gcvae.training.preparation import PreparedTable
from gcvae.training.progress.fit_progress import FitProgress
from gcvae.training.progress.training_progress import TrainingResult
from gcvae.training.settings import SettledConfig


def adjust(
    model: GenerativeModel,
    config: SettledConfig,
    prepared: PreparedTable,
    result: TrainingResult,
    seed: int,
    progress: FitProgress,
) -> dict[str, Any]:
    """Fits the prior, shrinks overfitted logits and calibrates the marginals of a model, in place,
    as the settings select.

    Returns:
        Entry for the training record: `logit_factors`, the factor of each column whose logits were
        shrunk, by column name.
    """
    rows, factors = prepared.rows, [1.0] * len(prepared.codec.columns)
    if config.prior == "mixture":
        with progress.finishing("prior") as report:
            model.prior = mixture_prior(model, rows, result.held_out, seed, report)
    if config.calibration:
        factors = shrink(model, rows, result.held_out, seed)
        with progress.finishing("calibration") as report:
            calibrate(model, rows.code_counts, seed, report)
    names = [column.name for column in prepared.codec.columns]
    return {"logit_factors": {names[j]: f for j, f in enumerate(factors) if f < 1.0}}


GAP_ROWS, _GAP_DRAWS = 2_000, 4
KEPT_ROWS = 4_096
"""Number of generated rows in which the shares of rows that satisfy rules are measured."""


def kept_rules(constrained: ConstrainedModel, seed: int) -> list[dict[str, Any]]:
    """Returns the model's rules as dicts, each with `share_of_drawn`, the share of generated rows
    that satisfy it."""
    schema = constrained.codec.schema
    rules = [rule for rule in schema.rules or () if rule.keep != "off"]
    if not rules:
        return []
    generator = generator_for(seed, "kept rules")
    rows = constrained.decode(constrained.draw(KEPT_ROWS, KEPT_ROWS, generator), 0, seed)
    return [
        rule.to_json() | {"formula": str(rule), "share_of_drawn": finding.rule.share}
        for rule, finding in zip(rules, measured(rules, rows, schema), strict=True)
    ]


def measure(
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
        hard rules, `hard_rule_acceptance`, whose member `moved` lists the columns whose
        distribution rejection changes.
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
    held-out rows, which decided when to stop and so have a small influence on the model.

    Returns:
        `nats`, the mean difference in nats per row; `standard_error` of this difference; `area`,
        the share of pairs in which the training row is likelier (0.5 without memorisation); and
        `rows`, the number of held-out rows.
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
    """Returns bounds of a random sample of at most `GAP_ROWS` rows, in nats, for the table's
    units."""
    generator = generator_for(seed, "memory gap")
    chosen = of_sort[torch.randperm(len(of_sort), generator=generator)[:GAP_ROWS]].sort().values
    noise = RowNoise.numbered(seed, "memory gap", chosen.tolist())
    with torch.no_grad():
        bounds = iwae_bound(model, rows.take(chosen), noise, n_draws=_GAP_DRAWS).bound
    in_units: Numbers = (bounds - rows.log_units[chosen]).double().numpy()
    return in_units
