"""Priors p(z) of the latent vector."""

from __future__ import annotations

import math
import warnings
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from gcvae.generators import normal, uniform
from gcvae.normal import LOG_SQRT_2PI, log_normal_density

_N_EM_STEPS = 60
_RIDGE = 1e-4


class Prior(Protocol):
    """p(z) with an exact density."""

    d_latent: int

    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z). Shape: (..., K) -> (...)."""

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draws of z. Shape: (n, K)."""


class StandardNormalPrior(nn.Module):
    """p(z) = N(0, I_K). Source: Eq. (vae1)."""

    def __init__(self, d_latent: int) -> None:
        super().__init__()
        self.d_latent = d_latent

    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z). Shape: (..., K) -> (...)."""
        return log_normal_density(z).sum(-1)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draws of z. Shape: (n, K)."""
        return normal((n, self.d_latent), generator)


class GaussianMixturePrior(nn.Module):
    """p(z) = sum_c w_c N(z; m_c, L_c L_c^T) with full covariances.

    # PAPER-DIFF: the paper's prior is N(0, I) throughout. Training keeps it; afterwards the mixture
    is fitted to draws of the posterior over the training rows, so that rows are drawn from where
    the rows are.

    Shape: log_weight (C,), mean (C, K), factor (C, K, K) lower triangular.
    """

    log_weight: Tensor
    mean: Tensor
    factor: Tensor

    def __init__(self, n_components: int, d_latent: int) -> None:
        super().__init__()
        self.d_latent = d_latent
        uniform_weight = torch.full((n_components,), -math.log(n_components))
        factor = torch.eye(d_latent).repeat(n_components, 1, 1)
        self.register_buffer("log_weight", uniform_weight)
        self.register_buffer("mean", torch.zeros(n_components, d_latent))
        self.register_buffer("factor", factor)

    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z). Shape: (..., K) -> (...)."""
        centred = (z[..., None, :] - self.mean).movedim(-2, 0)
        flat = centred.flatten(1, -2).mT
        whitened = torch.linalg.solve_triangular(self.factor, flat, upper=False)
        square = whitened.square().sum(1).unflatten(-1, z.shape[:-1] or (1,)).movedim(0, -1)
        log_det = self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_terms = self.log_weight - log_det - self.d_latent * LOG_SQRT_2PI - 0.5 * square
        log_prob: Tensor = log_terms.logsumexp(-1)
        return log_prob.view(z.shape[:-1])

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draws of z. Shape: (n, K)."""
        u = uniform((n,), generator)
        c = torch.searchsorted(self.log_weight.exp().cumsum(0), u).clamp(max=len(self.mean) - 1)
        eps = normal((n, self.d_latent), generator)
        return self.mean[c] + (self.factor[c] @ eps[..., None])[..., 0]


def fit_mixture(z: Tensor, n_components: int, seed: int) -> GaussianMixturePrior:
    """The mixture by expectation maximisation over draws of z. Shape: (n, K)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    fitted = GaussianMixture(
        n_components,
        init_params="k-means++",
        max_iter=_N_EM_STEPS,
        reg_covar=_RIDGE,
        random_state=seed % 2**32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit((z if len(z) > 1 else z.repeat(2, 1)).double().numpy())  # it asks for two
    prior = GaussianMixturePrior(n_components, z.shape[1])
    prior.log_weight.copy_(torch.from_numpy(np.log(fitted.weights_)))
    prior.mean.copy_(torch.from_numpy(fitted.means_))
    prior.factor.copy_(torch.from_numpy(np.linalg.cholesky(fitted.covariances_)))
    return prior


def fit_best_mixture(
    z: Tensor, held_out: Tensor, choices: list[int], seed: int
) -> GaussianMixturePrior:
    """The mixture whose number of components gives held-out draws the highest density."""
    priors = [fit_mixture(z, n, seed) for n in choices if n <= max(1, len(z) // 20)]
    return max(priors, key=lambda prior: float(prior.log_prob(held_out).mean()))
