"""Proposal distribution of z for importance-weighted bounds: a mixture of posterior and prior.

    q(z) = (1 - a) N(eta, (c tau)^2) + a p(z)

eta and tau are the means and standard deviations of the encoder's posterior, which c >= 1 widens.
The encoder's posterior may have lighter tails than the true one, and is poor for rows with many
unobserved cells. Therefore a share a of the samples comes from the prior, and every sample is
weighted by the density of the mixture (balance heuristic): no weight exceeds p(x|z) / a, and all
weights of a row without observed cells are near one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import GenerativeModel, join_context
from gcvae.numerics.batches import padded_to_lanes, samples_without_padding
from gcvae.numerics.normal import log_normal_density
from gcvae.numerics.row_noise import RowNoise
from gcvae.numerics.sobol import sobol_points

_PRIOR_SHARE = 10
"""One of this many samples is from the prior."""
_LEAST_DRAWS = 10
"""Minimum number of samples per complete row for which some are from the prior."""
_LEAST_DRAWS_OF_BLANKS = 5
"""Minimum number of samples per row with unobserved cells for which some are from the prior; with
fewer samples, the posterior is not widened either."""
_WIDENED = 1.1
"""Factor c on the posterior's deviations; a wide proposal costs little accuracy, a narrow one much.
"""


@dataclass(frozen=True)
class LatentDraws:
    """Samples of z for each of n rows from a proposal distribution q, with log p(z) - log q(z).

    A row has S' samples: first the samples of each replicate (source of random numbers) in turn,
    then padding. The padding fills the batch to a size at which a row's result does not depend on
    other rows, to the last bit.

    Attributes:
        z: Samples, to which a conditional model's contexts are appended. Shape: (S', n, K).
        log_ratio: log p(z) - log q(z). Shape: (S', n), float64.
        n_prior: Number of samples from the prior, which are the last ones of each replicate.
    """

    z: Tensor
    log_ratio: Tensor
    n_prior: int


def draw_latents(
    model: GenerativeModel, rows: EncodedTable, n_draws: int, replicates: Sequence[RowNoise]
) -> LatentDraws:
    """Samples `n_draws` latent vectors for each row and each replicate (source of random numbers).

    A fixed share of the samples is from the prior. The others are from the encoder's posterior
    N(eta, tau^2), with tau widened by a factor but not beyond one, at points of a Sobol sequence
    that is shifted for each row. The points are most even in the first dimensions of the sequence,
    so these are used for the dimensions of z with the smallest tau, about which the row says most.

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
        parts.append(eta + tau * _sobol_normals(noise, n_draws - n_prior, tau).to(eta))
        parts += [_prior_samples(model, noise, n_prior, eta)] if n_prior else []
    n_all = n_draws * len(replicates)
    n_filled = samples_without_padding(n_all, len(rows))
    z = torch.cat([*parts, eta.expand(n_filled - n_all, *eta.shape)])
    log_p = model.prior.log_prob(z).double()
    log_q = (log_normal_density((z - eta) / tau).sum(-1) - tau.log().sum(-1)).double()
    if n_prior:
        share = n_prior / n_draws
        log_q = torch.logaddexp(log_q + math.log1p(-share), log_p + math.log(share))
    return LatentDraws(join_context(z, rows.context), log_p - log_q, n_prior)


def _posterior(model: GenerativeModel, rows: EncodedTable) -> tuple[Tensor, Tensor]:
    """Returns mean and standard deviation of each row's posterior. Rows are padded, so that a row's
    result does not depend on other rows."""
    eta, log_tau = model.encoder(
        rows.take(padded_to_lanes(torch.arange(len(rows), device=rows.device)))
    )
    return eta[: len(rows)], log_tau.exp()[: len(rows)]


def _prior_samples(model: GenerativeModel, noise: RowNoise, n_draws: int, eta: Tensor) -> Tensor:
    noise = noise.of("prior")
    u = noise.of("component").uniform(n_draws, model.prior.n_uniforms).to(eta)
    eps = noise.normal(n_draws, eta.shape[-1]).to(eta)
    drawn = model.prior.at_noise(u.flatten(0, 1), eps.flatten(0, 1))
    return drawn.view(n_draws, *eta.shape)


def _sobol_normals(noise: RowNoise, n_draws: int, tau: Tensor) -> Tensor:
    """Returns normal scores of Sobol points, shifted randomly for each row. `tau` contains the
    posterior's standard deviations. The dimension of z with the smallest one gets the first
    dimension of the points, and so on."""
    place = tau.argsort(dim=-1, stable=True).argsort(dim=-1).cpu().numpy()
    points = sobol_points(n_draws, tau.shape[-1])[:, place]
    eps: Tensor = torch.special.ndtri(noise.of("encoder").shifted(points))
    return eps
