"""Lower bounds on log p(x), and regularisers, in nats per row.

All bounds take the model, encoded rows, and a generator for z and the jitters.
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
from gcvae.numerics.normal import normal_cdf
from gcvae.numerics.row_noise import RowNoise


@dataclass(frozen=True)
class Draw:
    """One sample of z for each row, with the terms of the bound and of its regularisers.

    Shape: z (n, K); log_prob, kl (n,).
    """

    z: Tensor
    log_prob: Tensor
    kl: Tensor
    conditional: Conditional
    head_log_prob: Tensor | None = None
    """log p(x|z) under an autoregressive decoder's copula head, for the first rows."""

    @property
    def elbo(self) -> Tensor:
        """log p(x|z) - KL[q(z|x) || p(z)]. Shape: (n,)."""
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
    """Returns a one-sample estimate of the evidence lower bound, z = eta + tau * eps.

    F(x) = log c_Psi + sum log beta + sum log N(x; mu, sigma^2) - KL[q(z|x) || N(0, I)], with one
    jitter per row; with `exact`, the mixed likelihood without jitter. For an autoregressive
    decoder, the first `n_head_rows` rows also get the likelihood under its copula head.

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
    """Returns the evidence lower bound of each row, averaged over `n_draws` samples of z. Shape:
    (n,)."""
    draws = [draw_elbo(model, rows, generator, exact=exact).elbo for _ in range(n_draws)]
    return torch.stack(draws).mean(0)


@dataclass(frozen=True)
class BoundEstimate:
    """Lower bounds on log p(x) of rows, as logarithms of mean importance weights, in nats.

    Shape: log_means (n, D), variance (n,).

    Attributes:
        log_means: L_j of the columns in the decoder's `order`; the last is the bound.
        variance: Variance of the mean weight, relative to the squared mean. NaN if a single sample
            does not determine it.
        order: Indices of the columns, in the decoder's order.
    """

    log_means: Tensor
    variance: Tensor
    order: tuple[int, ...]

    @property
    def bound(self) -> Tensor:
        """The bounds. Shape: (n,)."""
        return self.log_means[:, -1]

    @property
    def standard_error(self) -> Tensor:
        """Standard error of the bounds, by the delta method. Shape: (n,).

        A standard deviation s of the mean gives s of its logarithm and a bias of -s^2 / 2: the root
        of s^2 + (s^2 / 2)^2.
        """
        return torch.hypot(self.variance.sqrt(), 0.5 * self.variance)

    @property
    def terms(self) -> Tensor:
        """Contribution of each column to the bound, by the chain rule; they add up to it. Shape:
        (n, D).

        L_j - L_{j-1}; 0 after an impossible cell.
        """
        before = torch.cat([torch.zeros_like(self.log_means[:, :1]), self.log_means[:, :-1]], dim=1)
        steps = torch.where(torch.isneginf(before), 0.0, self.log_means - before)
        return torch.zeros_like(steps).index_copy(1, torch.tensor(self.order), steps)

    @classmethod
    def joined(cls, parts: Sequence[BoundEstimate]) -> Self:
        """Concatenates the rows of all parts."""
        log_means, variance = (
            torch.cat(of_parts)
            for of_parts in zip(*((p.log_means, p.variance) for p in parts), strict=True)
        )
        return cls(log_means, variance, parts[0].order)

    def take(self, rows: Tensor) -> Self:
        """Returns the rows with these indices."""
        return type(self)(self.log_means[rows], self.variance[rows], self.order)

    def with_rows(self, rows: Tensor, found: BoundEstimate) -> Self:
        """Returns a copy with other estimates in these rows."""
        log_means = self.log_means.index_copy(0, rows, found.log_means)
        variance = self.variance.index_copy(0, rows, found.variance)
        return type(self)(log_means, variance, self.order)

    def mixed(self, other: BoundEstimate, share: Tensor) -> Self:
        """Returns the weighted average of the mean weights of two independent estimates.

        Args:
            other: Estimate of the same rows.
            share: Weight of the other, from 0 to 1, independent of both. Shape: (n,).
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
    n_jitters: int = 0,
) -> BoundEstimate:
    """Returns log mean_s [p(x|z_s) p(z_s) / q(z_s)], whose expectation is at most log p(x).

    The samples are those of `draw_latents`; with one sample, z ~ q(z|x), the expectation is the
    evidence lower bound. `n_jitters` 0 uses the exact mixed likelihood; otherwise jitters are
    averaged for each z, inside the logarithm. An autoregressive decoder needs no jitter.

    L_j = log mean_s [p(x_1 .. x_j|z_s) p(z_s) / q(z_s)] for the columns in the decoder's `order`,
    L_0 = 0: differences estimate log p(x_j|x_<j).

    Source: importance weighting of Eq. (elbo_gcvae); Burda, Grosse & Salakhutdinov 2016.
    """
    return iwae_bounds(model, rows, [noise], n_draws=n_draws, n_jitters=n_jitters)[0]


