"""Priors: exact densities, draws that have them, and a mixture that finds its components."""

from __future__ import annotations

import torch

from gcvae.generators import generator_for, normal
from gcvae.priors import GaussianMixturePrior, StandardNormalPrior, fit_best_mixture, fit_mixture


def two_clouds(n: int = 4000) -> torch.Tensor:
    z = normal((n, 2), generator_for(0, "z"))
    z[: n // 4] = 0.3 * z[: n // 4] + torch.tensor([4.0, -4.0])
    return z[torch.randperm(n, generator=generator_for(1, "order"))]


def test_a_mixtures_density_is_torchs() -> None:
    prior = fit_mixture(two_clouds(), 3, seed=0)
    components = torch.distributions.MultivariateNormal(prior.mean, scale_tril=prior.factor)
    weights = torch.distributions.Categorical(logits=prior.log_weight)
    reference = torch.distributions.MixtureSameFamily(weights, components)
    z = two_clouds(50).view(5, 10, 2)
    torch.testing.assert_close(prior.log_prob(z), reference.log_prob(z), atol=1e-4, rtol=1e-4)


def test_one_standard_component_is_the_standard_normal() -> None:
    z = two_clouds(20)
    expected = StandardNormalPrior(2).log_prob(z)
    torch.testing.assert_close(GaussianMixturePrior(1, 2).log_prob(z), expected)


def test_draws_have_the_moments_of_what_was_fitted() -> None:
    z = two_clouds()
    drawn = fit_mixture(z, 4, seed=0).sample(40_000, generator_for(2, "draws"))
    torch.testing.assert_close(drawn.mean(0), z.mean(0), atol=0.08, rtol=0.0)
    torch.testing.assert_close(torch.cov(drawn.T), torch.cov(z.T), atol=0.2, rtol=0.0)


def test_held_out_draws_choose_the_number_of_components() -> None:
    z = two_clouds()
    normal_only = z[(z[:, 0] < 2.0)]
    assert len(fit_best_mixture(z[:3000], z[3000:], [1, 2], seed=0).mean) == 2
    few = fit_best_mixture(normal_only[:200], normal_only[200:], [1, 8], seed=0)
    assert len(few.mean) == 1


def test_a_single_draw_has_a_mixture_around_it() -> None:
    z = two_clouds()[:1]
    prior = fit_best_mixture(z, z, [1, 8], seed=0)
    assert torch.isfinite(prior.log_prob(z)).all()
    torch.testing.assert_close(prior.mean[0], z[0])
