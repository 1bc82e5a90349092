"""Anomaly of a row: the tail probability of its least likely cell.

    t_j = P(an outcome of column j that is no likelier than this one | the cells before it)
    T   = (number of known cells) · min_j t_j

A log-likelihood hardly shows one unlikely cell: a wrong category of probability 1 in 10,000 lowers
it by nine nats, but the log-likelihoods of ordinary rows with many columns differ by more. T is
ranked among held-out rows of training, so that a share p of similar rows has an `anomaly` of at
most p.

The unknown cells of a partly observed row are first drawn given all known ones, several times; t_j
of a known cell is the mean over these completions.

For numbers, t is two-sided: twice the smaller tail of the conditional. The conditionals are those
of an autoregressive decoder (presets `default`, `fast`); other models have no anomalies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Numbers
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.region import Region
from gcvae.codec.table_codec import TableCodec
from gcvae.model.column_distribution import ColumnDistribution
from gcvae.model.decoders import GenerativeModel
from gcvae.model.proposals import draw_latents
from gcvae.numerics.generators import RowGenerators, generator_for, uniform
from gcvae.numerics.row_noise import RowNoise
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.sampling.regions import known_regions
from gcvae.sampling.row_completion import complete_rows

ANOMALY, ODD_CELL = "anomaly", "odd_cell"
_DRAWS = 8
"""Number of draws of z for each row."""
_COMPLETIONS = 4
"""Number of completions of each partly observed row."""
_EVALUATIONS_AT_ONCE = 4096
_EQUAL = 1.0 + 1e-6
"""Two probabilities with a smaller ratio count as equal."""


def cell_tails(
    model: GenerativeModel,
    rows: EncodedTable,
    noise: RowNoise,
    code_counts: Sequence[Tensor] | None = None,
) -> Tensor | None:
    """Returns the tail probability of each known cell of n rows and D columns.

    It is the probability of outcomes no likelier than the cell, given the cells before it; 1 for
    unknown cells. Shape: (n, D).

    The conditionals are averaged over draws of the latent vector z, each weighted by its likelihood
    of the earlier cells. Returns None for models that are not autoregressive.

    Args:
        rows: Encoded rows; cells that are not `observed` are unknown.
        noise: Random numbers of each row.
        code_counts: Number of rows of the training table with each code, for each column. With it,
            each of `rows`, which must belong to that table, is scored as if the table did not
            contain the row. None for other rows. Shape: (K_j,) for the K_j codes of column j.
    """
    if not model.is_autoregressive:
        return None
    kept = torch.ones(rows.codes.shape, dtype=torch.float64)
    for j, counts in enumerate(code_counts or ()):
        codes = rows.codes[:, j].long()
        others = (counts.double() - 1.0).clamp(min=0.0) / counts.clamp(min=1)
        kept[:, j] = torch.where(codes >= 0, others[codes.clamp(min=0)], 1.0)
    at_once = max(1, _EVALUATIONS_AT_ONCE // _DRAWS)
    with torch.no_grad():
        parts = [
            _tails(model, rows.take(at), noise.take(at), kept[at])
            for at in torch.arange(len(rows)).split(at_once)
        ]
    return torch.cat(parts) if parts else torch.ones(rows.codes.shape, dtype=torch.float64)


def completed_tails(
    constrained: ConstrainedModel,
    typed: pd.DataFrame,
    rows: EncodedTable,
    noise: RowNoise,
) -> Tensor | None:
    """Returns the tail probability of each known cell of n partly observed rows, 1 for unknown
    ones, averaged over completions of the row.

    Returns None for models that are not autoregressive. Shape: (n, D), for D columns.

    Args:
        typed: Rows with cells of the columns' dtypes; missing cells are unknown.
        rows: The same rows, encoded.
        noise: Random numbers of each row.
    """
    model, codec = constrained.model, constrained.codec
    if not model.is_autoregressive:
        return None
    regions = known_regions(codec, typed, rows, model.order, may_be_missing=True)
    plain = EncodedTable(rows.codes, rows.values, rows.observed)
    generators = RowGenerators.of_noise(noise.of("completed"))
    drawn = complete_rows(model, regions, plain, _COMPLETIONS, generators)
    tails = torch.zeros(rows.codes.shape, dtype=torch.float64)
    for k in range(_COMPLETIONS):
        whole = torch.ones_like(rows.observed)
        found = cell_tails(model, EncodedTable(drawn.codes[:, k], drawn.values[:, k], whole), noise)
        assert found is not None, "the model is autoregressive"
        tails += found / _COMPLETIONS
    return torch.where(rows.observed, tails, 1.0)


def _tails(model: GenerativeModel, rows: EncodedTable, noise: RowNoise, kept: Tensor) -> Tensor:
    """Returns the tail probability of each known cell, 1 for unknown ones. The probability of
    each cell's code is multiplied by `kept` (see `column_tails`). Shape: (n, D)."""
    latents = draw_latents(model, rows, _DRAWS, [noise])
    z, log_weight = latents.z[:_DRAWS].flatten(0, 1), latents.log_ratio[:_DRAWS].flatten()
    walk = model.walk(z)
    n = len(rows)
    u = uniform((_DRAWS, rows.codes.shape[1]), generator_for(0, "anomalies"), torch.float64)
    tails = torch.ones(rows.codes.shape, dtype=torch.float64)
    for j in walk.order or range(rows.codes.shape[1]):
        column = walk.column(j)
        assert isinstance(column, ColumnDistribution), "an autoregressive decoder has these"
        codes, values = rows.codes[:, j].repeat(_DRAWS), rows.values[:, j].repeat(_DRAWS)
        known = rows.observed[:, j].repeat(_DRAWS)
        drawn_codes, drawn_values = column.draw(u[:, j].repeat_interleave(n))
        tail = torch.where(
            known, column_tails(column, codes, values, kept[:, j].repeat(_DRAWS)), 1.0
        )
        weight = torch.softmax(log_weight.view(_DRAWS, n), dim=0)
        tails[:, j] = (weight * tail.view(_DRAWS, n)).sum(0)
        log_weight = log_weight + torch.where(
            known & (codes >= 0), column.log_prob(codes, values).double().clamp(min=-1e3), 0.0
        )
        codes = torch.where(known, codes.clamp(min=0), drawn_codes)
        walk.step(j, codes, torch.where(known, values, drawn_values))
    return tails


