"""Generates rows under a condition, from the posterior of the latent vector given the condition.

    p(x | x in a region)

A particle is a latent vector with a partial row and an importance weight. A pilot run finds latent
vectors that lead to rows in the region:

1. Particles are drawn from the prior of the latent vector. Some of them, chosen by weight, are
   completed to rows in the region.
2. The encoder gives the posterior of the latent vector for each of these rows. A Gaussian mixture
   is fitted to draws from the posteriors.
3. New particles are drawn from the mixture, but a tenth of them from the prior. This share keeps
   the weights bounded, even if the mixture fits poorly.

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
"""Minimum probability of a condition on one column; for n columns, its n-th power. Less probable
conditions raise an error."""
LEAST_EFFECTIVE_SHARE = 1e-3
"""Minimum effective sample size of the pilot's particles, as a share of their number. Conditions
with a smaller share raise an error."""
PILOT_PARTICLES = 4096
_MOST_ROUNDS = 4
_ENOUGH = 0.2
"""Effective sample size, as a share of the particles, at which the pilot ends."""
MOST_PARTICLES_PER_ROW = 16
_PRIOR_SHARE = 0.1
_FITTED_ROWS = 2048
_HELD_OUT = 512
_COMPONENTS = [1, 8]
_WIDENED = 1.1
"""Factor by which fitted standard deviations are widened: a proposal needs heavier tails than its
target."""


@dataclass(frozen=True)
class Proposal:
    """Proposal distribution g(l) for importance sampling of latent vectors l = [z, f] under a
    condition: z is the model's latent vector, f are the latent factors of its Gaussian copula.

    Attributes:
        prior: Prior p(z); the prior of f is standard normal.
        n_factors: Number F of the copula's factors.
        fitted: Mixture fitted to z and f, from which most vectors are drawn; None if all are drawn
            from the prior.
    """

    prior: Prior
    n_factors: int
    fitted: GaussianMixturePrior | None = None

    def draw(self, n: int, generator: AnyGenerator) -> tuple[Tensor, Tensor]:
        """Draws n latent vectors from the proposal g. Returns (vectors, log p - log g of each),
        with p the prior. Shape: (n, K + F), (n,), for K dimensions of z and F factors."""
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
        """Returns the copula's factors f of latent vectors [z, context, f].

        The context has a code and a value for each of C context columns. Shape: (N, K + 2 C + F) ->
        (N, F), for K dimensions of z and F factors.
        """
        return latent[:, latent.shape[-1] - self.n_factors :]

    def log_prior(self, latent: Tensor) -> Tensor:
        """Returns log p(z) + log N(f; 0, I) of latent vectors [z, f], in float64.

        Shape: (..., K + F) -> (...), with K dimensions of z and F of the copula's factors f.
        """
        d_latent = self.prior.d_latent
        log_factor = log_normal_density(latent[..., d_latent:].double()).sum(-1)
        return self.prior.log_prob(latent[..., :d_latent]).double() + log_factor


@dataclass(frozen=True)
class ConditionedModel:
    """Generates rows of a model that satisfy a condition, by importance sampling of latent vectors.

    Attributes:
        model: Trained model.
        regions: The set of possible cells of each column; None for an unconditioned column.
        proposal: Distribution from which latent vectors are drawn.
        log_probability: Log probability of the condition under the model, or log density if the
            condition names numbers that are not rounded.
        effective_share: Effective sample size divided by the number of weighted draws.
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
        """Fits the proposal distribution of latent vectors in a pilot run of importance sampling.

        Args:
            regions: The set of possible cells of each column; None for an unconditioned column.
            reveals_probability: Whether an error message may contain the probability.
            n_columns: Number of columns that the condition names; None counts those with a region.
            expected: Statement of what is possible, for error messages; None omits it.

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
        """Whether the condition names unrounded numbers; its probability is then a density."""
        return any(region is not None and region.has_density for region in self.regions)

    def particles_for(self, rows: int) -> int:
        """Returns the number of particles (weighted draws) from which `rows` rows are resampled:
        enough for an effective sample size of `rows`, up to a limit."""
        needed = rows / self.effective_share
        whole = math.ceil(needed / PILOT_PARTICLES) * PILOT_PARTICLES
        return min(whole, MOST_PARTICLES_PER_ROW * max(rows, PILOT_PARTICLES))

    def effective_rows(self, rows: int) -> float:
        """Returns the effective sample size of `rows` generated rows.

        It is the number of independent rows that would give the same precision.
        """
        return min(float(rows), self.particles_for(rows) * self.effective_share)

    def draw(self, rows: int, generator: AnyGenerator) -> tuple[Tensor, Tensor]:
        """Draws encoded rows that satisfy the condition. Returns (integer codes, values of
        numbers). Shape: (rows, D) each, for D columns."""
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
        """Raises a ConditionError if the probability or the effective share is too small."""
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
    share = float(effective_size(particles.log_weight)) / len(particles.log_weight)
    return float(log_mean(particles.log_weight)), share


def _fitted_to(
    model: GenerativeModel,
    regions: Regions,
    particles: Particles,
    generator: AnyGenerator,
    seed: int,
) -> GaussianMixturePrior:
    """Fits a Gaussian mixture to the posteriors of the rows that weighted particles generate."""
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
