"""Priors p(z) of the latent vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcvae.generators import normal
from gcvae.normal import log_normal_density


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
