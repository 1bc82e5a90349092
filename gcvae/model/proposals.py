"""Proposal of the draws of z for importance-weighted bounds: a defensive mixture of encoder and
prior.

The encoder's posterior alone has light tails where the true one may have heavy ones, and knows
little of rows with many blanks. So a share of the draws is from the prior, and every draw is
weighted against the mixture (balance heuristic): no weight exceeds p(x|z) / share, and all weights
of a row without known cells are near one.
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
"""One draw in this many is from the prior."""
_LEAST_DRAWS = 10
"""Least number of draws of a complete row for which some are from the prior, ..."""
_LEAST_DRAWS_OF_BLANKS = 5
"""... and of a row with missing cells; with fewer, all are from the unwidened posterior."""
_WIDENED = 1.1
"""Factor by which the posterior's deviations are widened: too wide costs little, too
narrow much."""


@dataclass(frozen=True)
class LatentDraws:
    """Draws of z for each row, and log p(z) - log q(z), the prior against the mixture.

    Shape: z (S', n, K), log_ratio (S', n) in float64. The first S are used, one replicate after the
    other; the rest pads the batch, so that a row's result does not depend on the other rows.

    Beside each z stands the row's context, if it has one.

    Attributes:
        n_prior: Number of each replicate's draws, the last ones, that are from the prior.
    """

    z: Tensor
    log_ratio: Tensor
    n_prior: int


def draw_latents(
    model: GenerativeModel, rows: EncodedTable, n_draws: int, replicates: Sequence[RowNoise]
) -> LatentDraws:
    """Draws S latent vectors for each row and each independent replicate.

    A fixed share of a replicate's draws is from the prior, the others from the widened posterior
    N(eta, (c tau)^2), no wider than the prior's deviation of one, at points of a Sobol sequence,
    shifted for each row. Its best dimensions go to those of z with the smallest tau.

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
    for noise in replicates:
        parts.append(eta + tau * _even(noise, n_draws - n_prior, tau).to(eta))
        parts += [_of_prior(model, noise, n_prior, eta)] if n_prior else []
    n_all = n_draws * len(replicates)
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
