"""Where the draws of z of an importance-weighted bound come from.

The encoder's posterior alone has light tails where the true one may have heavy ones, and knows
little of rows with many blanks. So a share of the draws is from the prior, and every draw is
weighted against the mixture of both (the balance heuristic): no weight is more than
p(x|z) / share, and the weights of a row without any known cell are all near one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.batches import draws_without_end, filled
from gcvae.numerics.normal import log_normal_density
from gcvae.numerics.row_noise import RowNoise

_PRIOR_SHARE = 10
"""One draw in so many is from the prior."""
_LEAST_DRAWS = 5
"""Under so many draws none is."""


@dataclass(frozen=True)
class LatentDraws:
    """Draws of z for each row, and log p(z) - log q(z), the prior against the mixture.

    Shape: z (S', n, K), log_ratio (S', n) in float64. The first S count; what is behind them fills
    the batch up, so that a row's numbers are the same in any company.

    Attributes:
        n_prior: How many of the draws that count, the last, are from the prior.
    """

    z: Tensor
    log_ratio: Tensor
    n_prior: int


def draw_latents(
    model: GenerativeModel, rows: EncodedTable, n_draws: int, noise: RowNoise
) -> LatentDraws:
    """S draws for each row, a fixed share of them from the prior, the others from q(z|x).

    q(z) = (1 - a) N(eta, tau^2) + a p(z), a the share that is drawn from the prior. The others lie
    in strata of equal mass along the dimension that the row says most of.

    Source: Veach & Guibas 1995 (balance heuristic); Hesterberg 1995 (defensive mixture).
    """
    eta, tau, log_tau = _posterior(model, rows)
    d_latent = eta.shape[-1]
    n_prior = max(1, n_draws // _PRIOR_SHARE) if n_draws >= _LEAST_DRAWS else 0
    n_filled = draws_without_end(n_draws, len(rows))
    eps = _in_strata(noise.of("encoder").uniform(n_draws - n_prior, d_latent), tau).to(eta)
    of_prior = noise.of("prior")
    u = of_prior.of("component").uniform(n_prior, model.prior.n_uniforms).to(eta)
    drawn = of_prior.normal(n_prior, d_latent).to(eta)
    drawn = model.prior.at_noise(u.flatten(0, 1), drawn.flatten(0, 1)).view(n_prior, *eta.shape)
    z = torch.cat([eta + tau * eps, drawn, eta.expand(n_filled - n_draws, *eta.shape)])
    log_p = model.prior.log_prob(z).double()
    log_q = (log_normal_density((z - eta) / tau) - log_tau).sum(-1).double()
    if n_prior:
        share = n_prior / n_draws
        log_q = torch.logaddexp(log_q + math.log1p(-share), log_p + math.log(share))
    return LatentDraws(z, log_p - log_q, n_prior)


def _posterior(model: GenerativeModel, rows: EncodedTable) -> tuple[Tensor, Tensor, Tensor]:
    """eta, tau and log tau of each row. Shape: (n, K) each."""
    eta, log_tau = model.encoder(rows.take(filled(torch.arange(len(rows), device=rows.device))))
    eta, tau, log_tau = (part[: len(rows)] for part in (eta, log_tau.exp(), log_tau))
    return eta, tau, log_tau


def _in_strata(u: Tensor, tau: Tensor) -> Tensor:
    """Normal noise in as many strata as there are draws, along the dimension of the least tau.

    Shape: u (S, n, K), uniform, tau (n, K) -> (S, n, K).
    """
    place = tau.argmin(-1).expand(len(u), -1)[..., None]
    stratum = torch.arange(len(u), dtype=u.dtype)[:, None, None]
    eps: Tensor = torch.special.ndtri(
        u.scatter(-1, place, (u.gather(-1, place) + stratum) / max(1, len(u)))
    )
    return eps
