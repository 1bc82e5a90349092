"""Calibration of a trained model: its columns to held-out rows, its margins to the training table.

Training ends where held-out rows are likeliest as a whole. By then a column of many codes may have
been learned by heart – which aircraft flies where, of some rows each – while others still learn.
So of what an autoregressive network adds to each column's logits a tenth after the other is taken
away, as long as each makes held-out rows likelier by more than chance. Without all of it the column
is left to z.

A model that is right column by column given what came before still drifts, a little with every
column, from the margins of the table. Here the drift is measured on rows of the model's own, and
taken out, in column order, so that later columns see calibrated earlier ones: codes by a shift of
the column's logits, numbers by a monotone transform of their axis.

A copula leaves each column its margin at every z, so there all code probabilities are shifted at
once, by the biases of the marginals' heads; its numbers keep their margins.

# PAPER-DIFF: the paper's marginals are as training leaves them. Calibration shifts them to the
# table's margins: drawn columns fit better, and scores have its slopes in them. Factors take back
# what was learned by heart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gcvae.codec.encoded_rows import TrainingRows
from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.change_points import PiecewiseMarginal
from gcvae.model.column_distribution import ColumnDistribution
from gcvae.model.decoders import GenerativeModel, beside
from gcvae.model.marginals import padded_counts
from gcvae.model.monotone_transforms import piecewise
from gcvae.model.networks import ColumnShape
from gcvae.model.priors import GaussianMixturePrior, fit_best_mixture, gaussian_kl
from gcvae.model.walks import AutoregressiveWalk
from gcvae.numerics.generators import generator_for, normal, uniform
from gcvae.progress import Report, report_to_nobody

_LEAST_ROWS, _MANY_ROWS, _MOST_ROWS = 4_000, 20_000, 100_000
_ROWS_PER_ROW = 10
_MOST_OUTPUTS = 40_000_000
"""The most outputs of all rows together: wide tables and many levels fit into memory."""
_N_ROUNDS = 3
_PSEUDO_ROWS = 0.5
"""Added to the expected count of a code on both sides, so that rare codes are left alone."""
_EFFORT_OF_NUMBERS = 4.0
_LEAST_NUMBERS = 100
"""A column with fewer numbers in the table keeps its transform."""
_CHUNK_ROWS = 4096
_LEAST_RISE = 1e-9
_LARGEST_SHIFT = 0.5
"""The farthest that a number moves, in standard deviations of its column's normal scores."""
_MOST_JUDGES, _LEAST_JUDGES = 4_000, 100
"""Held-out rows that judge factors."""
_TENTHS = 10
_DEVIATIONS, _LEAST_GAIN = 2.0, 0.005
"""By which their mean gain by a tenth less is above none, and nats by all together."""


def rows_drawn(n_table: int) -> int:
    """How many rows the model draws for a table of so many.

    Ten for each of a small table, so that the model's own noise is small beside the table's.
    """
    n_rows = min(max(_ROWS_PER_ROW * n_table, _LEAST_ROWS), _MANY_ROWS)
    return min(max(n_table, n_rows), _MOST_ROWS)


def calibrate(
    model: GenerativeModel,
    code_counts: Sequence[Tensor],
    seed: int,
    report: Report = report_to_nobody,
) -> None:
    """Brings the shares of codes and the distributions of numbers to those of a table, in place.

    Args:
        model: Trained.
        code_counts: For each column how many rows of the table have each code. Shape: (K_j,) each.
        seed: Seed of the model's own rows.
        report: Takes the progress; what it raises ends the calibration.
    """
    generator = generator_for(seed, "calibration")
    n_table = int(code_counts[0].sum())
    n_rows = min(rows_drawn(n_table), _rows_that_fit(model))
    with torch.no_grad():
        z = model.latents(n_rows, generator)
        walk = model.decoder.ordered_walk(z)
        if walk is None:
            _calibrate_biases(model, z, code_counts, report)
            return
        done, whole = 0.0, float(sum(map(_effort, model.marginals.columns)))
        for j in walk.order:
            column = _calibrated_codes(walk, j, code_counts[j])
            column = _calibrated_bins(walk, j, column, code_counts[j])
            _calibrate_numbers(column, code_counts[j])
            if isinstance(column.marginal, PiecewiseMarginal) and column.transform is not None:
                points = column.marginal.points
                points.copy_(column.transform.forward(points)[0])
            noise = uniform((n_rows,), generator, torch.float64)
            walk.step(j, *_drawn(column, noise))
            done += _effort(model.marginals.columns[j])
            report(done / whole)


