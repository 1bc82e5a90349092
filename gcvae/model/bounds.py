"""Lower bounds on log p(x), and regularisers, in nats per row.

A jitter is a uniform sample that places a level within its interval of probabilities (continuous
extension), so that the copula's density applies; the exact likelihood integrates over the interval.
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
    """One sample of the latent vector z for each of n rows, with the terms of its evidence lower
    bound.

    Attributes:
        z: Samples of q(z|x), in K dimensions. Shape: (n, K).
        log_prob: log p(x|z). Shape: (n,).
        kl: KL[q(z|x) || p(z)], or an estimate of it. Shape: (n,).
        conditional: Distribution p(x|z) at the samples.
    """

    z: Tensor
    log_prob: Tensor
    kl: Tensor
    conditional: Conditional
    head_log_prob: Tensor | None = None
    """log p(x|z) of the first rows under the copula head of an autoregressive decoder; None if not
    requested."""

    @property
    def elbo(self) -> Tensor:
        """Evidence lower bound log p(x|z) - KL[q(z|x) || p(z)] of each of n rows. Shape: (n,)."""
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

    z = eta(x) + tau(x) * eps is a reparametrised sample of q(z|x). For a copula decoder,
    log p(x|z) = log c_Psi + sum log beta + sum log N(x; mu, sigma^2): copula density, level
    probabilities and densities of numbers.

    Args:
        rows: Encoded rows, with D columns. Shape: (n, D).
        generator: Source of z and of jitters, uniform samples that place each level within its
            interval of probabilities.
        exact: Whether to compute the exact likelihood instead of sampling one jitter per cell.
        dropout: Dropout of a training step; None outside of training.
        n_head_rows: Number of first rows whose likelihood under the copula head of an
            autoregressive decoder is also computed.

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
    """Returns the evidence lower bound of each of n rows, averaged over `n_draws` samples of z.

    With `exact`, levels are integrated over their intervals of probabilities; otherwise a uniform
    sample (jitter) places each level in its interval. Shape: (n,).
    """
    draws = [draw_elbo(model, rows, generator, exact=exact).elbo for _ in range(n_draws)]
    return torch.stack(draws).mean(0)


@dataclass(frozen=True)
class BoundEstimate:
    """Lower bounds on log p(x) of n rows, as logarithms of mean importance weights, in nats.

    Attributes:
        log_means: Entry j is the bound on the log density of the first j + 1 columns in `order`;
            the last entry is the bound on log p(x). Shape: (n, D).
        variance: Variance of the mean weight, divided by its square; NaN if the mean is of a single
            sample. Shape: (n,).
        order: Column indices in the decoder's order.
    """

    log_means: Tensor
    variance: Tensor
    order: tuple[int, ...]

    @property
    def bound(self) -> Tensor:
        """Lower bound on log p(x) of each row, in nats. Shape: (n,)."""
        return self.log_means[:, -1]

    @property
    def standard_error(self) -> Tensor:
        """Root mean squared error of the bounds due to sampling, by the delta method. Shape: (n,).

        A mean with relative standard deviation s has a logarithm with standard deviation s and bias
        -s^2 / 2, so the error is the root of s^2 + (s^2 / 2)^2.
        """
        return torch.hypot(self.variance.sqrt(), 0.5 * self.variance)

    @property
    def terms(self) -> Tensor:
        """Contribution of each column to the bound: the difference of consecutive `log_means`.

        Contributions of a row add up to its bound; those after an impossible cell (-inf) are 0.
        Shape: (n, D), n rows by D columns in table order.
        """
        before = torch.cat([torch.zeros_like(self.log_means[:, :1]), self.log_means[:, :-1]], dim=1)
        steps = torch.where(torch.isneginf(before), 0.0, self.log_means - before)
        return torch.zeros_like(steps).index_copy(1, torch.tensor(self.order), steps)

    @classmethod
    def joined(cls, parts: Sequence[BoundEstimate]) -> Self:
        """Concatenates the estimates of several sets of rows."""
        log_means, variance = (
            torch.cat(of_parts)
            for of_parts in zip(*((p.log_means, p.variance) for p in parts), strict=True)
        )
        return cls(log_means, variance, parts[0].order)

    def take(self, rows: Tensor) -> Self:
        """Returns the estimates of the rows with these indices."""
        return type(self)(self.log_means[rows], self.variance[rows], self.order)

    def with_rows(self, rows: Tensor, found: BoundEstimate) -> Self:
        """Returns a copy in which `found` replaces the estimates of the rows with these indices."""
        log_means = self.log_means.index_copy(0, rows, found.log_means)
        variance = self.variance.index_copy(0, rows, found.variance)
        return type(self)(log_means, variance, self.order)

    def mixed(self, other: BoundEstimate, share: Tensor) -> Self:
        """Returns the weighted average of the mean importance weights of two estimates.

        Args:
            other: Independent estimate for the same rows.
            share: Weight of `other`, from 0 to 1; it must not depend on either estimate's samples.
                Shape: (n,), for n rows.
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
    """Returns the importance-weighted bound log mean_s [p(x|z_s) p(z_s) / q(z_s)] of each of n
    rows.

    Its expectation is at most log p(x). The samples are those of `draw_latents`; with one sample,
    z ~ q(z|x), the expectation is the evidence lower bound. The same is computed for the first j
    columns in the decoder's `order`, for each j; differences estimate log p(x_j|x_<j).

    Args:
        rows: Encoded rows, with D columns. Shape: (n, D).
        noise: Source of each row's random numbers.
        n_draws: Number of samples of z for each row.
        n_jitters: Number of jitters (uniform samples that place each level within its interval of
            probabilities) for each z, averaged inside the logarithm; 0 for the exact likelihood.
            Not used for an autoregressive decoder, which needs no jitter.

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
    """Returns `iwae_bound` for several independent sets of random numbers, computed in one pass.

    Rows with and without unobserved cells are computed in separate batches, because an
    autoregressive decoder samples unobserved cells at each z. The bound of a row under an
    autoregressive decoder does not depend on other rows, to the last bit if the networks' widths
    are multiples of 16.

    Args:
        rows: The n encoded rows, with D columns. Shape: (n, D).
        replicates: Source of each row's random numbers, one for each bound.
        n_draws: Number of samples of z for each row and set.
        n_jitters: Number of jitters for each z, as for `iwae_bound`; 0 for the exact likelihood.
        likelihoods: `row_likelihoods` of the decoder; None to create it.
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
    """Computes `iwae_bounds` for a batch of rows, all complete or all with unobserved cells."""

    model: GenerativeModel
    likelihoods: Likelihoods
    n_draws: int
    n_jitters: int

    def __call__(self, rows: EncodedTable, replicates: Sequence[RowNoise]) -> list[BoundEstimate]:
        """Returns the bounds of the rows for each set of random numbers."""
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
        """Returns the logarithm of the mean likelihood over jitters."""
        conditional, n_columns = self.model.conditional(z), rows.codes.shape[-1]
        jitters = noise.of("jitters").uniform(len(z), self.n_jitters * n_columns, first).to(z)
        estimates = [
            conditional.log_prefixes(rows, None, jitter) for jitter in jitters.split(n_columns, -1)
        ]
        return torch.stack(estimates).logsumexp(0) - math.log(self.n_jitters)


