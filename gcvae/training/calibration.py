"""Calibration of a trained model: logit shrinkage on held-out rows, then marginal matching.

Shrinkage: training stops where the held-out likelihood of complete rows is best. By then the model
may have overfitted one column with many codes (integers that encode levels), although it is still
learning other columns. The contribution of the autoregressive network to each column's logits is
therefore reduced in steps of a tenth, as long as each step raises the held-out likelihood
significantly. If the contribution is reduced to zero, the column depends only on z.

Marginal matching: in an autoregressive model, small errors of each conditional distribution add up,
so that marginals of generated rows differ from the table's. The differences are measured on
generated rows and removed in column order, so that later columns depend on calibrated earlier ones:
code probabilities by a shift of the column's logits, numbers by a monotone transform.

In the copula model the marginals given z do not depend on other columns. All code probabilities are
then shifted at once, by the biases of the output layers; numbers are not changed.

# PAPER-DIFF: the paper's marginals are as training leaves them. Calibration matches them to the
# table's: generated columns fit better, and scores include the slopes of the transforms.
# Shrinkage reduces overfitted logits.
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
from gcvae.model.decoders import GenerativeModel, join_context
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
"""Maximum total number of network outputs for all generated rows, to limit memory."""
_N_ROUNDS = 3
_PSEUDO_ROWS = 0.5
"""Number added to the target and current count of each code; it damps the shifts of rare codes."""
_TIME_OF_NUMBERS = 4.0
_LEAST_NUMBERS = 100
"""Minimum number of a column's numbers in the table for its transform to be calibrated."""
_CHUNK_ROWS = 4096
_LEAST_RISE = 1e-9
_LARGEST_SHIFT = 0.5
"""Largest shift of a number, in standard deviations of its column's normal scores."""
_MOST_HELD_OUT, _LEAST_HELD_OUT = 4_000, 100
"""Maximum and minimum number of held-out rows for shrinkage."""
_TENTHS = 10
_DEVIATIONS, _LEAST_GAIN = 2.0, 0.005
"""Minimum mean gain in held-out log-likelihood: `_DEVIATIONS` standard errors for each step, and
`_LEAST_GAIN` nats per row for all steps of a column together."""


def calibrate(
    model: GenerativeModel,
    code_counts: Sequence[Tensor],
    seed: int,
    report: Report = report_to_nobody,
) -> None:
    """Changes a model in place so that marginals of its generated rows match those of the table.

    Args:
        code_counts: For each column j, the number of table rows with each of its K_j codes, the
            integers that encode its cells. Shape: (K_j,).
        report: Function that is called with the finished share of the work.
    """
    generator = generator_for(seed, "calibration")
    n_table = int(code_counts[0].sum())
    n_rows = _rows_drawn(n_table, model)
    with torch.no_grad():
        z = model.latents(n_rows, generator)
        if not model.is_autoregressive:
            _calibrate_biases(model, z, code_counts, report)
            return
        walk = _walk(model, z)
        done, whole = 0.0, float(sum(map(_relative_time, model.marginals.columns)))
        for j in walk.order:
            column = _calibrated_codes(walk, j, code_counts[j])
            column = _calibrated_bins(walk, j, column, code_counts[j])
            _calibrate_numbers(column, code_counts[j])
            if isinstance(column.marginal, PiecewiseMarginal) and column.transform is not None:
                points = column.marginal.points
                points.copy_(column.transform.forward(points)[0])
            noise = uniform((n_rows,), generator, torch.float64)
            walk.step(j, *_draw_in_chunks(column, noise))
            done += _relative_time(model.marginals.columns[j])
            report(done / whole)


def _walk(model: GenerativeModel, z: Tensor) -> AutoregressiveWalk:
    walk = model.walk(z)
    assert isinstance(walk, AutoregressiveWalk), "the decoder is autoregressive"
    return walk


