"""p(x | x in a region): rows of a model under a condition, by its posterior over the latent.

A pilot learns where the latents of such rows lie. Its first particles come from the prior; the rows
that they become are encoded, and a Gaussian mixture is fitted to draws of their posteriors, as the
prior's is to the posteriors of the training rows. The next particles come from that mixture, with
a share from the prior, so that no weight is out of bounds whatever the fit is like.

Source: adaptive importance sampling with a defensive mixture; Cappe et al. 2004, Hesterberg 1995.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import ConditionError
from gcvae.model.decoders import GenerativeModel
from gcvae.model.priors import GaussianMixturePrior, Prior, fit_best_mixture
from gcvae.numerics.generators import generator_for, normal
from gcvae.numerics.normal import log_normal_density
from gcvae.sampling.particles import (
    Particles,
    complete,
    draw_particles,
    effective_size,
    log_mean,
    systematic,
)
from gcvae.sampling.regions import Regions

LEAST_PROBABILITY = 1e-6
"""A condition is refused if the model gives it less than this for each column that it names."""
LEAST_EFFECTIVE_SHARE = 1e-3
"""A condition is refused if fewer of the pilot's particles count."""
PILOT_PARTICLES = 4096
_MOST_ROUNDS = 4
_ENOUGH = 0.2
"""The pilot ends once so large a share of its particles counts."""
MOST_PARTICLES_PER_ROW = 16
_PRIOR_SHARE = 0.1
_FITTED_ROWS = 2048
_HELD_OUT = 512
_COMPONENTS = [1, 8]
_WIDENED = 1.1
"""The fitted deviations are taken a little wider: a proposal must not end before its target."""