def iwae_bounds(
    model: GenerativeModel,
    rows: EncodedTable,
    replicates: Sequence[RowNoise],
    *,
    n_draws: int,
    n_jitters: int = 0,
    likelihoods: Likelihoods | None = None,
) -> list[BoundEstimate]:
    """Computes `iwae_bound` of the same rows for several independent replicates, in one pass.

    Rows with and without unobserved cells are computed in separate batches, because an
    autoregressive decoder samples unobserved cells at each z. The bound of a row under an
    autoregressive decoder does not depend on other rows, to the last bit if the networks' widths
    are multiples of 16.

    Args:
        model: Model.
        rows: Encoded rows.
        replicates: Noise of each replicate.
        n_draws: Samples of z for each row and replicate.
        n_jitters: Jitters for each z; 0 for the exact likelihood.
        likelihoods: `row_likelihoods` of the decoder, to avoid creating it again.
    """
    if model.is_autoregressive:
        n_jitters = 0
    likelihoods = likelihoods or model.decoder.row_likelihoods()
    evaluate = _Evaluation(model, likelihoods, n_draws, n_jitters)
    is_whole = rows.observed.all(1) & ~rows.are_intervals.any(1)
    parts = [part.nonzero()[:, 0] for part in (is_whole, ~is_whole)]
    n_rows = max(1, model.decoder.evaluations_at_once // (n_draws * len(replicates)))
    batches = [batch for part in parts if len(part) for batch in part.split(n_rows)]
    found = [
        evaluate(rows.take(batch), [noise.take(batch) for noise in replicates]) for batch in batches
    ]
    place = torch.cat(batches).argsort()
    return [BoundEstimate.joined(of_all).take(place) for of_all in zip(*found, strict=True)]


@dataclass(frozen=True)
class _Evaluation:
    """Evaluation of `iwae_bounds` for a batch of rows, all complete or all with missing cells."""

    model: GenerativeModel
    likelihoods: Likelihoods
    n_draws: int
    n_jitters: int

    def __call__(self, rows: EncodedTable, replicates: Sequence[RowNoise]) -> list[BoundEstimate]:
        """Returns the rows' bounds for each replicate."""
        latents = draw_latents(self.model, rows, self.n_draws, replicates)
        log_weights = self._log_prefixes(rows, latents.z, replicates[0])
        log_weights += latents.log_ratio[..., None]
        # The draws of a row are contiguous, so that they are summed in one order in every batch.
        log_weights = log_weights[: self.n_draws * len(replicates)].permute(1, 2, 0).contiguous()
        order = tuple(self.model.order or range(log_weights.shape[1]))
        found = []
        for of_strand in log_weights.split(self.n_draws, -1):
            log_means = of_strand.logsumexp(-1) - math.log(self.n_draws)
            variance = variance_of_mean(of_strand[:, -1].T, log_means[:, -1], latents.n_prior)
            found.append(BoundEstimate(log_means, variance, order))
        return found

    def _log_prefixes(self, rows: EncodedTable, z: Tensor, noise: RowNoise) -> Tensor:
        """Returns `Conditional.log_prefixes`, in chunks of samples. (S, n, K) -> (S, n, D)."""
        at_once = max(1, self.model.decoder.evaluations_at_once // len(rows))
        find = self._jittered if self.n_jitters else self._exact
        return torch.cat(
            [find(rows, some, noise, i * at_once) for i, some in enumerate(z.split(at_once))]
        )

    def _exact(self, rows: EncodedTable, z: Tensor, noise: RowNoise, first: int) -> Tensor:
        n_uniforms = self.model.decoder.n_uniforms
        return self.likelihoods(rows, z, noise.of("cells").uniform(len(z), n_uniforms, first))

    def _jittered(self, rows: EncodedTable, z: Tensor, noise: RowNoise, first: int) -> Tensor:
        """Returns the log of the mean over jitters."""
        conditional, n_columns = self.model.conditional(z), rows.codes.shape[-1]
        jitters = noise.of("jitters").uniform(len(z), self.n_jitters * n_columns, first).to(z)
        estimates = [
            conditional.log_prefixes(rows, None, jitter) for jitter in jitters.split(n_columns, -1)
        ]
        return torch.stack(estimates).logsumexp(0) - math.log(self.n_jitters)


def variance_of_mean(log_weights: Tensor, log_mean: Tensor, n_prior: int = 0) -> Tensor:
    """Returns the variance of the mean of S weights, relative to the squared mean. NaN for one
    sample.

    The last `n_prior` samples are a separate stratum, so the difference between strata means does
    not count. A single prior sample contributes its square, an upper bound in expectation. The gain
    from quasi-random samples is not counted. A row whose weights are all zero has variance 0.

    Shape: (S, n), (n,) -> (n,).
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


def locality_penalty(loadings: Tensor, p: int) -> Tensor:
    """Returns |a|_p^2, with p = 1 or 2, summed over the copula's rank.

    Shape: (n, D, r) -> (n,).
    Source: Eq. (elbo_vae_roc_reg), locality regularisation.
    """
    norms: Tensor = torch.linalg.vector_norm(loadings, ord=p, dim=-2)
    return norms.square().sum(-1)


def rank_penalty(z: Tensor, generator: torch.Generator) -> Tensor:
    """Returns 1/2 sum_k (u_(m) - Phi(z_k)_(m))^2, with uniforms and Phi(z) sorted in each
    dimension.

    It pulls the aggregated posterior of the minibatch towards N(0, I).

    Shape: (n, K) -> (n,).
    Source: Eq. (elbo_vae_roc_reg), rank regularisation.
    """
    u = uniform(tuple(z.shape), generator).to(z.dtype).sort(dim=0).values
    ranks = normal_cdf(z).sort(dim=0).values
    return 0.5 * (u - ranks).square().sum(-1)