def _draw_in_chunks(column: ColumnDistribution, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Returns `column.draw(noise)`, computed in chunks of rows to limit memory."""
    parts = [
        column.take(rows).draw(noise[rows]) for rows in torch.arange(len(noise)).split(_CHUNK_ROWS)
    ]
    codes, values = zip(*parts, strict=True)
    return torch.cat(codes), torch.cat(values)


def _relative_time(column: ColumnShape) -> float:
    """Returns the time that calibrating a column takes, relative to a column of levels."""
    return 1.0 if column.point_code is None else _TIME_OF_NUMBERS


def _rows_drawn(n_table: int, model: GenerativeModel) -> int:
    """Returns the number of rows to generate for a table of `n_table` rows. It is ten times
    `n_table`, so that sampling noise is small compared with the table's, but at most `_MANY_ROWS`
    or, for a larger table, `n_table`. `_MOST_ROWS` and `_MOST_OUTPUTS` network outputs limit it."""
    n_rows = min(max(_ROWS_PER_ROW * n_table, _LEAST_ROWS), _MANY_ROWS)
    n_rows = min(max(n_table, n_rows), _MOST_ROWS)
    width = sum(column.n_codes for column in model.marginals.columns)
    width += 3 * model.marginals.n_components * len(model.marginals.columns)
    return min(n_rows, max(_MOST_OUTPUTS // width, 1000))


def _calibrate_biases(
    model: GenerativeModel, z: Tensor, code_counts: Sequence[Tensor], report: Report
) -> None:
    """Shifts the output biases, in place, so that the mean code probabilities match the shares of
    the codes in the table.

    Each round adds the logarithm of target share / current share to the bias of each code. One
    round does not suffice, because the probabilities are normalised for each latent vector before
    their mean is taken.

    Args:
        model: A model without an autoregressive network.
        z: Latent vectors over which the code probabilities are averaged.
        code_counts: For each column j, the number of table rows with each code. Shape: (K_j,).
    """
    groups = model.marginals.code_groups
    target = [
        torch.stack([padded_counts(code_counts[j], group.shape[1]) for j in group.columns.tolist()])
        for group in groups
    ]
    n_table = int(code_counts[0].sum())
    for number in range(_N_ROUNDS):
        for group, count, share in zip(groups, target, _shares(model, z), strict=True):
            current = share * n_table + _PSEUDO_ROWS
            group.logits.bias.add_(((count + _PSEUDO_ROWS) / current).log().flatten())
        report((number + 1) / _N_ROUNDS)


def _shares(model: GenerativeModel, z: Tensor) -> list[Tensor]:
    """Returns the code probabilities of all columns, averaged over z. Columns with similar numbers
    of codes form a group, and each group has one tensor. Shape: (D_group, K_group) for a group of
    D_group columns with at most K_group codes."""
    sums = [torch.zeros(group.shape, dtype=z.dtype) for group in model.marginals.code_groups]
    for chunk in z.split(_CHUNK_ROWS):
        alone = model.conditional(chunk).marginal_parameters
        for total, log_beta in zip(sums, alone.log_beta, strict=True):
            total += log_beta.exp().sum(0)
    return [total / len(z) for total in sums]


def _calibrated_codes(walk: AutoregressiveWalk, j: int, counts: Tensor) -> ColumnDistribution:
    """Shifts the logits of column j, in place, so that the shares of its codes in generated rows
    match those in the table. Returns the column's distribution for the generated rows.

    Functional dependencies are applied after the shifts, so they still hold.

    Args:
        counts: Number of table rows with each code of the column. Shape: (K_j,).
    """
    alone = walk.column_alone(j)
    g, at = walk.network.group_of(j)
    if g is None:
        return walk.with_functions(j, alone)
    shift = walk.network.shifts[g][at][: alone.log_beta.shape[-1]]
    n_table = int(counts.sum())
    target = padded_counts(counts, len(shift)) + _PSEUDO_ROWS
    moved = torch.zeros_like(shift)
    for _ in range(_N_ROUNDS):
        share = torch.zeros_like(shift)
        for rows in torch.arange(len(alone.log_beta)).split(_CHUNK_ROWS):
            log_beta = torch.log_softmax(alone.log_beta[rows] + moved, dim=-1)
            some = replace(alone, log_beta=log_beta)
            share += walk.with_functions(j, some, rows).log_beta.exp().sum(0)
        current = share / len(alone.log_beta) * n_table + _PSEUDO_ROWS
        moved += (target / current).log()
    shift += moved
    log_beta = torch.log_softmax(alone.log_beta + moved, dim=-1)
    return walk.with_functions(j, replace(alone, log_beta=log_beta))


def _calibrated_bins(
    walk: AutoregressiveWalk, j: int, column: ColumnDistribution, counts: Tensor
) -> ColumnDistribution:
    """Shifts the logits of column j's bins, in place, so that the shares of the bins in generated
    rows match their targets. Returns the column's distribution for the generated rows.

    The bins are the intervals between the change points of the column. The target of a bin is its
    probability under the standard normal distribution, because numbers are encoded as normal
    scores.

    Args:
        counts: Number of table rows with each code of the column. If few of them have numbers, the
            column is not changed. Shape: (K_j,).
    """
    marginal, n_numbers = column.marginal, int(counts[column.point_code :].sum())
    if not isinstance(marginal, PiecewiseMarginal) or n_numbers < _LEAST_NUMBERS:
        return column
    ends = torch.nn.functional.pad(torch.special.ndtr(marginal.points), (1, 0))
    target = torch.nn.functional.pad(ends, (0, 1), value=1.0).diff() * n_numbers + _PSEUDO_ROWS
    weight = column.log_beta[:, column.point_code].exp().double()
    _, bias = walk.network.steps.weights(j)
    for _ in range(_N_ROUNDS):
        share = torch.zeros_like(target)
        for rows in torch.arange(len(weight)).split(_CHUNK_ROWS):
            share += weight[rows] @ marginal[rows].log_bins.exp().double()
        current = share / weight.sum() * n_numbers + _PSEUDO_ROWS
        moved = (target / current).log().to(bias)
        bias += moved
        marginal = replace(marginal, logits=marginal.logits + moved)
    return replace(column, marginal=marginal)


def _calibrate_numbers(column: ColumnDistribution, counts: Tensor) -> None:
    """Sets the transform of a column of numbers, in place, so that the numbers of generated rows
    have a standard normal distribution, as the table's normal scores do.

    The transform is S(v) = G^-1(Phi(v)), where G is the model's CDF of the numbers, averaged over
    the generated rows.

    Args:
        counts: Number of table rows with each code of the column. If few of them have numbers, the
            transform is not changed. Shape: (K_j,).
    """
    marginal, transform = column.marginal, column.transform
    if marginal is None or transform is None:
        return
    if int(counts[column.point_code :].sum()) < _LEAST_NUMBERS:
        return
    knots = transform.knots
    weight = column.log_beta[:, column.point_code].exp()
    share = torch.zeros_like(knots)
    places = knots.to(weight.dtype)  # float32 is fast, and accurate enough for a mean over rows
    for rows in torch.arange(len(weight)).split(_CHUNK_ROWS):
        share += (weight[rows] @ marginal[rows, None].cdf(places)).double()
    scores = torch.special.ndtri((share / weight.sum()).clamp(1e-9, 1.0 - 1e-9))
    # G is computed at the knots and G^-1(Phi(v)) interpolated; equal scores would divide by zero.
    rising = scores.cummax(0).values + _LEAST_RISE * torch.arange(len(scores))
    values_at_knots, _ = piecewise(knots, rising, knots)
    values_at_knots = values_at_knots.clamp(knots - _LARGEST_SHIFT, knots + _LARGEST_SHIFT)
    steps = values_at_knots.diff().clamp(min=0.2 * float(knots[1] - knots[0]))
    start = values_at_knots[len(values_at_knots) // 2] - steps[: len(values_at_knots) // 2].sum()
    transform.heights.copy_(torch.cat([start[None], start + steps.cumsum(0)]))


def shrink(model: GenerativeModel, rows: TrainingRows, held_out: Tensor, seed: int) -> list[float]:
    """Shrinks the autoregressive network's contribution to each column's logits, in place.

    The contribution is multiplied by a factor, which falls from 1 in steps of a tenth as long as
    each step raises the likelihood of held-out rows significantly.

    Args:
        rows: Rows of the table.
        held_out: Indices of the held-out rows; of all rows if training held out none.

    Returns:
        The factor of each column; 1 for all columns if the model has no autoregressive network or
            there are fewer than 100 held-out rows.
    """
    if not model.is_autoregressive or not _LEAST_HELD_OUT <= len(held_out) < len(rows):
        return [1.0] * len(model.marginals.columns)
    chosen = rows.take(held_out.cpu()[:_MOST_HELD_OUT])
    generator = generator_for(seed, "shrinkage")
    with torch.no_grad():
        eta, log_tau = model.encoder(chosen)
        z = eta + log_tau.exp() * normal(tuple(eta.shape), generator)
        walk = _walk(model, join_context(z, chosen.context))
        factors = [1.0] * len(walk.order)
        for j in walk.order:
            codes, values = chosen.codes[:, j], chosen.values[:, j]
            factors[j] = _factor(walk, j, codes, values)
            _scale_logits(walk.network, j, factors[j])
            walk.step(j, codes, values)
    return factors


def _factor(walk: AutoregressiveWalk, j: int, codes: Tensor, values: Tensor) -> float:
    """Returns the shrinkage factor of column j (see `shrink`), from the codes and values of its
    held-out cells. Shape: (n,) each."""
    if walk.network.group_of(j)[0] is None:
        return 1.0
    before = best = walk.column(j).log_prob(codes, values)
    factor = 1.0
    for step in range(1, _TENTHS + 1):
        lower = (_TENTHS - step) / _TENTHS
        log_probs = _log_prob(walk, j, lower, codes, values)
        gains = (log_probs - best).double()
        error = float(gains.std()) / len(gains) ** 0.5
        if not float(gains.mean()) > _DEVIATIONS * error:
            break
        factor, best = lower, log_probs
    return factor if float((best - before).mean()) > _LEAST_GAIN else 1.0


def _log_prob(
    walk: AutoregressiveWalk, j: int, factor: float, codes: Tensor, values: Tensor
) -> Tensor:
    """Returns the log probability of the cells of column j if its logits are shrunk by `factor`."""
    kept = [part.clone() for part in _network_terms(walk.network, j)]
    _scale_logits(walk.network, j, factor)
    log_probs = walk.column(j).log_prob(codes, values)
    for part, value in zip(_network_terms(walk.network, j), kept, strict=True):
        part.copy_(value)
    return log_probs


def _scale_logits(network: AutoregressiveNetwork, j: int, factor: float) -> None:
    if factor != 1.0:
        for part in _network_terms(network, j):
            part.mul_(factor)


def _network_terms(network: AutoregressiveNetwork, j: int) -> tuple[Tensor, Tensor]:
    """Returns the weights and the bias of the network's contribution to the logits of column j."""
    g, at = network.group_of(j)
    assert g is not None, "the column has several codes"
    return network.to_logits[g][at], network.shifts[g][at]


_PRIOR_ROWS = 20_000
"""Maximum number of training rows to whose latent vectors the prior is fitted."""
_COMPONENTS = (1, 8, 24, 48)
_LEAST_DIVERGENCE = 0.01
"""Minimum mean KL divergence of the posterior of a dimension of z from N(0, 1), in nats, for the
mixture to model the dimension."""


def mixture_prior(
    model: GenerativeModel,
    rows: TrainingRows,
    held_out: Tensor,
    seed: int,
    report: Report = report_to_nobody,
) -> GaussianMixturePrior:
    """Returns a Gaussian mixture prior fitted to posterior samples of the training rows.

    The number of components is the one with which the latent vectors of held-out rows have the
    highest density. Dimensions of z that the model does not use have a standard normal prior.

    Args:
        rows: Rows of the table.
        held_out: Indices of the held-out rows; of all rows if training held out none.
        report: Function that is called with the finished share of the work.
    """
    generator = generator_for(seed, "prior")
    is_held_out = torch.zeros(len(rows), dtype=torch.bool)
    is_held_out[held_out] = len(held_out) < len(rows)
    training = (~is_held_out).nonzero()[:, 0]
    chosen = training[torch.randperm(len(training), generator=generator)[:_PRIOR_ROWS]]
    with torch.no_grad():
        eta, log_tau = model.encoder(rows.take(torch.cat([chosen, held_out])))
    z = eta + log_tau.exp() * normal(tuple(eta.shape), generator)
    is_used = gaussian_kl(eta[..., None], log_tau[..., None]).mean(0) > _LEAST_DIVERGENCE
    draws = z[:, is_used]
    z, z_held_out = draws[: len(chosen)], draws[len(chosen) :]
    fitted = fit_best_mixture(z, z_held_out, _COMPONENTS, seed, report)
    return fitted.widened(is_used)