def _drawn(column: ColumnDistribution, noise: Tensor) -> tuple[Tensor, Tensor]:
    """`column.draw`, a few rows at a time: of many codes it takes doubles. Shape: (N,)."""
    parts = [
        column.take(rows).draw(noise[rows]) for rows in torch.arange(len(noise)).split(_CHUNK_ROWS)
    ]
    codes, values = zip(*parts, strict=True)
    return torch.cat(codes), torch.cat(values)


def _effort(column: ColumnShape) -> float:
    """What a column takes, beside one of codes alone."""
    return 1.0 if column.point_code is None else _EFFORT_OF_NUMBERS


def _rows_that_fit(model: GenerativeModel) -> int:
    """So many rows that their outputs stay within bounds."""
    width = sum(column.n_codes for column in model.marginals.columns)
    width += 3 * model.marginals.n_components * len(model.marginals.columns)
    return max(_MOST_OUTPUTS // width, 1000)


def _calibrate_biases(
    model: GenerativeModel, z: Tensor, code_counts: Sequence[Tensor], report: Report
) -> None:
    """Moves the logits' biases by the log ratios of wanted and present shares, a few times."""
    groups = model.marginals.code_groups
    wanted = [
        torch.stack([padded_counts(code_counts[j], group.shape[1]) for j in group.columns.tolist()])
        for group in groups
    ]
    n_table = int(code_counts[0].sum())
    for number in range(_N_ROUNDS):
        for group, count, share in zip(groups, wanted, _shares(model, z), strict=True):
            present = share * n_table + _PSEUDO_ROWS
            group.logits.bias.add_(((count + _PSEUDO_ROWS) / present).log().flatten())
        report((number + 1) / _N_ROUNDS)


def _shares(model: GenerativeModel, z: Tensor) -> list[Tensor]:
    """E beta over the draws of z. Shape: for each group of columns (D_group, K_group)."""
    sums = [torch.zeros(group.shape, dtype=z.dtype) for group in model.marginals.code_groups]
    for chunk in z.split(_CHUNK_ROWS):
        alone = model.conditional(chunk).alone
        for total, log_beta in zip(sums, alone.log_beta, strict=True):
            total += log_beta.exp().sum(0)
    return [total / len(z) for total in sums]


def _calibrated_codes(walk: AutoregressiveWalk, j: int, counts: Tensor) -> ColumnDistribution:
    """Column j, its shift moved by the log ratio of wanted and present shares, a few times.

    What other columns fix stays so: a shift moves codes among those that keep a function.
    """
    alone = walk.column_alone(j)
    g, at = walk.network.group_of(j)
    if g is None:
        return walk.with_functions(j, alone)
    shift = walk.network.shifts[g][at]
    n_table = int(counts.sum())
    wanted = padded_counts(counts, len(shift)) + _PSEUDO_ROWS
    moved = torch.zeros_like(shift)
    for _ in range(_N_ROUNDS):
        share = torch.zeros_like(shift)
        for rows in torch.arange(len(alone.log_beta)).split(_CHUNK_ROWS):
            log_beta = torch.log_softmax(alone.log_beta[rows] + moved, dim=-1)
            some = replace(alone, log_beta=log_beta)
            share += walk.with_functions(j, some, rows).log_beta.exp().sum(0)
        present = share / len(alone.log_beta) * n_table + _PSEUDO_ROWS
        moved += (wanted / present).log()
    shift += moved
    log_beta = torch.log_softmax(alone.log_beta + moved, dim=-1)
    return walk.with_functions(j, replace(alone, log_beta=log_beta))


def _calibrated_bins(
    walk: AutoregressiveWalk, j: int, column: ColumnDistribution, counts: Tensor
) -> ColumnDistribution:
    """Column j, the bins between its change points moved by the log ratio of wanted and present
    shares, a few times. Normal scores have the table's shares: those of the normal distribution.
    """
    marginal, n_numbers = column.marginal, int(counts[column.point_code :].sum())
    if not isinstance(marginal, PiecewiseMarginal) or n_numbers < _LEAST_NUMBERS:
        return column
    ends = torch.nn.functional.pad(torch.special.ndtr(marginal.points), (1, 0))
    wanted = torch.nn.functional.pad(ends, (0, 1), value=1.0).diff() * n_numbers + _PSEUDO_ROWS
    weight = column.log_beta[:, column.point_code].exp().double()
    _, bias = walk.network.steps.weights(j)
    for _ in range(_N_ROUNDS):
        share = torch.zeros_like(wanted)
        for rows in torch.arange(len(weight)).split(_CHUNK_ROWS):
            share += weight[rows] @ marginal[rows].log_bins.exp().double()
        present = share / weight.sum() * n_numbers + _PSEUDO_ROWS
        moved = (wanted / present).log().to(bias)
        bias += moved
        marginal = replace(marginal, logits=marginal.logits + moved)
    return replace(column, marginal=marginal)


def _calibrate_numbers(column: ColumnDistribution, counts: Tensor) -> None:
    """Sets the column's transform: S(v) = G^-1(Phi(v)), G the model's own cdf of the numbers."""
    marginal, transform = column.marginal, column.transform
    if marginal is None or transform is None:
        return
    if int(counts[column.point_code :].sum()) < _LEAST_NUMBERS:
        return
    knots = transform.knots
    weight = column.log_beta[:, column.point_code].exp()
    share = torch.zeros_like(knots)
    places = knots.to(
        weight.dtype
    )  # rows differ by more than a float's last digits, and it is quick
    for rows in torch.arange(len(weight)).split(_CHUNK_ROWS):
        share += (weight[rows] @ marginal[rows, None].cdf(places)).double()
    scores = torch.special.ndtri((share / weight.sum()).clamp(1e-9, 1.0 - 1e-9))
    # G is known at the knots; G^-1(Phi(v)) is read off between them. Ties would divide by zero.
    rising = scores.cummax(0).values + _LEAST_RISE * torch.arange(len(scores))
    found, _ = piecewise(knots, rising, knots)
    found = found.clamp(knots - _LARGEST_SHIFT, knots + _LARGEST_SHIFT)
    steps = found.diff().clamp(min=0.2 * float(knots[1] - knots[0]))
    start = found[len(found) // 2] - steps[: len(found) // 2].sum()
    transform.heights.copy_(torch.cat([start[None], start + steps.cumsum(0)]))


def shrink(model: GenerativeModel, rows: TrainingRows, held_out: Tensor, seed: int) -> list[float]:
    """Multiplies what a trained network adds to its columns' logits, in place.

    Args:
        model: Whose network, if it has one.
        rows: Rows of the table.
        held_out: Places of the rows that training did not see; of all rows where it saw them.
        seed: Seed of their latents.

    Returns:
        The factor of each column, 1 without a network, or without enough held-out rows.
    """
    if not model.decoder.is_autoregressive or not _LEAST_JUDGES <= len(held_out) < len(rows):
        return [1.0] * len(model.marginals.columns)
    chosen = rows.take(held_out.cpu()[:_MOST_JUDGES])
    generator = generator_for(seed, "shrinkage")
    with torch.no_grad():
        eta, log_tau = model.encoder(chosen)
        z = eta + log_tau.exp() * normal(tuple(eta.shape), generator)
        walk = model.decoder.ordered_walk(beside(z, chosen.context))
        assert isinstance(walk, AutoregressiveWalk), "the decoder is autoregressive"
        factors = [1.0] * len(walk.order)
        for j in walk.order:
            codes, values = chosen.codes[:, j], chosen.values[:, j]
            factors[j] = _factor(walk, j, codes, values)
            _multiply(walk.network, j, factors[j])
            walk.step(j, codes, values)
    return factors


def _factor(walk: AutoregressiveWalk, j: int, codes: Tensor, values: Tensor) -> float:
    """Returns the factor of column j: 1 less tenths, while each makes rows likelier by more than
    chance."""
    if walk.network.group_of(j)[0] is None:
        return 1.0
    before = best = walk.column(j).log_prob(codes, values)
    factor = 1.0
    for step in range(1, _TENTHS + 1):
        lower = (_TENTHS - step) / _TENTHS
        found = _log_prob(walk, j, lower, codes, values)
        gains = (found - best).double()
        error = float(gains.std()) / len(gains) ** 0.5
        if not float(gains.mean()) > _DEVIATIONS * error:
            break
        factor, best = lower, found
    return factor if float((best - before).mean()) > _LEAST_GAIN else 1.0


def _log_prob(
    walk: AutoregressiveWalk, j: int, factor: float, codes: Tensor, values: Tensor
) -> Tensor:
    """log p of cells of column j under a factor. Shape: (N,) twice -> (N,)."""
    kept = [part.clone() for part in _additions(walk.network, j)]
    _multiply(walk.network, j, factor)
    found = walk.column(j).log_prob(codes, values)
    for part, value in zip(_additions(walk.network, j), kept, strict=True):
        part.copy_(value)
    return found


def _multiply(network: AutoregressiveNetwork, j: int, factor: float) -> None:
    """Multiplies what the network adds to the logits of column j, in place."""
    if factor != 1.0:
        for part in _additions(network, j):
            part.mul_(factor)


def _additions(network: AutoregressiveNetwork, j: int) -> tuple[Tensor, Tensor]:
    """Returns the weights and the shift of what the network adds to the logits of column j."""
    g, at = network.group_of(j)
    assert g is not None, "the column has several codes"
    return network.to_logits[g][at], network.shifts[g][at]


PRIOR_ROWS = 20_000
"""Rows whose latents are drawn, at most."""
_COMPONENTS = (1, 8, 24, 48)
_LEAST_DIVERGENCE = 0.01
"""Nats per row that a dimension of z carries at least, if its prior is to be fitted: the posterior
of the others is the standard normal, and components would be spent on them in vain."""


def mixture_prior(
    model: GenerativeModel,
    rows: TrainingRows,
    held_out: Tensor,
    seed: int,
    report: Report = report_to_nobody,
) -> GaussianMixturePrior:
    """Returns the prior mixture, fitted to draws of the posterior over the training rows.

    In the dimensions that the model uses; the others keep their standard normal prior.
    """
    generator = generator_for(seed, "prior")
    is_held_out = torch.zeros(len(rows), dtype=torch.bool)
    is_held_out[held_out] = len(held_out) < len(rows)
    training = (~is_held_out).nonzero()[:, 0]
    chosen = training[torch.randperm(len(training), generator=generator)[:PRIOR_ROWS]]
    with torch.no_grad():
        eta, log_tau = model.encoder(rows.take(torch.cat([chosen, held_out])))
    z = eta + log_tau.exp() * normal(tuple(eta.shape), generator)
    is_used = gaussian_kl(eta[..., None], log_tau[..., None]).mean(0) > _LEAST_DIVERGENCE
    draws = z[:, is_used]
    z, z_held_out = draws[: len(chosen)], draws[len(chosen) :]
    fitted = fit_best_mixture(z, z_held_out, _COMPONENTS, seed, report)
    return fitted.widened(is_used)
