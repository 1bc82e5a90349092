"""Calibration of a model's one-way margins to those of the training table.

A model that is right column by column given what came before still drifts, a little with every
column, from the margins of the table. Here the drift is measured on rows of the model's own, and
taken out, in column order, so that later columns see calibrated earlier ones: codes by a shift of
the column's logits, numbers by a warp of their axis.

A copula leaves each column its margin at every z, so there all code probabilities are shifted at
once, by the biases of the marginals' heads; its numbers keep their margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gcvae.generators import generator_for, uniform
from gcvae.marginals import padded_counts
from gcvae.model import CopulaConditional, GenerativeModel, PrincipalDirectionConditional
from gcvae.refinement import ColumnDistribution, RefinedConditional, RefinedDecoder, Walk
from gcvae.warps import piecewise

_LEAST_ROWS, _MOST_ROWS = 20_000, 100_000
_MOST_OUTPUTS = 60_000_000
"""Of all rows together, so that wide tables and many levels fit into memory."""
_N_ROUNDS = 3
_PSEUDO_ROWS = 0.5
"""Added to the expected count of a code on both sides, so that rare codes are left alone."""
_LEAST_NUMBERS = 100
"""A column with fewer numbers in the table keeps its warp."""
_BLOCK_ROWS = 4096
_LEAST_RISE = 1e-9
_LARGEST_SHIFT = 0.5
"""In standard deviations of the column's normal scores."""


def calibrate(model: GenerativeModel, code_counts: Sequence[Tensor], seed: int) -> None:
    """Brings the shares of codes and the distributions of numbers to those of a table, in place.

    Args:
        model: Trained.
        code_counts: For each column how many rows of the table have each code. Shape: (K_j,) each.
        seed: Of the model's own rows.
    """
    generator = generator_for(seed, "calibration")
    n_table = int(code_counts[0].sum())
    n_rows = min(max(n_table, _LEAST_ROWS), _MOST_ROWS, _rows_that_fit(model))
    with torch.no_grad():
        z = model.prior.sample(n_rows, generator)
        if not isinstance(model.decoder, RefinedDecoder):
            _calibrate_biases(model, z, code_counts)
            return
        conditional = model.conditional(z)
        assert isinstance(conditional, RefinedConditional)
        walk = Walk(conditional)
        for j in walk.refinement.order:
            column = _calibrated_codes(walk, j, code_counts[j])
            _calibrate_numbers(column, code_counts[j])
            noise = uniform((n_rows,), generator, torch.float64)
            walk.step(j, *column.draw(noise))


def _rows_that_fit(model: GenerativeModel) -> int:
    """So many rows that their outputs stay within bounds."""
    width = sum(column.n_codes for column in model.marginals.columns)
    width += 3 * model.marginals.n_components * len(model.marginals.columns)
    return max(_MOST_OUTPUTS // width, 1000)


def _calibrate_biases(model: GenerativeModel, z: Tensor, code_counts: Sequence[Tensor]) -> None:
    """Moves the logits' biases by the log ratios of wanted and present shares, a few times."""
    groups = model.marginals.code_groups
    wanted = [
        torch.stack([padded_counts(code_counts[j], group.shape[1]) for j in group.columns.tolist()])
        for group in groups
    ]
    n_table = int(code_counts[0].sum())
    for _ in range(_N_ROUNDS):
        for group, count, share in zip(groups, wanted, _shares(model, z), strict=True):
            present = share * n_table + _PSEUDO_ROWS
            group.logits.bias.add_(((count + _PSEUDO_ROWS) / present).log().flatten())


def _shares(model: GenerativeModel, z: Tensor) -> list[Tensor]:
    """E beta over the draws of z. Shape: for each group of columns (D_group, K_group)."""
    sums = [torch.zeros(group.shape, dtype=z.dtype) for group in model.marginals.code_groups]
    for block in z.split(_BLOCK_ROWS):
        conditional = model.conditional(block)
        assert isinstance(conditional, CopulaConditional | PrincipalDirectionConditional)
        for total, log_beta in zip(sums, conditional.parameters.log_beta, strict=True):
            total += log_beta.exp().sum(0)
    return [total / len(z) for total in sums]


def _calibrated_codes(walk: Walk, j: int, counts: Tensor) -> ColumnDistribution:
    """Column j, its shift moved by the log ratio of wanted and present shares, a few times."""
    column = walk.distribution(j)
    g, at = walk.refinement.group_of(j)
    if g is None:
        return column
    shift = walk.refinement.shifts[g][at]
    n_table = int(counts.sum())
    wanted = padded_counts(counts, len(shift)) + _PSEUDO_ROWS
    moved = torch.zeros_like(shift)
    for _ in range(_N_ROUNDS):
        present = torch.softmax(column.log_beta + moved, dim=-1).mean(0) * n_table + _PSEUDO_ROWS
        moved += (wanted / present).log()
    shift += moved
    return replace(column, log_beta=torch.log_softmax(column.log_beta + moved, dim=-1))


def _calibrate_numbers(column: ColumnDistribution, counts: Tensor) -> None:
    """Sets the column's warp: S(v) = G^-1(Phi(v)), G the model's own cdf of the numbers."""
    if column.warp is None or int(counts[column.point_code :].sum()) < _LEAST_NUMBERS:
        return
    warps, at = column.warp
    weight = column.log_beta[:, column.point_code].exp().double()
    share = torch.zeros_like(warps.knots)
    for rows in torch.arange(len(weight)).split(_BLOCK_ROWS):
        share += weight[rows] @ column.mixture_cdf(rows, warps.knots)
    scores = torch.special.ndtri((share / weight.sum()).clamp(1e-9, 1.0 - 1e-9))
    # G is known at the knots; G^-1(Phi(v)) is read off between them. Ties would divide by zero.
    rising = scores.cummax(0).values + _LEAST_RISE * torch.arange(len(scores))
    found, _ = piecewise(warps.knots, rising, warps.knots)
    found = found.clamp(warps.knots - _LARGEST_SHIFT, warps.knots + _LARGEST_SHIFT)
    steps = found.diff().clamp(min=0.2 * float(warps.knots[1] - warps.knots[0]))
    start = found[len(found) // 2] - steps[: len(found) // 2].sum()
    warps.heights[at] = torch.cat([start[None], start + steps.cumsum(0)])
