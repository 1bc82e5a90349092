"""Lower bounds on log p(x) and the regularisers: pure functions, in nats per row.

All bounds take the model and encoded rows, and a generator for the draws of z and of the jitters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import Conditional, GenerativeModel
from gcvae.model.networks import Dropout
from gcvae.model.proposals import draw_latents
from gcvae.numerics.generators import normal, uniform
from gcvae.numerics.normal import normal_cdf

_EVALUATIONS_AT_ONCE = 640
"""Rows times draws that are evaluated together: their hidden units stay in the cache."""


@dataclass(frozen=True)
class Draw:
    """One draw of z for each row, with what the bound and its regularisers need of it.

    Shape: z (n, K); log_prob, kl (n,).
    """

    z: Tensor
    log_prob: Tensor
    kl: Tensor
    conditional: Conditional
    head_log_prob: Tensor | None = None
    """log p(x|z) of an autoregressive decoder's copula head, for the first rows."""

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
    """One-sample estimate of the evidence lower bound, z = eta + tau * eps.

    F(x) = log c_Psi + sum log beta + sum log N(x; mu, sigma^2) - KL[q(z|x) || N(0, I)], with one
    jitter for each row, or, if `exact`, with the mixed likelihood that needs none. Of an
    autoregressive decoder the first `n_head_rows` rows also have the likelihood of its copula head.

    Source: Eq. (elbo_gcvae) and Algorithm 1.
    """
    eta, log_tau = model.encoder(rows)
    z = eta + log_tau.exp() * normal(tuple(eta.shape), generator).to(eta.dtype)
    conditional = model.conditional(z, dropout)
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
    """The evidence lower bound of each row, averaged over `n_draws` draws of z. Shape: (n,)."""
    draws = [draw_elbo(model, rows, generator, exact=exact).elbo for _ in range(n_draws)]
    return torch.stack(draws).mean(0)


@dataclass(frozen=True)
class BoundEstimate:
    """A bound and the standard error of its estimate. Shape: both (n,), nats per row.

    Attributes:
        terms: What each column adds to the bound, by the chain rule: they sum to it. (n, D).
    """

    bound: Tensor
    standard_error: Tensor
    terms: Tensor


def iwae_bound(
    model: GenerativeModel,
    rows: EncodedTable,
    generator: torch.Generator,
    *,
    n_draws: int,
    n_jitters: int = 0,
) -> BoundEstimate:
    """log mean_s [p(x|z_s) p(z_s) / q(z_s)]: at most log p(x) in expectation.

    The draws are those of `draw_latents`; with one draw, z ~ q(z|x), its expectation is the
    evidence lower bound. `n_jitters` 0 uses the exact mixed likelihood; otherwise the jitters are
    averaged inside each z, within the logarithm.

    With L_j = log mean_s [p(x_1 .. x_j|z_s) p(z_s) / q(z_s)] of the same draws, the columns in the
    decoder's `order`, and L_0 = 0, the terms are L_j - L_{j-1}, estimates of log p(x_j|x_<j).

    Source: importance weighting of Eq. (elbo_gcvae); Burda, Grosse & Salakhutdinov 2016.
    """
    latents = draw_latents(model, rows, n_draws, generator)
    log_prefixes = _log_prefixes(model, rows, latents.z, generator, n_jitters)
    log_weights = log_prefixes + latents.log_ratio[..., None]
    bounds = log_weights.logsumexp(0) - math.log(n_draws)
    order = list(model.conditional(latents.z[:1]).order)
    terms = torch.zeros_like(bounds).index_copy(1, torch.tensor(order), _steps(bounds))
    bound, standard_error = weights_to_bound(log_weights[..., -1])
    return BoundEstimate(bound, standard_error, terms)


