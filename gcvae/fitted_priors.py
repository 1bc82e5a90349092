"""Priors that are fitted to a trained model's posteriors."""

from __future__ import annotations

import torch
from torch import Tensor

from gcvae.encoded_rows import TrainingRows
from gcvae.generators import generator_for, normal
from gcvae.model import GenerativeModel
from gcvae.priors import GaussianMixturePrior, fit_best_mixture

_PRIOR_ROWS = 10_000


def mixture_prior(
    model: GenerativeModel, rows: TrainingRows, held_out: Tensor, seed: int
) -> GaussianMixturePrior:
    """The prior mixture, fitted to draws of the posterior over the training rows."""
    generator = generator_for(seed, "prior")
    is_held_out = torch.zeros(len(rows), dtype=torch.bool)
    is_held_out[held_out] = len(held_out) < len(rows)
    training = (~is_held_out).nonzero()[:, 0]
    chosen = training[torch.randperm(len(training), generator=generator)[:_PRIOR_ROWS]]
    with torch.no_grad():
        eta, log_tau = model.encoder(rows.take(torch.cat([chosen, held_out])))
    z = eta + log_tau.exp() * normal(tuple(eta.shape), generator)
    return fit_best_mixture(z[: len(chosen)], z[len(chosen) :], [1, 8, 24, 48], seed)
