"""p(x | x in a region): generates rows under a condition, from its posterior over the latent
vector.

A pilot locates the latent vectors of such rows. Its first particles come from the prior; the
resulting rows are encoded, and a Gaussian mixture is fitted to draws from their posteriors, as the
prior's is to the posteriors of the training rows. The next particles come from that mixture and,
for a share, from the prior, so that the weights are bounded however poor the fit is.

Source: adaptive importance sampling with a defensive mixture; Cappe et al. 2004, Hesterberg 1995.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import ConditionError, Problem
from gcvae.model.decoders import GenerativeModel
from gcvae.model.priors import GaussianMixturePrior, Prior, fit_best_mixture
from gcvae.numerics.generators import AnyGenerator, generator_for, normal
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
"""Least probability under the model, for each column that a condition names; conditions below are
refused."""
LEAST_EFFECTIVE_SHARE = 1e-3
"""Least effective share of the pilot's particles; conditions below are refused."""
PILOT_PARTICLES = 4096
_MOST_ROUNDS = 4
_ENOUGH = 0.2
"""Effective share of its particles at which the pilot ends."""
MOST_PARTICLES_PER_ROW = 16
_PRIOR_SHARE = 0.1
_FITTED_ROWS = 2048
_HELD_OUT = 512
_COMPONENTS = [1, 8]
_WIDENED = 1.1
"""Factor by which the fitted deviations are widened: a proposal needs heavier tails than its
target."""


@dataclass(frozen=True)
class Proposal:
    """Proposal g(l): the prior of z and f, later with a mixture fitted to both."""

    prior: Prior
    n_factors: int
    fitted: GaussianMixturePrior | None = None

    def draw(self, n: int, generator: AnyGenerator) -> tuple[Tensor, Tensor]:
        """Draws n latent vectors, with log p - log g of each. Shape: (n, K + F), (n,)."""
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

    def factors(self, latent: Tensor) -> Tensor:
        """Returns the factors f of latent vectors [z, context, f]. Shape: (N, K + 2 C + F) -> (N,
        F)."""
        return latent[:, latent.shape[-1] - self.n_factors :]

    def log_prior(self, latent: Tensor) -> Tensor:
        """Returns log p(z) + log N(f; 0, I). Shape: (..., K + F) -> (...), float64."""
        d_latent = self.prior.d_latent
        log_factor = log_normal_density(latent[..., d_latent:].double()).sum(-1)
        return self.prior.log_prob(latent[..., :d_latent]).double() + log_factor


@dataclass(frozen=True)
class ConditionedModel:
    """Model whose rows lie in a region.

    Attributes:
        log_probability: Log probability of the condition under the model, or log density if the
            condition names numbers that are not rounded.
        effective_share: Effective sample size divided by the number of particles.
    """

    model: GenerativeModel
    regions: Regions
    proposal: Proposal
    log_probability: float
    effective_share: float

    @classmethod
    def fit(
        cls,
        model: GenerativeModel,
        regions: Regions,
        seed: int,
        *,
        reveals_probability: bool = True,
        n_columns: int | None = None,
        expected: str | None = None,
    ) -> ConditionedModel:
        """Runs the pilot.

        Args:
            model: Trained model.
            regions: Regions of the condition.
            seed: Seed of the pilot.
            reveals_probability: Whether the message of a refusal contains the probability.
            n_columns: Number of columns that the condition names; by default those with a region.
            expected: What a refusal says is possible.

        Raises:
            ConditionError: The condition is too improbable under the model.
        """
        generator = generator_for(seed, "pilot")
        proposal = Proposal(model.prior, model.decoder.n_factors)
        rounds: list[ConditionedModel] = []
        with torch.no_grad():
            for number in range(_MOST_ROUNDS):
                latent, log_ratio = proposal.draw(PILOT_PARTICLES, generator)
                particles = draw_particles(model, regions, latent, log_ratio, generator)
                estimate, share = _pilot_estimate(particles)
                rounds.append(cls(model, regions, proposal, estimate, share))
                if share >= _ENOUGH or math.isinf(estimate) or number == _MOST_ROUNDS - 1:
                    break
                fitted = _fitted_to(model, regions, particles, generator, seed)
                proposal = replace(proposal, fitted=fitted)
        best = max(rounds, key=lambda one: one.effective_share)
        if n_columns is None:
            n_columns = sum(region is not None for region in regions)
        best._refuse_the_impossible(reveals_probability, n_columns, expected)
        return best

    @property
    def has_density(self) -> bool:
        """Whether the condition's probability is a density."""
        return any(region is not None and region.has_density for region in self.regions)

    def particles_for(self, rows: int) -> int:
        """Returns the number of particles for `rows` rows, which have that effective sample size,
        up to a limit.
        """
        needed = rows / self.effective_share
        whole = math.ceil(needed / PILOT_PARTICLES) * PILOT_PARTICLES
        return min(whole, MOST_PARTICLES_PER_ROW * max(rows, PILOT_PARTICLES))

    def effective_rows(self, rows: int) -> float:
        """Returns the effective sample size of `rows` rows with respect to the condition."""
        return min(float(rows), self.particles_for(rows) * self.effective_share)

    def draw(self, rows: int, generator: AnyGenerator) -> tuple[Tensor, Tensor]:
        """Draws (codes, values) of rows within the region. Shape: (rows, D) twice."""
        with torch.no_grad():
            parts = []
            for _ in range(self.particles_for(rows) // PILOT_PARTICLES):
                latent, log_ratio = self.proposal.draw(PILOT_PARTICLES, generator)
                parts.append(draw_particles(self.model, self.regions, latent, log_ratio, generator))
            particles = Particles.joined(parts)
            chosen = systematic(particles.log_weight[None], rows, generator)[0]
            return complete(self.model, self.regions, particles.take(chosen), generator)

    def _refuse_the_impossible(
        self, reveals_probability: bool, n_columns: int, expected: str | None
    ) -> None:
        """Refuses a condition of too small a probability or effective share."""
        least = n_columns * math.log(LEAST_PROBABILITY)
        probability = f"{math.exp(self.log_probability):.3g}"
        revealed = f"of {probability}, " if reveals_probability else ""
        if not self.has_density and self.log_probability < least:
            message = (
                f"the model gives the condition a probability {revealed}"
                f"under the least of {math.exp(least):.0e} (a millionth for each column that it "
                "names)"
            )
            raise ConditionError(Problem(message, expected=expected))
        if self.effective_share < LEAST_EFFECTIVE_SHARE:
            estimated = (
                f", whose probability the model estimates as {probability}" * reveals_probability
            )
            raise ConditionError(
                f"the rows would all be alike: of {PILOT_PARTICLES} particles "
                f"{self.effective_share * PILOT_PARTICLES:.1f} count under the condition{estimated}"
            )


def _pilot_estimate(particles: Particles) -> tuple[float, float]:
    """Returns (log of the estimated probability, effective share)."""
    share = float(effective_size(particles.log_weight)) / len(particles.log_weight)
    return float(log_mean(particles.log_weight)), share


def _fitted_to(
    model: GenerativeModel,
    regions: Regions,
    particles: Particles,
    generator: AnyGenerator,
    seed: int,
) -> GaussianMixturePrior:
    """Fits a mixture to the posteriors of the rows that weighted particles generate."""
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
