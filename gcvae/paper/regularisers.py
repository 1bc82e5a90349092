"""Regularisers of the paper, which the settings `locality_weight` and `rank_weight` add to the
loss, in nats per row."""

from __future__ import annotations

import torch
from torch import Tensor

from gcvae.numerics.generators import uniform
from gcvae.numerics.normal import normal_cdf


def locality_penalty(loadings: Tensor, p: int) -> Tensor:
    """Returns the penalty |a|_p^2 on the copula's D loadings of each of n rows, p = 1 or 2.

    Shape: loadings (n, D) -> (n,).
    Source: Eq. (elbo_vae_roc_reg), locality regularisation.
    """
    norms: Tensor = torch.linalg.vector_norm(loadings, ord=p, dim=-1)
    return norms.square()


def rank_penalty(z: Tensor, generator: torch.Generator) -> Tensor:
    """Returns a penalty that pulls the latent vectors of a minibatch towards N(0, I).

    In each of K dimensions, n uniform samples u are sorted, and so are the n values of Phi(z). With
    u_(m)k the m-th smallest sample and Phi(z)_(m)k the m-th smallest value in dimension k, entry m
    of the result is 1/2 sum_k (u_(m)k - Phi(z)_(m)k)^2.

    Shape: (n, K) -> (n,).
    Source: Eq. (elbo_vae_roc_reg), rank regularisation.
    """
    u = uniform(tuple(z.shape), generator).to(z.dtype).sort(dim=0).values
    ranks = normal_cdf(z).sort(dim=0).values
    return 0.5 * (u - ranks).square().sum(-1)
