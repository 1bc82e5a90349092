"""p(unknown cells | known cells) of rows, each with known cells of its own.

Each row has particles of its own. The first come half from the prior and half from the encoder at
the known cells alone; the rows that they become are encoded whole, and the second come from the
mixture of those posteriors, with a share from the prior. A completion is one of the second, chosen
by its weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.codec import EncodedTable
from gcvae.conditioning import Proposal
from gcvae.generators import normal, uniform
from gcvae.model import GenerativeModel
from gcvae.normal import log_normal_density
from gcvae.particles import Particles, complete, draw_particles, effective_size, systematic
from gcvae.regions import Region, Regions
from gcvae.walks import n_factors

N_PARTICLES = 32
"""Of each row, twice."""
ROWS_PER_BATCH = 128
_N_ENCODED = 12
"""Completions of a row that are encoded for the second proposal."""
_ENCODER_SHARE = 0.5
_PRIOR_SHARE = 0.1
_WIDENED = 1.1
_LEAST_FACTOR_SIGMA = 0.1


@dataclass(frozen=True)
class Completions:
    """Rows with their unknown cells drawn, and each row's effective number of particles.

    Shape: codes and values (n, O, D); effective (n,).
    """

    codes: Tensor
    values: Tensor
    effective: Tensor


def complete_rows(
    model: GenerativeModel,
    regions: Sequence[Region | None],
    rows: EncodedTable,
    n_outputs: int,
    generator: torch.Generator,
    n_particles: int = N_PARTICLES,
) -> Completions:
    """Completions of rows, `n_outputs` of each; known cells keep their codes and values.

    Args:
        model: Of the rows.
        regions: Of the rows' cells, as `known_regions` gives them.
        rows: Encoded; cells that are not `observed` are drawn.
        n_outputs: Completions of each row.
        generator: Of all draws.
        n_particles: Of each row; completions can not be more diverse than these.
    """
    particles_of_row = max(n_particles, n_outputs)
    parts = [
        _completed_batch(
            model,
            [None if region is None else region.take(batch) for region in regions],
            rows.take(batch),
            n_outputs,
            particles_of_row,
            generator,
        )
        for batch in torch.arange(len(rows)).split(ROWS_PER_BATCH)
    ]
    names = ("codes", "values", "effective")
    return Completions(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def _completed_batch(
    model: GenerativeModel,
    regions: Regions,
    rows: EncodedTable,
    n_outputs: int,
    n_particles: int,
    generator: torch.Generator,
) -> Completions:
    n = len(rows)
    with torch.no_grad():
        first = _RowProposal.of_known(model, rows)
        particles = _particles_of(model, regions, first, n, n_particles, generator)
        chosen = _chosen(particles, n, min(_N_ENCODED, n_particles), generator)
        second = _RowProposal.of_completed(model, regions, chosen, particles, n, generator)
        particles = _particles_of(model, regions, second, n, n_particles, generator)
        log_weight = particles.log_weight.view(n, -1)
        chosen = _chosen(particles, n, n_outputs, generator)
        codes, values = complete(model, regions, chosen, generator)
    known = rows.observed[:, None]
    shape = (n, n_outputs, -1)
    return Completions(
        torch.where(known, rows.codes[:, None], codes.view(shape)),
        torch.where(known, rows.values[:, None], values.view(shape)),
        effective_size(log_weight),
    )


@dataclass(frozen=True)
class _RowProposal:
    """g_i(l) of each row i: a share of the prior, and a mixture of C Gaussians.

    Shape: mean and sigma (n, C, K + F).
    """

    prior: Proposal
    prior_share: float
    mean: Tensor
    sigma: Tensor

    @classmethod
    def of_known(cls, model: GenerativeModel, rows: EncodedTable) -> _RowProposal:
        """The encoder at the known cells; the factor from its prior."""
        eta, log_tau = model.encoder(rows)
        proposal = Proposal(model.prior, n_factors(model))
        zeros = eta.new_zeros(len(rows), proposal.n_factors)
        mean = torch.cat([eta, zeros], dim=-1)[:, None]
        sigma = torch.cat([_WIDENED * log_tau.exp(), zeros + 1.0], dim=-1)[:, None]
        return cls(proposal, 1.0 - _ENCODER_SHARE, mean, sigma)

    @classmethod
    def of_completed(
        cls,
        model: GenerativeModel,
        regions: Regions,
        chosen: Particles,
        particles: Particles,
        n: int,
        generator: torch.Generator,
    ) -> _RowProposal:
        """The encoder at completed rows; the factor about where it was, as wide as it varied."""
        codes, values = complete(model, regions, chosen, generator)
        everything = torch.ones_like(codes, dtype=torch.bool)
        eta, log_tau = model.encoder(EncodedTable(codes, values, everything))
        proposal = Proposal(model.prior, n_factors(model))
        weight = torch.softmax(particles.log_weight.view(n, -1), dim=-1)[..., None]
        factor = particles.latent[:, eta.shape[-1] :].view(n, -1, proposal.n_factors).double()
        mean = (weight * factor).sum(1, keepdim=True)
        spread = (weight * (factor - mean).square()).sum(1, keepdim=True).sqrt()
        centre = torch.cat([eta, chosen.latent[:, eta.shape[-1] :]], dim=-1).view(
            n, -1, eta.shape[-1] + proposal.n_factors
        )
        sigma = (_WIDENED * log_tau.exp()).view(n, -1, eta.shape[-1])
        factor_sigma = spread.clamp(min=_LEAST_FACTOR_SIGMA).to(sigma.dtype)
        factor_sigma = factor_sigma.expand(-1, sigma.shape[1], -1)
        return cls(proposal, _PRIOR_SHARE, centre, torch.cat([sigma, factor_sigma], dim=-1))

    def draw(self, n_particles: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n_particles latents of each row, and log p - log g. Shape: (n, S, K + F), (n, S)."""
        n, n_components, width = self.mean.shape
        n_prior = math.ceil(self.prior_share * n_particles)
        drawn, _ = self.prior.draw(n * n_prior, generator)
        shape = (n, n_particles - n_prior)
        at = (uniform(shape, generator, torch.float64) * n_components).long()
        at = at[..., None].expand(-1, -1, width)
        eps = normal((*shape, width), generator).to(self.mean.dtype)
        near = self.mean.gather(1, at) + self.sigma.gather(1, at) * eps
        latent = torch.cat([drawn.view(n, n_prior, width), near], dim=1)
        log_prior = self.prior.log_prior(latent)
        t = (latent[:, :, None] - self.mean[:, None]) / self.sigma[:, None]
        log_near = (log_normal_density(t) - self.sigma[:, None].log()).sum(-1).double()
        log_near = log_near.logsumexp(-1) - math.log(n_components)
        share = n_prior / n_particles
        log_g = torch.logaddexp(math.log(share) + log_prior, math.log1p(-share) + log_near)
        return latent, log_prior - log_g


def _particles_of(
    model: GenerativeModel,
    regions: Regions,
    proposal: _RowProposal,
    n: int,
    n_particles: int,
    generator: torch.Generator,
) -> Particles:
    latent, log_ratio = proposal.draw(n_particles, generator)
    rows = torch.arange(n).repeat_interleave(n_particles)
    return draw_particles(
        model, regions, latent.flatten(0, 1), log_ratio.flatten(), generator, rows
    )


def _chosen(particles: Particles, n: int, n_chosen: int, generator: torch.Generator) -> Particles:
    """Particles of each row by their weights. Shape: n rows of n_chosen, one after the other."""
    n_particles = len(particles.log_weight) // n
    at = systematic(particles.log_weight.view(n, -1), n_chosen, generator)
    return particles.take((at + n_particles * torch.arange(n)[:, None]).flatten())
