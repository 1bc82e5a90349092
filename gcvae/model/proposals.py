"""Where the draws of z of an importance-weighted bound come from.

The encoder's posterior alone has light tails where the true one may have heavy ones, and knows
little of rows with many blanks. So a share of the draws is from the prior, and every draw is
weighted against the mixture of both (the balance heuristic): no weight is more than
p(x|z) / share, and the weights of a row without any known cell are all near one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import GenerativeModel, beside
from gcvae.numerics.batches import draws_without_end, filled
from gcvae.numerics.normal import log_normal_density
from gcvae.numerics.row_noise import RowNoise
from gcvae.numerics.sobol import sobol_points

_PRIOR_SHARE = 10
"""One draw in so many is from the prior."""
_LEAST_DRAWS = 10
"""Under so many draws of a row whose cells are all known none is, ..."""
_LEAST_DRAWS_OF_BLANKS = 5
"""... and under so many of others; fewer than these are from the posterior as it is."""
_WIDENED = 1.1
"""Deviations of the draws, in the posterior's: too wide costs little, too narrow much."""


@dataclass(frozen=True)
class LatentDraws:
    """Draws of z for each row, and log p(z) - log q(z), the prior against the mixture.

    Shape: z (S', n, K), log_ratio (S', n) in float64. The first S count, those of one strand after
    the other; what is behind them fills the batch up, so that a row's numbers are the same in any
    company.

    Beside each z stands the row's context, if it has one.

    Attributes:
        n_prior: How many of each strand's draws, the last, are from the prior.
    """

    z: Tensor
    log_ratio: Tensor
    n_prior: int


def draw_latents(
    model: GenerativeModel, rows: EncodedTable, n_draws: int, strands: Sequence[RowNoise]
) -> LatentDraws:
    """S draws for each row and each strand, which know nothing of each other.

    Of a strand's draws a fixed share is from the prior, the others from the posterior's
    N(eta, (c tau)^2), c widening it, though not beyond the prior's deviation of one, at points of
    Sobol's sequence, shifted for each row. The best of its dimensions are those of z that the row
    says most of.

    q(z) = (1 - a) N(eta, (c tau)^2) + a p(z), a the share that is drawn from the prior.

    Source: Veach & Guibas 1995 (balance heuristic); Hesterberg 1995 (defensive mixture).
    """
    is_whole = bool((rows.observed & ~rows.are_intervals).all())
    least = _LEAST_DRAWS if is_whole else _LEAST_DRAWS_OF_BLANKS
    n_prior = max(1, n_draws // _PRIOR_SHARE) if n_draws >= least else 0
    eta, tau = _posterior(model, rows)
    if n_draws >= _LEAST_DRAWS_OF_BLANKS:
        tau = torch.minimum(_WIDENED * tau, tau.clamp(min=1.0))
    parts = []
    for noise in strands:
        parts.append(eta + tau * _even(noise, n_draws - n_prior, tau).to(eta))
        parts += [_of_prior(model, noise, n_prior, eta)] if n_prior else []
    n_all = n_draws * len(strands)
    n_filled = draws_without_end(n_all, len(rows))
    z = torch.cat([*parts, eta.expand(n_filled - n_all, *eta.shape)])
    log_p = model.prior.log_prob(z).double()
    log_q = (log_normal_density((z - eta) / tau).sum(-1) - tau.log().sum(-1)).double()
    if n_prior:
        share = n_prior / n_draws
        log_q = torch.logaddexp(log_q + math.log1p(-share), log_p + math.log(share))
    return LatentDraws(beside(z, rows.context), log_p - log_q, n_prior)


def _posterior(model: GenerativeModel, rows: EncodedTable) -> tuple[Tensor, Tensor]:
    """eta and tau of each row. Shape: (n, K) each."""
    eta, log_tau = model.encoder(rows.take(filled(torch.arange(len(rows), device=rows.device))))
    return eta[: len(rows)], log_tau.exp()[: len(rows)]


def _of_prior(model: GenerativeModel, noise: RowNoise, n_draws: int, eta: Tensor) -> Tensor:
    """Draws of the prior, for each row of `eta`. Shape: eta (n, K) -> (S, n, K)."""
    noise = noise.of("prior")
    u = noise.of("component").uniform(n_draws, model.prior.n_uniforms).to(eta)
    eps = noise.normal(n_draws, eta.shape[-1]).to(eta)
    drawn = model.prior.at_noise(u.flatten(0, 1), eps.flatten(0, 1))
    return drawn.view(n_draws, *eta.shape)


def _even(noise: RowNoise, n_draws: int, tau: Tensor) -> Tensor:
    """Normal noise at shifted points of Sobol's sequence. Shape: tau (n, K) -> (S, n, K)."""
    place = tau.argsort(dim=-1, stable=True).argsort(dim=-1).cpu().numpy()
    points = sobol_points(n_draws, tau.shape[-1])[:, place]
    eps: Tensor = torch.special.ndtri(noise.of("encoder").shifted(points))
    return eps
