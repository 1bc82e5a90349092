"""Lower bounds on log p(x), in nats per row.

A bound contains the likelihood p(x|z) of a row at samples of z. A level occupies an interval of
probabilities, but a copula has a density of points. The exact likelihood integrates the density
over the interval. The cheaper way is *jitter* (continuous extension): a uniform random number
selects one point of the interval. The paper trains with one jitter per cell. Scores of rows use the
exact likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import Conditional, GenerativeModel, Likelihoods, join_context
from gcvae.model.networks import Dropout
from gcvae.model.proposals import draw_latents
from gcvae.numerics.generators import normal, uniform
from gcvae.numerics.row_noise import RowNoise


@dataclass(frozen=True)
class Draw:
    """One sample of z for each of n rows, with the terms of its evidence lower bound.

    Attributes:
        z: Samples of q(z|x). Shape: (n, K).
        log_prob: log p(x|z). Shape: (n,).
        kl: KL[q(z|x) || p(z)], or an estimate of it. Shape: (n,).
        conditional: Distribution p(x|z) at the samples.
        head_log_prob: log p(x|z) of the first rows under the copula head of an autoregressive
            decoder (the decoder without its autoregressive network); None if not requested. Shape:
            (number of these rows,).
    """

    z: Tensor
    log_prob: Tensor
    kl: Tensor
    conditional: Conditional
    head_log_prob: Tensor | None = None

    @property
    def elbo(self) -> Tensor:
        """Evidence lower bound log p(x|z) - KL[q(z|x) || p(z)] of each row. Shape: (n,)."""
        return self.log_prob - self.kl


def draw_elbo(
    model: GenerativeModel,
    rows: EncodedTable,
    generator: torch.Generator,
    *,
    exact: bool = False,
    dropout: Dropout | None = None,
    n_head_rows: int = 0,
) -> Draw:
    """Returns a one-sample estimate of the evidence lower bound of each of n rows.

    z = eta(x) + tau(x) * eps is a reparametrised sample of q(z|x), with eta and tau the outputs of
    the encoder and eps standard normal noise.

    Args:
        rows: Encoded rows. Shape: (n, D).
        generator: Generator of the random numbers for z and for jitters.
        exact: Whether to compute the exact likelihood instead of sampling one jitter per cell.
        dropout: Dropout of a training step; None outside of training.
        n_head_rows: Number of rows, from the first, for which the likelihood under the copula head
            of an autoregressive decoder is also computed.

    Source: Eq. (elbo_gcvae) and Algorithm 1.
    """
    eta, log_tau = model.encoder(rows)
    z = eta + log_tau.exp() * normal(tuple(eta.shape), generator).to(eta.dtype)
    conditional = model.conditional(join_context(z, rows.context), dropout)
    jitter = None if exact else uniform(tuple(rows.codes.shape), generator).to(eta.dtype)
    log_prob = conditional.log_prob(rows, jitter)
    head_log_prob = None
    if n_head_rows:
        first = rows.take(torch.arange(n_head_rows, device=rows.codes.device))
        first_jitter = None if jitter is None else jitter[:n_head_rows]
        head_log_prob = conditional.log_head(first, first_jitter)
    kl = model.prior.divergence(eta, log_tau, z)
    return Draw(z, log_prob, kl, conditional, head_log_prob)


def elbo(
    model: GenerativeModel,
    rows: EncodedTable,
    generator: torch.Generator,
    *,
    n_draws: int = 1,
    exact: bool = False,
) -> Tensor:
    """Returns the evidence lower bound of each of n rows, averaged over `n_draws` samples of z;
    `exact` selects the exact likelihood in place of jitters. Shape: (n,)."""
    draws = [draw_elbo(model, rows, generator, exact=exact).elbo for _ in range(n_draws)]
    return torch.stack(draws).mean(0)


@dataclass(frozen=True)
class BoundEstimate:
    """Lower bounds on log p(x) of n rows, as logarithms of mean importance weights, in nats.

    Attributes:
        log_means: Entry j is the bound for the first j + 1 columns in `order`. Shape: (n, D).
        variance: Variance of the mean weight, divided by the squared mean weight; NaN for one
            sample. Shape: (n,).
        order: Column indices in the decoder's order.
    """

    log_means: Tensor
    variance: Tensor
    order: tuple[int, ...]

    @property
    def bound(self) -> Tensor:
        """Lower bound on log p(x) of each row. Shape: (n,)."""
        return self.log_means[:, -1]

    @property
    def standard_error(self) -> Tensor:
        """Root mean squared error of the bounds due to sampling, by the delta method. Shape: (n,).

        A mean with relative standard deviation s has a logarithm with standard deviation s and bias
        -s^2 / 2.
        """
        return torch.hypot(self.variance.sqrt(), 0.5 * self.variance)

    @property
    def terms(self) -> Tensor:
        """Contribution of each column to the bound, in table order. Shape: (n, D).

        Contributions of a row add up to its bound. A cell of probability zero contributes -inf; the
        columns after it in the decoder's order contribute 0.
        """
        before = torch.cat([torch.zeros_like(self.log_means[:, :1]), self.log_means[:, :-1]], dim=1)
        steps = torch.where(torch.isneginf(before), 0.0, self.log_means - before)
        return torch.zeros_like(steps).index_copy(1, torch.tensor(self.order), steps)

    @classmethod
    def joined(cls, parts: Sequence[BoundEstimate]) -> Self:
        """Concatenates the estimates of several sets of rows, in order."""
        log_means, variance = (
            torch.cat(of_parts)
            for of_parts in zip(*((p.log_means, p.variance) for p in parts), strict=True)
        )
        return cls(log_means, variance, parts[0].order)

    def take(self, rows: Tensor) -> Self:
        """Returns the estimates of the rows with these indices."""
        return type(self)(self.log_means[rows], self.variance[rows], self.order)

    def with_rows(self, rows: Tensor, found: BoundEstimate) -> Self:
        """Returns a copy with other estimates of some rows.

        Args:
            rows: Indices of these rows. Shape: (m,).
            found: Their new estimates, in the order of `rows`.
        """
        log_means = self.log_means.index_copy(0, rows, found.log_means)
        variance = self.variance.index_copy(0, rows, found.variance)
        return type(self)(log_means, variance, self.order)

    def mixed(self, other: BoundEstimate, share: Tensor) -> Self:
        """Returns an estimate that averages the mean importance weights of two estimates.

        Args:
            other: Estimate for the same rows, from independent samples.
            share: Weight of `other`, from 0 to 1; it must not depend on either estimate's samples.
                Shape: (n,).
        """
        log_own, log_other = torch.log1p(-share), share.log()
        mixed = torch.logaddexp(
            self.log_means + log_own[:, None], other.log_means + log_other[:, None]
        )
        parts = ((self, log_own), (other, log_other))
        variance = sum(
            torch.where(
                log_share.isneginf() | part.bound.isneginf(),
                0.0,
                (2.0 * (log_share + part.bound - mixed[:, -1])).exp() * part.variance,
            )
            for part, log_share in parts
        )
        assert isinstance(variance, Tensor), "there are two parts"
        return type(self)(mixed, variance, self.order)


def iwae_bound(
    model: GenerativeModel,
    rows: EncodedTable,
    noise: RowNoise,
    *,
    n_draws: int,
) -> BoundEstimate:
    """Returns the importance-weighted bound log mean_s [p(x|z_s) p(z_s) / q(z_s)] of each of n
    rows.

    Its expectation is at most log p(x). The samples z_s and their density q are those of
    `draw_latents`; with one sample, z ~ q(z|x), the expectation is the evidence lower bound. The
    bound is also computed for the first j columns in the decoder's `order`, for each j; the
    difference between two successive bounds estimates log p(x_j|x_<j).

    Args:
        rows: Encoded rows. Shape: (n, D).
        noise: Source of each row's random numbers.
        n_draws: Number of samples of z for each row.

    Source: importance weighting of Eq. (elbo_gcvae); Burda, Grosse & Salakhutdinov 2016.
    """
    return iwae_bounds(model, rows, [noise], n_draws=n_draws)[0]


def iwae_bounds(
    model: GenerativeModel,
    rows: EncodedTable,
    replicates: Sequence[RowNoise],
    *,
    n_draws: int,
    likelihoods: Likelihoods | None = None,
) -> list[BoundEstimate]:
    """Returns `iwae_bound` for each of several independent sources of random numbers, `replicates`.

    Rows with and without unobserved cells are computed in separate batches, because an
    autoregressive decoder samples unobserved cells at each z. The bound of a row under an
    autoregressive decoder does not depend on other rows, to the last bit if the networks' widths
    are multiples of 16. `likelihoods` is the function that the decoder's `row_likelihoods` returns,
    if the caller has it already.
    """
    likelihoods = likelihoods or model.decoder.row_likelihoods()
    is_whole = rows.observed.all(1) & ~rows.are_intervals.any(1)
    parts = [part.nonzero()[:, 0] for part in (is_whole, ~is_whole)]
    n_rows = max(1, model.decoder.evaluations_at_once // (n_draws * len(replicates)))
    batches = [batch for part in parts if len(part) for batch in part.split(n_rows)]
    found = []
    for batch in batches:
        noises = [noise.take(batch) for noise in replicates]
        some = rows.take(batch)
        found.append(_bounds_of_batch(model, some, noises, n_draws, likelihoods))
    place = torch.cat(batches).argsort()
    return [BoundEstimate.joined(of_all).take(place) for of_all in zip(*found, strict=True)]


def _bounds_of_batch(
    model: GenerativeModel,
    rows: EncodedTable,
    replicates: Sequence[RowNoise],
    n_draws: int,
    likelihoods: Likelihoods,
) -> list[BoundEstimate]:
    """Returns `iwae_bounds` of a batch in which either all rows or no rows are complete."""
    latents = draw_latents(model, rows, n_draws, replicates)
    at_once = max(1, model.decoder.evaluations_at_once // len(rows))
    prefixes = []
    for i, z in enumerate(latents.z.split(at_once)):
        noise = replicates[0].of("cells").uniform(len(z), rows.codes.shape[1], i * at_once)
        prefixes.append(likelihoods(rows, z, noise))
    log_weights = torch.cat(prefixes)
    log_weights += latents.log_ratio[..., None]
    # The draws of a row are contiguous, so that they are summed in one order in every batch.
    log_weights = log_weights[: n_draws * len(replicates)].permute(1, 2, 0).contiguous()
    order = tuple(model.order or range(log_weights.shape[1]))
    found = []
    for of_replicate in log_weights.split(n_draws, -1):
        log_means = of_replicate.logsumexp(-1) - math.log(n_draws)
        variance = variance_of_mean(of_replicate[:, -1].T, log_means[:, -1], latents.n_prior)
        found.append(BoundEstimate(log_means, variance, order))
    return found


def variance_of_mean(log_weights: Tensor, log_mean: Tensor, n_prior: int = 0) -> Tensor:
    """Returns the variance of the mean of S importance weights, divided by the squared mean.

    The last `n_prior` samples are from the prior, the others from the posterior. Both sets have a
    fixed size, so only the variance within each set counts. One sample does not determine a
    variance, so a single prior sample contributes its square, which is at least the variance on
    average. All samples are treated as independent; the mean of quasi-random ones varies less.

    Returns:
        Relative variances; NaN if S = 1, 0 for a row whose weights are all zero.

    Shape: log_weights (S, n), log_mean (n,) -> (n,).
    """
    n_draws = log_weights.shape[0]
    impossible = torch.isneginf(log_mean)
    relative = torch.where(impossible, 1.0, (log_weights - log_mean).exp())
    if n_draws == 1:
        return torch.full_like(log_mean, torch.nan)
    variance = (n_draws - n_prior) * relative[: n_draws - n_prior].var(0)
    if n_prior:
        last = relative[n_draws - n_prior :]
        variance = variance + (n_prior * last.var(0) if n_prior > 1 else last[0].square())
    return torch.where(impossible, 0.0, variance / n_draws**2)
