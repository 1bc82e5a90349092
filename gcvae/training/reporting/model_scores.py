"""Scores of members (training rows) and unseen rows under a model and reference models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from gcvae.arrays import Numbers
from gcvae.evaluation.report.likelihood import RowLikelihoods
from gcvae.evaluation.report.rows import ReportRows
from gcvae.progress import Report, report_to_nobody
from gcvae.scoring.plain_copula import PlainCopula, PlainScores
from gcvae.training.reporting.report_rows import Model

DRAWS = 20
"""Number of latent vectors per row; with fewer, likelihood estimates of all rows are lower."""
_MOST_FITTED_ROWS = 20_000
_CHUNK_ROWS = 500


@dataclass(frozen=True)
class ModelScores:
    """Scores of real rows under a model, for the likelihood and privacy parts of a report.

    Attributes:
        likelihoods: Log-likelihoods of n members and n unseen rows, and of the reference models.
        attacks: Scores by which a membership attack ranks n members and then n unseen rows, by name
            of the attack. Shape: (2n,) each.
    """

    likelihoods: RowLikelihoods
    attacks: dict[str, Numbers]


def model_scores(
    model: Model,
    rows: ReportRows,
    n_rows: int,
    seed: int,
    report: Report = report_to_nobody,
) -> ModelScores:
    """Computes scores of the first `n_rows` members (training rows) and unseen rows.

    The models to which likelihoods are compared are fitted to members. The reference model of the
    likelihood ratio attack is fitted to reference rows, which are neither members nor unseen rows.
    """
    assert rows.unseen is not None
    both = pd.concat([rows.members.head(n_rows), rows.unseen.head(n_rows)], ignore_index=True)
    found = []
    for first in range(0, len(both), _CHUNK_ROWS):
        part = both.iloc[first : first + _CHUNK_ROWS]
        found.append(model.log_likelihood(part, draws=DRAWS, seed=seed, score_missingness=True))
        report(0.8 * min(1.0, (first + _CHUNK_ROWS) / len(both)))
    lines = pd.concat(found, ignore_index=True)
    scores = lines["log_likelihood"].to_numpy()
    percentiles = lines["percentile"].to_numpy()[n_rows:]
    learned = _plain_scores(model, rows.members.head(_MOST_FITTED_ROWS), both.iloc[n_rows:], seed)
    report(0.9)
    reference = _plain_scores(model, rows.reference, both, seed).copula
    ratio = _likelihood_ratios(scores, reference)
    likelihoods = RowLikelihoods(
        scores[:n_rows], scores[n_rows:], percentiles, learned.independent, learned.copula
    )
    return ModelScores(likelihoods, {"likelihood": scores, "likelihood_ratio": ratio})


def _plain_scores(
    model: Model, fitted: pd.DataFrame, scored: pd.DataFrame, seed: int
) -> PlainScores:
    """Returns log densities of the rows `scored`, in the table's units, under simple reference
    models (independence, Gaussian copula) that are fitted to the rows `fitted`."""
    codec = model.codec
    plain = PlainCopula.fit(codec, codec.encode(fitted))
    rows = codec.encode(scored)
    units = codec.log_units(rows).numpy()
    found = [
        plain.scores(rows.take(index), seed) for index in torch.arange(len(rows)).split(_CHUNK_ROWS)
    ]
    units[codec.hidden_cells(rows).any(1).numpy()] = np.inf  # rows that no model can generate
    return PlainScores(
        np.concatenate([scores.independent for scores in found]) - units,
        np.concatenate([scores.copula for scores in found]) - units,
    )


def _likelihood_ratios(scores: Numbers, reference: Numbers) -> Numbers:
    """Returns scores minus reference scores; -inf for rows that a model cannot generate."""
    is_known = np.isfinite(scores) & np.isfinite(reference)
    return np.where(is_known, scores - np.where(is_known, reference, 0.0), -np.inf)
