"""A decoder's columns one after the other, each particle at a latent of its own.

The latent of a walk is z and, where a factor f couples the columns, f beside it: given both, the
columns are independent (copula, principal direction) or follow each other (refinement).

    refinement            p_j(x_j | x_<j, z)
    Gaussian copula       q_j = (b_j . f + e_j) / psi_j,  f ~ N(0, I_r)
    principal direction   x_j = mu_j + a_j f + sqrt(omega) e_j,  f ~ N(0, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from gcvae.copula import LowRankCopula
from gcvae.marginals import Marginals
from gcvae.mixtures import MarginalParameters
from gcvae.model import (
    CopulaConditional,
    CopulaDecoder,
    GenerativeModel,
    PrincipalDirectionConditional,
    PrincipalDirectionDecoder,
)
from gcvae.refinement import ColumnDistribution, RefinedConditional, Walk
from gcvae.regions import Region, Regions
from gcvae.truncation import CopulaColumn, Drawn, draw_within


class ColumnWalk(Protocol):
    """N particles on their way through the columns."""

    def order(self, regions: Regions) -> Sequence[int]:
        """The order in which the columns are walked; what is conditioned comes early if it can."""

    def draw(self, j: int, region: Region | None, noise: Tensor) -> Drawn:
        """Column j within a region, given the columns that came. Shape: noise (N,)."""

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Column j has these cells. Shape: (N,), (N,)."""


def n_factors(model: GenerativeModel) -> int:
    """The number of factors f beside z."""
    decoder = model.decoder
    if isinstance(decoder, CopulaDecoder):
        return decoder.rank
    if isinstance(decoder, PrincipalDirectionDecoder):
        return int(len(model.marginals.real_columns) > 0)
    return 0


def walk_of(model: GenerativeModel, latent: Tensor) -> ColumnWalk:
    """The walk at these latents. Shape: (N, K + F)."""
    d_latent = latent.shape[-1] - n_factors(model)
    z, factor = latent[:, :d_latent], latent[:, d_latent:].double()
    conditional = model.conditional(z)
    if isinstance(conditional, RefinedConditional):
        return RefinedWalk(conditional)
    if isinstance(conditional, CopulaConditional):
        return CopulaWalk(conditional, factor)
    assert isinstance(conditional, PrincipalDirectionConditional), "there are three decoders"
    return DirectionWalk(conditional, factor)


class RefinedWalk:
    """Columns in the order of the refinement."""

    def __init__(self, conditional: RefinedConditional) -> None:
        self._walk = Walk(conditional)

    def order(self, regions: Regions) -> Sequence[int]:
        """That of the refinement, whatever is conditioned."""
        return self._walk.refinement.order

    def draw(self, j: int, region: Region | None, noise: Tensor) -> Drawn:
        """Column j given the columns before it."""
        return draw_within(self._walk.distribution(j), region, noise)

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """The columns after j see it."""
        self._walk.step(j, codes, values)


class _IndependentWalk:
    """Columns that are independent given the latent: none needs to know which came."""

    def order(self, regions: Regions) -> Sequence[int]:
        """Conditioned columns first."""
        return sorted(range(len(regions)), key=lambda j: regions[j] is None)

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Nothing: given the latent, no column depends on another."""


class CopulaWalk(_IndependentWalk):
    """Columns of a Gaussian copula given its factor; without loadings, the marginals."""

    def __init__(self, conditional: CopulaConditional, factor: Tensor) -> None:
        self._conditional = conditional
        self._pull: Tensor | None = None
        if isinstance(conditional.copula, LowRankCopula):
            b = conditional.copula.scaled_loadings
            self._pull = (b * factor[:, None]).sum(-1)
            self._scale = (1.0 + b.square().sum(-1)).sqrt()

    def draw(self, j: int, region: Region | None, noise: Tensor) -> Drawn:
        """Column j given z and f."""
        conditional = self._conditional
        column = marginal_column(conditional.marginals, conditional.parameters, j)
        if self._pull is None:
            return draw_within(column, region, noise)
        return CopulaColumn(column, self._pull[:, j], self._scale[:, j]).draw(region, noise)


class DirectionWalk(_IndependentWalk):
    """Numbers about mu + a f, levels by their probabilities."""

    def __init__(self, conditional: PrincipalDirectionConditional, factor: Tensor) -> None:
        self._marginals = conditional.marginals
        parameters = conditional.parameters
        if len(conditional.marginals.real_columns):
            mean = parameters.mean + (conditional.direction * factor)[..., None]
            log_sigma = 0.5 * conditional.noise.log()[:, None, None].expand_as(mean)
            parameters = MarginalParameters(
                parameters.log_beta, parameters.log_weight, mean, log_sigma
            )
        self._parameters = parameters

    def draw(self, j: int, region: Region | None, noise: Tensor) -> Drawn:
        """Column j given z and f."""
        return draw_within(marginal_column(self._marginals, self._parameters, j), region, noise)


def marginal_column(
    marginals: Marginals, parameters: MarginalParameters, j: int
) -> ColumnDistribution:
    """Column j alone, of marginals at N latents."""
    log_beta = parameters.mean.new_zeros(len(parameters.mean), 1)
    for group, of_group in zip(marginals.code_groups, parameters.log_beta, strict=True):
        at = (group.columns == j).nonzero()[:, 0]
        log_beta = of_group[:, int(at)] if len(at) else log_beta
    mixture = None
    place = (marginals.real_columns == j).nonzero()[:, 0]
    if len(place):
        r = int(place)
        parts = parameters.log_weight[:, r], parameters.mean[:, r], parameters.log_sigma[:, r]
        mixture = torch.cat(parts, dim=-1)
    return ColumnDistribution(log_beta, mixture, int(marginals.point_codes[j]), None)