def _log_prefixes(
    model: GenerativeModel,
    rows: EncodedTable,
    z: Tensor,
    generator: torch.Generator,
    n_jitters: int,
) -> Tensor:
    """`Conditional.log_prefixes`, exact or averaged over jitters. Shape: (S, n, K) -> (S, n, D).

    Rows without blanks are evaluated by themselves: an autoregressive decoder has all their
    columns at once, and the others' one after the other.
    """
    is_whole = rows.observed.all(1) & ~rows.are_intervals.any(1)
    parts = [part.nonzero()[:, 0] for part in (is_whole, ~is_whole) if bool(part.any())]
    found = []
    for index in parts:
        draws = z[:, index].split(max(1, _EVALUATIONS_AT_ONCE // len(index)))
        part = rows.take(index)
        found.append(
            torch.cat([_log_prefixes_of(model, part, d, generator, n_jitters) for d in draws])
        )
    return torch.cat(found, 1)[:, torch.cat(parts).argsort()]


def _log_prefixes_of(
    model: GenerativeModel,
    rows: EncodedTable,
    z: Tensor,
    generator: torch.Generator,
    n_jitters: int,
) -> Tensor:
    """`_log_prefixes` of rows that are all whole, or all not."""
    conditional = model.conditional(z)
    if n_jitters == 0:
        shape = (*z.shape[:-1], conditional.n_uniforms)
        return conditional.log_prefixes(rows, uniform(shape, generator, torch.float64))
    shape = (*z.shape[:-1], rows.codes.shape[-1])
    estimates = [
        conditional.log_prefixes(rows, None, uniform(shape, generator).to(z.dtype))
        for _ in range(n_jitters)
    ]
    return torch.stack(estimates).logsumexp(0) - math.log(n_jitters)


def _steps(bounds: Tensor) -> Tensor:
    """L_j - L_{j-1}; 0 after an impossible cell, given which nothing has a probability. (n, D)."""
    before = torch.cat([torch.zeros_like(bounds[:, :1]), bounds[:, :-1]], dim=1)
    return torch.where(torch.isneginf(before), 0.0, bounds - before)


def weights_to_bound(log_weights: Tensor) -> tuple[Tensor, Tensor]:
    """log of the mean importance weight, and how far it may be from its limit.

    The delta method gives the deviation s = sd(w) / (mean(w) sqrt(S)) of the log of the mean, and
    its bias -s^2 / 2; the standard error is the root of s^2 + (s^2 / 2)^2. NaN with a single draw.
    A row whose every weight is zero has the bound -inf, known without error.

    Shape: (S, n) -> (n,), (n,).
    """
    n_draws = log_weights.shape[0]
    bound = log_weights.logsumexp(0) - math.log(n_draws)
    impossible = torch.isneginf(bound)
    relative = torch.where(impossible, 1.0, (log_weights - bound).exp())
    if n_draws == 1:
        return bound, torch.full_like(bound, torch.nan)
    deviation = relative.std(0) / math.sqrt(n_draws)
    return bound, torch.hypot(deviation, 0.5 * deviation.square())


def locality_penalty(loadings: Tensor, p: int) -> Tensor:
    """|a|_p^2, with p = 1 or 2, summed over the copula's rank.

    Shape: (n, D, r) -> (n,).
    Source: Eq. (elbo_vae_roc_reg), locality regularisation.
    """
    norms: Tensor = torch.linalg.vector_norm(loadings, ord=p, dim=-2)
    return norms.square().sum(-1)


def rank_penalty(z: Tensor, generator: torch.Generator) -> Tensor:
    """1/2 sum_k (u_(m) - Phi(z_k)_(m))^2 with uniforms and Phi(z) sorted in each dimension.

    It pulls the aggregated posterior of the minibatch towards N(0, I).

    Shape: (n, K) -> (n,).
    Source: Eq. (elbo_vae_roc_reg), rank regularisation.
    """
    u = uniform(tuple(z.shape), generator).to(z.dtype).sort(dim=0).values
    ranks = normal_cdf(z).sort(dim=0).values
    return 0.5 * (u - ranks).square().sum(-1)
