"""Priors that are fitted to a trained model's posteriors."""

from __future__ import annotations

import torch
from torch import Tensor

from gcvae.bounds import gaussian_kl
from gcvae.encoded_rows import TrainingRows
from gcvae.generators import generator_for, normal
from gcvae.model import GenerativeModel
from gcvae.priors import GaussianMixturePrior, fit_best_mixture

_PRIOR_ROWS = 20_000
_COMPONENTS = (1, 8, 24, 48)
_LEAST_DIVERGENCE = 0.01
"""Nats per row that a dimension of z carries at least, if its prior is to be fitted: the posterior
of the others is the standard normal, and components would be spent on them in vain."""


def mixture_prior(
    model: GenerativeModel, rows: TrainingRows, held_out: Tensor, seed: int
) -> GaussianMixturePrior:
    """The prior mixture, fitted to draws of the posterior over the training rows.

    In the dimensions that the model uses; the others keep their standard normal prior.
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
    fitted = fit_best_mixture(draws[: len(chosen)], draws[len(chosen) :], _COMPONENTS, seed)
    return fitted.widened(is_used)