@dataclass(frozen=True)
class Proposal:
    """g(l): the prior of z and f, and, once there is one, a mixture fitted to both."""

    prior: Prior
    n_factors: int
    fitted: GaussianMixturePrior | None = None

    def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n latents and log p - log g of each. Shape: (n, K + F), (n,)."""
        n_prior = n if self.fitted is None else math.ceil(_PRIOR_SHARE * n)
        z = self.prior.sample(n_prior, generator)
        latent = torch.cat([z, normal((n_prior, self.n_factors), generator).to(z.dtype)], dim=-1)
        if self.fitted is None:
            return latent, torch.zeros(n, dtype=torch.float64)
        latent = torch.cat([latent, self.fitted.sample(n - n_prior, generator).to(z.dtype)])
        log_prior = self.log_prior(latent)
        log_parts = (
            math.log(_PRIOR_SHARE) + log_prior,
            math.log1p(-_PRIOR_SHARE) + self.fitted.log_prob(latent).double(),
        )
        return latent, log_prior - torch.logaddexp(*log_parts)

    def log_prior(self, latent: Tensor) -> Tensor:
        """log p(z) + log N(f; 0, I). Shape: (..., K + F) -> (...), float64."""
        d_latent = self.prior.d_latent
        log_factor = log_normal_density(latent[..., d_latent:].double()).sum(-1)
        return self.prior.log_prob(latent[..., :d_latent]).double() + log_factor


@dataclass(frozen=True)
class ConditionedModel:
    """A model whose rows lie in a region.

    Attributes:
        log_probability: Of the condition under the model; of its density, where it names numbers
            that are not rounded.
        effective_share: Share of the particles that count: effective size by number.
    """

    model: GenerativeModel
    regions: Regions
    proposal: Proposal
    log_probability: float
    effective_share: float

    @classmethod
    def fit(
        cls, model: GenerativeModel, regions: Regions, seed: int, *, is_told: bool = True
    ) -> ConditionedModel:
        """Runs the pilot.

        Args:
            model: Trained.
            regions: Of the condition.
            seed: Of the pilot.
            is_told: Whether a refusal names the probability.

        Raises:
            ConditionError: The model gives the condition too small a probability.
        """
        generator = generator_for(seed, "pilot")
        proposal = Proposal(model.prior, model.decoder.n_factors)
        rounds: list[ConditionedModel] = []
        with torch.no_grad():
            for number in range(_MOST_ROUNDS):
                latent, log_ratio = proposal.draw(PILOT_PARTICLES, generator)
                particles = draw_particles(model, regions, latent, log_ratio, generator)
                estimate, share = _judged(particles)
                rounds.append(cls(model, regions, proposal, estimate, share))
                if share >= _ENOUGH or math.isinf(estimate) or number == _MOST_ROUNDS - 1:
                    break
                fitted = _fitted_to(model, regions, particles, generator, seed)
                proposal = replace(proposal, fitted=fitted)
        best = max(rounds, key=lambda one: one.effective_share)
        best._refuse_the_impossible(is_told)
        return best

    @property
    def has_density(self) -> bool:
        """True where the condition's probability is a density."""
        return any(region is not None and region.has_density for region in self.regions)

    def particles_for(self, rows: int) -> int:
        """How many particles so many rows are chosen from: so many that as many count, or most."""
        wanted = rows / self.effective_share
        whole = math.ceil(wanted / PILOT_PARTICLES) * PILOT_PARTICLES
        return min(whole, MOST_PARTICLES_PER_ROW * max(rows, PILOT_PARTICLES))

    def effective_rows(self, rows: int) -> float:
        """How many independent rows so many rows are worth, as far as the condition goes."""
        return min(float(rows), self.particles_for(rows) * self.effective_share)

    def draw(self, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(codes, values) of rows within the region. Shape: (rows, D) twice."""
        with torch.no_grad():
            parts = []
            for _ in range(self.particles_for(rows) // PILOT_PARTICLES):
                latent, log_ratio = self.proposal.draw(PILOT_PARTICLES, generator)
                parts.append(draw_particles(self.model, self.regions, latent, log_ratio, generator))
            particles = Particles.joined(parts)
            chosen = systematic(particles.log_weight[None], rows, generator)[0]
            return complete(self.model, self.regions, particles.take(chosen), generator)

    def _refuse_the_impossible(self, is_told: bool) -> None:
        n_columns = sum(region is not None for region in self.regions)
        least = n_columns * math.log(LEAST_PROBABILITY)
        probability = f"{math.exp(self.log_probability):.3g}"
        if not self.has_density and self.log_probability < least:
            raise ConditionError(
                f"the model gives the condition a probability {f'of {probability}, ' * is_told}"
                f"under the least of {math.exp(least):.0e} (a millionth for each column that it "
                "names)"
            )
        if self.effective_share < LEAST_EFFECTIVE_SHARE:
            estimated = f", whose probability the model estimates as {probability}" * is_told
            raise ConditionError(
                f"the rows would all be alike: of {PILOT_PARTICLES} particles "
                f"{self.effective_share * PILOT_PARTICLES:.1f} count under the condition{estimated}"
            )


def _judged(particles: Particles) -> tuple[float, float]:
    """(log of the estimated probability, effective share)."""
    share = float(effective_size(particles.log_weight)) / len(particles.log_weight)
    return float(log_mean(particles.log_weight)), share


def _fitted_to(
    model: GenerativeModel,
    regions: Regions,
    particles: Particles,
    generator: torch.Generator,
    seed: int,
) -> GaussianMixturePrior:
    """The mixture of the latents that the rows of weighted particles may have."""
    chosen = systematic(particles.log_weight[None], _FITTED_ROWS, generator)[0]
    kept = particles.take(chosen)
    codes, values = complete(model, regions, kept, generator)
    rows = EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool))
    eta, log_tau = model.encoder(rows)
    z = eta + log_tau.exp() * normal(tuple(eta.shape), generator).to(eta.dtype)
    factor = kept.latent[:, z.shape[-1] :]
    latent = torch.cat([z, factor], dim=-1)
    fitted = fit_best_mixture(latent[_HELD_OUT:], latent[:_HELD_OUT], _COMPONENTS, seed)
    fitted.factor.mul_(_WIDENED)
    return fitted.to(latent.dtype)
