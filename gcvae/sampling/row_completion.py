"""Draws the unknown cells of rows given their known cells, which differ from row to row.

    p(unknown cells | known cells)

Each row has its own particles (weighted latent vectors with partial rows), in two rounds. In the
first round, half of the particles come from the prior, and half from the encoder's posterior given
the known cells. Some of the rows that they complete are encoded. In the second round, a tenth of
the particles come from the prior, and all others from the mixture of the posteriors of the encoded
rows. A completion is a particle of the second round, chosen by weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import GenerativeModel, join_context
from gcvae.numerics.generators import AnyGenerator, RowGenerators, normal, uniform
from gcvae.numerics.normal import log_normal_density
from gcvae.sampling.conditioning import Proposal
from gcvae.sampling.particles import Particles, complete, draw_particles, effective_size, systematic
from gcvae.sampling.regions import Regions

N_PARTICLES = 24
"""Number of particles of a row in the second round; the first round has half as many."""
ROWS_PER_BATCH = 128
LEAST_EFFECTIVE = 6.0
"""Minimum effective sample size of a row's particles; rows with less get `_MORE` times as many."""
_MORE = 8
_N_ENCODED = 6
"""Number of completions of a row that are encoded for the second proposal."""
_ENCODER_SHARE = 0.5
_PRIOR_SHARE = 0.1
_WIDENED = 1.1
_LEAST_FACTOR_SIGMA = 0.1


@dataclass(frozen=True)
class Completions:
    """Completions of n partly observed rows, with unknown cells drawn O times for each.

    Attributes:
        codes, values: Integer codes and numbers of the completed cells of D columns. Shape: (n, O,
            D) each.
        effective: Effective sample size of the weighted draws from which each row's completions are
            chosen. Shape: (n,).
    """

    codes: Tensor
    values: Tensor
    effective: Tensor

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """(codes, values, effective sample sizes) as a tuple."""
        return self.codes, self.values, self.effective


def complete_rows(
    model: GenerativeModel,
    regions: Regions,
    rows: EncodedTable,
    n_outputs: int,
    generator: AnyGenerator,
) -> Completions:
    """Draws the unknown cells of rows, `n_outputs` times for each row; known cells are unchanged.

    Args:
        regions: For each column, the set of cells that are possible in each row.
        rows: Encoded rows; cells that are not `observed` are drawn.
        n_outputs: Number of completions of each row.
    """
    n_particles = max(N_PARTICLES, 2 * n_outputs)
    found = _completed(model, regions, rows, n_outputs, n_particles, generator)
    poor = (found.effective < LEAST_EFFECTIVE).nonzero()[:, 0]
    if len(poor):
        n_particles *= _MORE
        own = _generator_of(generator, poor)
        again = _regions_of_rows(regions, poor), rows.take(poor), n_outputs, n_particles, own
        better = _completed(model, *again)
        for whole, part in zip(found.parts, better.parts, strict=True):
            whole[poor] = part
    return found