def variance_of_mean(log_weights: Tensor, log_mean: Tensor, n_prior: int = 0) -> Tensor:
    """Returns the variance of the mean of S importance weights, divided by the squared mean, of
    each of n rows.

    The last `n_prior` samples, drawn from the prior, are a separate stratum, so the difference
    between the strata's means is not part of the variance. A single prior sample contributes its
    square, an upper bound in expectation. The smaller error of quasi-random samples is ignored.

    Args:
        log_weights: Logarithms of the weights. Shape: (S, n).
        log_mean: Logarithm of the mean weight of each row. Shape: (n,).
        n_prior: Number of samples drawn from the prior.

    Returns:
        Relative variances; NaN if S = 1, 0 for a row whose weights are all zero. Shape: (n,).
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
    """Returns the penalty sum_k |a_k|_p^2 on the copula's loadings of each of n rows, p = 1 or 2.

    Shape: loadings (n, D, r), with a_k the D loadings on factor k -> (n,).
    Source: Eq. (elbo_vae_roc_reg), locality regularisation.
    """
    norms: Tensor = torch.linalg.vector_norm(loadings, ord=p, dim=-2)
    return norms.square().sum(-1)


def rank_penalty(z: Tensor, generator: torch.Generator) -> Tensor:
    """Returns a penalty that pulls the latent vectors of a minibatch towards N(0, I).

    In each of K dimensions, n uniform samples u and the n values of Phi(z) are sorted. The penalty
    of rank m is 1/2 sum_k (u_(m)k - Phi(z)_(m)k)^2.

    Shape: (n, K) -> (n,), entry m for rank m.
    Source: Eq. (elbo_vae_roc_reg), rank regularisation.
    """
    u = uniform(tuple(z.shape), generator).to(z.dtype).sort(dim=0).values
    ranks = normal_cdf(z).sort(dim=0).values
    return 0.5 * (u - ranks).square().sum(-1)
