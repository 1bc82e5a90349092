"""Scores of members and unseen rows under the model itself, for a report."""

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
"""Draws of z for each row; a likelihood of few draws is lower, of all rows alike."""
_MOST_FITTED_ROWS = 20_000
_CHUNK_ROWS = 500


@dataclass(frozen=True)
class ModelScores:
    """Shape: of `attacks` members and after them unseen rows, (2n,) each."""

    likelihoods: RowLikelihoods
    attacks: dict[str, Numbers]


def model_scores(
    model: Model,
    rows: ReportRows,
    n_rows: int,
    seed: int,
    report: Report = report_to_nobody,
) -> ModelScores:
    """Scores of the first `n_rows` members and unseen rows, under the model and simpler ones.

    The simpler ones that the model is compared with learn from members, that of the attack from
    reference rows, which are in neither class.
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
    learned = _plain(model, rows.members.head(_MOST_FITTED_ROWS), both.iloc[n_rows:], seed)
    report(0.9)
    reference = _plain(model, rows.reference, both, seed).copula
    ratio = _less(scores, reference)
    likelihoods = RowLikelihoods(
        scores[:n_rows], scores[n_rows:], percentiles, learned.independent, learned.copula
    )
    return ModelScores(likelihoods, {"likelihood": scores, "likelihood_ratio": ratio})


def _plain(model: Model, fitted: pd.DataFrame, scored: pd.DataFrame, seed: int) -> PlainScores:
    """Scores in the table's units of models that learn from `fitted`."""
    codec = model.codec
    plain = PlainCopula.fit(codec, codec.encode(fitted))
    rows = codec.encode(scored)
    units = codec.log_units(rows).numpy()
    found = [
        plain.scores(rows.take(index), seed) for index in torch.arange(len(rows)).split(_CHUNK_ROWS)
    ]
    units[codec.hidden_cells(rows).any(1).numpy()] = np.inf  # no level of theirs either
    return PlainScores(
        np.concatenate([scores.independent for scores in found]) - units,
        np.concatenate([scores.copula for scores in found]) - units,
    )


def _less(scores: Numbers, reference: Numbers) -> Numbers:
    """Returns the difference; rows that the model can not draw tie below all others."""
    is_known = np.isfinite(scores) & np.isfinite(reference)
    return np.where(is_known, scores - np.where(is_known, reference, 0.0), -np.inf)