def column_tails(
    column: ColumnDistribution, codes: Tensor, values: Tensor, kept: Tensor | None = None
) -> Tensor:
    """Returns for each of N cells the total probability of the outcomes of its column that are no
    likelier than the cell.

    The probability of each cell's code is multiplied by `kept` (None for 1). For a cell of the
    training table this is (c - 1) / c, if c cells of the table have the code: the cell is then
    judged as if its row were not in the table. Shape: codes, values and kept (N,) -> (N,).
    """
    mass = column.log_beta.double().exp()
    own = mass.gather(-1, codes.long().clamp(min=0)[:, None])[:, 0]
    own = own if kept is None else own * kept
    is_number = codes == column.point_code
    if column.marginal is not None and bool(is_number.any()):
        own = torch.where(is_number, own * _two_sided(column, values), own)
    others = torch.arange(mass.shape[-1]) != codes[:, None]
    rest = torch.where(others & (mass <= _EQUAL * own[:, None]), mass, 0.0).sum(-1)
    return torch.where(codes >= 0, (own + rest).clamp(max=1.0), 0.0)


def _two_sided(column: ColumnDistribution, values: Tensor) -> Tensor:
    """Returns 2 min(F, 1 - F) of each number, with F the distribution function of the column's
    numbers that have a density. Shape: (N,)."""
    log_share = torch.full((1, column.log_beta.shape[-1]), -torch.inf, dtype=torch.float64)
    log_share[0, column.point_code] = 0.0
    ends = torch.full_like(values, -torch.inf)[:, None], values[:, None].double()
    below = column.draw_within(Region(log_share, *ends), torch.full_like(values, 0.5))
    share = below.log_prob - column.log_beta[:, column.point_code].double()
    cdf = share.exp().clamp(0.0, 1.0)
    return 2.0 * torch.minimum(cdf, 1.0 - cdf)


def row_tails(tails: Numbers, known: Numbers) -> Numbers:
    """Returns the anomaly statistic of each row: its smallest tail probability times its number of
    known cells, at most 1. Shape: tail probabilities (n, D), mask of known cells (n, D) -> (n,).
    """
    if not tails.shape[1]:
        return np.ones(len(tails))
    return np.asarray(np.minimum(tails.min(axis=1) * np.maximum(known.sum(axis=1), 1), 1.0))


def odd_cells(codec: TableCodec, tails: Numbers) -> list[str | None]:
    """Returns the name of the column with each row's smallest tail probability; None if all are 1.

    Shape: tails (n, D), for n rows and D encoded columns.
    """
    owners = [codec.reduction.owners.get(c.name, c.name) for c in codec.columns]
    if not owners:
        return [None] * len(tails)
    return [
        owners[j] if row[j] < 1.0 else None
        for j, row in zip(tails.argmin(axis=1), tails, strict=True)
    ]


def p_values(reference: Mapping[str, list[float]] | None, found: Numbers) -> Numbers:
    """Returns p-values of rows: the share of held-out rows whose anomaly statistic (`row_tails`) is
    at most that of the row.

    NaN if there are no held-out rows. Below the smallest positive statistic of held-out rows, p
    decreases in proportion to the row's statistic, so that the most unusual rows rank first.

    Args:
        reference: Sorted statistics of held-out rows under the key `anomaly`; None without any.
        found: Anomaly statistics of n rows. Shape: (n,).
    """
    ranked = np.asarray((reference or {}).get(ANOMALY, ()), dtype=np.float64)
    if not len(ranked):
        return np.full(len(found), np.nan)
    share = (1.0 + np.searchsorted(ranked, found, side="right")) / (len(ranked) + 1.0)
    least = ranked[ranked > 0.0][:1]
    if not len(least):
        return np.asarray(share)
    return np.asarray(np.where(found < least[0], share * found / least[0], share))
