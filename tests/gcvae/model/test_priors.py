"""Priors: exact densities, draws that have them, and a mixture that finds its components."""

from __future__ import annotations

import pytest
import torch

from gcvae.model.priors import (
    AutoregressiveMixturePrior,
    GaussianMixturePrior,
    StandardNormalPrior,
    fit_best_mixture,
    fit_mixture,
)
from gcvae.numerics.generators import generator_for, normal


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


def bent(d_latent: int) -> AutoregressiveMixturePrior:
    """With weights large enough for later dimensions to depend on earlier ones, in float64."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        prior = AutoregressiveMixturePrior(d_latent, n_components=3, d_group=6).double()
    with torch.no_grad():
        prior.enter.weight.mul_(3.0)
        prior.leave.weight.mul_(10.0)
    return prior


@pytest.mark.parametrize("d_latent", [1, 2])
def test_the_autoregressive_density_integrates_to_one(d_latent: int) -> None:
    axis = torch.linspace(-14.0, 14.0, 701, dtype=torch.float64)
    z = torch.cartesian_prod(*[axis] * d_latent).view(-1, d_latent)
    with torch.no_grad():
        mass = bent(d_latent).log_prob(z).exp().sum() * float(axis[1] - axis[0]) ** d_latent
    assert mass.item() == pytest.approx(1.0, abs=1e-4)


def test_each_dimension_depends_on_the_earlier_ones_alone() -> None:
    prior = bent(4)
    z = normal((5, 4), generator_for(0, "z")).double()
    for k in range(4):
        later = z.clone()
        later[:, k:] += 1.0
        outputs = [prior.mixtures(rows)[1] for rows in (z, later)]
        torch.testing.assert_close(outputs[0][:, : k + 1], outputs[1][:, : k + 1])
        if k < 3:
            assert (outputs[0][:, k + 1 :] - outputs[1][:, k + 1 :]).abs().max() > 1e-3


def test_autoregressive_draws_have_the_autoregressive_density() -> None:
    """Shares of draws in the cells of a grid are the density's masses there."""
    prior, n = bent(2), 100_000
    axis = torch.linspace(-12.0, 12.0, 481, dtype=torch.float64)
    with torch.no_grad():
        drawn = prior.sample(n, generator_for(1, "draws"))
        fine = torch.cartesian_prod(axis, axis)
        mass = prior.log_prob(fine).exp() * float(axis[1] - axis[0]) ** 2
    edges = [torch.tensor([-20.0, -1.0, 0.0, 0.7, 20.0], dtype=torch.float64)] * 2
    expected = torch.histogramdd(fine, edges, weight=mass).hist
    shares = torch.histogramdd(drawn.double(), edges).hist / n
    assert (shares - expected).abs().max() < 0.03 * expected.max() + 0.01
    assert expected.sum().item() == pytest.approx(1.0, abs=1e-3)


def test_one_pass_and_dimension_by_dimension_are_the_same_network() -> None:
    prior = bent(5)
    with torch.no_grad():
        prior.leave.bias.view(5, 3, -1)[:, 2] = -20.0  # to the least deviation: draws are means
        drawn = prior.sample(50, generator_for(1, "draws"))
        means = prior.mixtures(drawn)[1]
    nearest = (means - drawn[..., None]).abs().amin(-1)
    assert nearest.max() < 0.01


def test_a_single_draw_has_a_mixture_around_it() -> None:
    z = two_clouds()[:1]
    prior = fit_best_mixture(z, z, [1, 8], seed=0)
    assert torch.isfinite(prior.log_prob(z)).all()
    torch.testing.assert_close(prior.mean[0], z[0])


def test_more_components_are_found_where_a_few_are_no_better_than_one() -> None:
    """Nine clouds on a grid: two components say no more of them than one, nine say all."""
    places = torch.cartesian_prod(*[torch.tensor([-3.0, 0.0, 3.0])] * 2)
    eps = 0.1 * normal((4500, 2), generator_for(0, "eps"))
    z = places.repeat(500, 1) + eps
    prior = fit_best_mixture(z[:4000], z[4000:], [1, 2, 9, 18], seed=0)
    assert len(prior.mean) >= 9


@pytest.mark.parametrize("places", [[False, True, True], [True, False, True], [False] * 3])
def test_a_widened_prior_is_standard_normal_elsewhere(places: list[bool]) -> None:
    used = torch.tensor(places)
    z = normal((500, int(used.sum())), generator_for(3, "z")) * 2.0 + 1.0
    wide = fit_mixture(z, 1, seed=0).widened(used)
    point = torch.tensor([[0.3, -0.4, 1.2], [2.0, 0.0, -1.0]])
    rest = StandardNormalPrior(int((~used).sum())).log_prob(point[:, ~used])
    expected = fit_mixture(z, 1, seed=0).log_prob(point[:, used]) + rest
    torch.testing.assert_close(wide.log_prob(point), expected)
    drawn = wide.sample(20_000, generator_for(1, "draws"))
    assert float(drawn[:, ~used].mean() if len(rest) and (~used).any() else 0.0) == pytest.approx(
        0.0, abs=0.03
    )
    assert drawn[:, used].mean(0).tolist() == pytest.approx([1.0] * int(used.sum()), abs=0.15)
