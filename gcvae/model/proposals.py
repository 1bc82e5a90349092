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
from gcvae.numerics.generators import normal
from gcvae.numerics.normal import log_normal_density

_PRIOR_SHARE = 5
"""One draw in so many is from the prior; under so many draws none is."""


@dataclass(frozen=True)
class LatentDraws:
    """Draws of z for each row, and log p(z) - log q(z), the prior against the mixture.

    Shape: z (S, n, K), log_ratio (S, n) in float64.
    """

    z: Tensor
    log_ratio: Tensor


def draw_latents(
    model: GenerativeModel, rows: EncodedTable, n_draws: int, generator: torch.Generator
) -> LatentDraws:
    """S draws for each row, a fixed share of them from the prior, the others from q(z|x).

    q(z) = (1 - a) N(eta, tau^2) + a p(z), a the share that is drawn from the prior.

    Source: Veach & Guibas 1995 (balance heuristic); Hesterberg 1995 (defensive mixture).
    """
    eta, log_tau = model.encoder(rows)
    n_prior = n_draws // _PRIOR_SHARE
    n_posterior = n_draws - n_prior
    eps = normal((n_posterior, *eta.shape), generator).to(eta.dtype)
    z = eta + log_tau.exp() * eps
    if n_prior:
        drawn = model.prior.sample(n_prior * len(rows), generator).to(eta.dtype)
        z = torch.cat([z, drawn.view(n_prior, *eta.shape)])
    log_p = model.prior.log_prob(z).double()
    log_q = (log_normal_density((z - eta) * torch.exp(-log_tau)) - log_tau).sum(-1).double()
    if n_prior:
        share = n_prior / n_draws
        log_q = torch.logaddexp(log_q + math.log1p(-share), log_p + math.log(share))
    return LatentDraws(z, log_p - log_q)