def _completed(
    model: GenerativeModel,
    regions: Regions,
    rows: EncodedTable,
    n_outputs: int,
    n_particles: int,
    generator: AnyGenerator,
) -> Completions:
    """Draws `n_outputs` completions of each row, in batches of rows. For each row, `n_particles`
    weighted completions (particles) are drawn, and the outputs are chosen by weight."""
    n, size = len(rows), max(1, ROWS_PER_BATCH * N_PARTICLES // n_particles)
    if n > size:
        found = [
            _completed(
                model,
                _regions_of_rows(regions, at),
                rows.take(at),
                n_outputs,
                n_particles,
                _generator_of(generator, at),
            )
            for at in torch.arange(n).split(size)
        ]
        parts = zip(*(batch.parts for batch in found), strict=True)
        return Completions(*(torch.cat(part) for part in parts))
    with torch.no_grad():
        first = _RowProposal.of_known(model, rows)
        particles = _particles_of(model, regions, first, rows, n_particles // 2, generator)
        chosen = _chosen(particles, n, _N_ENCODED, generator)
        second = _RowProposal.of_completed(model, regions, chosen, particles, n, generator)
        particles = _particles_of(model, regions, second, rows, n_particles, generator)
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


def _generator_of(generator: AnyGenerator, rows: Tensor) -> AnyGenerator:
    return generator.take(rows) if isinstance(generator, RowGenerators) else generator


def _regions_of_rows(regions: Regions, at: Tensor) -> Regions:
    return [None if region is None else region.take(at) for region in regions]


@dataclass(frozen=True)
class _RowProposal:
    """Distribution g_i(l) from which latent vectors are proposed for each row i: a mixture of the
    prior and C Gaussians.

    Attributes:
        prior: Prior of the latent vectors.
        prior_share: Share of the vectors that are drawn from the prior.
        mean, sigma: Means and standard deviations of the Gaussians, for K dimensions of z and F
            factors of the copula. Shape: (n, C, K + F).
    """

    prior: Proposal
    prior_share: float
    mean: Tensor
    sigma: Tensor

    @classmethod
    def of_known(cls, model: GenerativeModel, rows: EncodedTable) -> _RowProposal:
        """Returns the proposal from the encoder's posterior given the known cells; the copula's
        factors f keep their prior."""
        eta, log_tau = model.encoder(rows)
        proposal = Proposal(model.prior, model.decoder.n_factors)
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
        generator: AnyGenerator,
    ) -> _RowProposal:
        """Returns the proposal for the second round, fitted to completions of n rows.

        The `chosen` particles of each row are completed and encoded. The Gaussians of the latent
        vector z are the resulting posteriors, widened. The Gaussians of the copula's factors f are
        centred at the factors of the chosen particles, with the weighted standard deviation of all
        `particles` of the row.
        """
        codes, values = complete(model, regions, chosen, generator)
        everything = torch.ones_like(codes, dtype=torch.bool)
        eta, log_tau = model.encoder(EncodedTable(codes, values, everything))
        proposal = Proposal(model.prior, model.decoder.n_factors)
        n_chosen = len(eta) // n
        weight = torch.softmax(particles.log_weight.view(n, -1), dim=-1)[..., None]
        shape = (n, weight.shape[1], proposal.n_factors)
        factor = proposal.factors(particles.latent).reshape(shape).double()
        mean = (weight * factor).sum(1, keepdim=True)
        spread = (weight * (factor - mean).square()).sum(1, keepdim=True).sqrt()
        spread = spread.clamp(min=_LEAST_FACTOR_SIGMA).to(eta.dtype).expand(-1, n_chosen, -1)
        centre = torch.cat([eta, proposal.factors(chosen.latent)], -1).unflatten(0, (n, n_chosen))
        sigma = (_WIDENED * log_tau.exp()).unflatten(0, (n, n_chosen))
        return cls(proposal, _PRIOR_SHARE, centre, torch.cat([sigma, spread], dim=-1))

    def draw(self, n_particles: int, generator: AnyGenerator) -> tuple[Tensor, Tensor]:
        """Draws S = `n_particles` latent vectors for each row from the proposal g. Returns
        (vectors, log weights log p - log g), with p the prior. Shape: (n, S, K + F), (n, S), for K
        dimensions of z and F factors of the copula."""
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
    rows: EncodedTable,
    n_particles: int,
    generator: AnyGenerator,
) -> Particles:
    """Draws particles of each row, grouped by row; latent vectors include the row's context."""
    latent, log_ratio = (part.flatten(0, 1) for part in proposal.draw(n_particles, generator))
    at = torch.arange(len(rows)).repeat_interleave(n_particles)
    if rows.context is not None:
        d_latent = model.prior.d_latent
        z = join_context(latent[:, :d_latent], rows.context[at])
        latent = torch.cat([z, latent[:, d_latent:]], dim=-1)
    return draw_particles(model, regions, latent, log_ratio, generator, at)


def _chosen(particles: Particles, n: int, n_chosen: int, generator: AnyGenerator) -> Particles:
    """Resamples `n_chosen` particles for each of n rows by their weights, grouped by row."""
    n_particles = len(particles.log_weight) // n
    at = systematic(particles.log_weight.view(n, -1), n_chosen, generator)
    return particles.take((at + n_particles * torch.arange(n)[:, None]).flatten())
