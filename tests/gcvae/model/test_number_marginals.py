"""Laws of the marginals of numbers."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import kstest
from torch import Tensor

from gcvae.model.number_marginals import Marginal
from gcvae.numerics.generators import generator_for, normal, uniform

GRID = torch.linspace(-400.0, 400.0, 160_001, dtype=torch.float64)

pytestmark = pytest.mark.parametrize("n_components", [1, 3])


def some(n_components: int, n: int = 4) -> Marginal:
    """Marginals with means and deviations about one, in float64."""
    outputs = normal((n, 3, n_components), generator_for(3, "outputs")).double()
    return Marginal(outputs * torch.tensor([[1.0], [1.0], [0.4]]))


def one(n_components: int, n: int) -> Marginal:
    """One marginal n times."""
    return some(n_components)[torch.zeros(n, dtype=torch.long)]


def noise_of(n: int) -> Tensor:
    return uniform((n,), generator_for(0, "noise"), torch.float64)


def test_the_density_integrates_to_one(n_components: int) -> None:
    density = some(n_components)[:, None].log_prob(GRID).exp()
    torch.testing.assert_close(
        torch.trapezoid(density, GRID), torch.ones(4).double(), atol=1e-5, rtol=0
    )


def test_the_cdf_is_the_integral_of_the_density(n_components: int) -> None:
    marginal = some(n_components)[:, None]
    density = marginal.log_prob(GRID).exp()
    summed = torch.cumulative_trapezoid(density, GRID)
    torch.testing.assert_close(summed, marginal.cdf(GRID)[:, 1:], atol=1e-4, rtol=0)


def test_the_quantile_of_the_cdf_is_the_number(n_components: int) -> None:
    values = torch.tensor([-2.0, -0.3, 0.1, 2.5], dtype=torch.float64)
    marginal = some(n_components)
    score = torch.special.ndtri(marginal.cdf(values))
    torch.testing.assert_close(marginal.quantile(score), values, atol=1e-7, rtol=0)


def test_the_tails_are_those_of_the_cdf_and_the_score(n_components: int) -> None:
    values = torch.tensor([-2.0, -0.3, 0.1, 2.5], dtype=torch.float64)
    marginal = some(n_components)
    below, above = marginal.at(values).log_tails
    torch.testing.assert_close(below.exp(), marginal.cdf(values))
    torch.testing.assert_close(below.exp() + above.exp(), torch.ones(4).double())
    score = marginal.at(values).score
    if score is not None:
        torch.testing.assert_close(score, torch.special.ndtri(marginal.cdf(values)))


def test_both_tails_keep_their_digits_far_out(n_components: int) -> None:
    far = torch.tensor([-60.0, 60.0, -60.0, 60.0], dtype=torch.float64)
    below, above = some(n_components).at(far).log_tails
    nearer, other = torch.minimum(below, above), torch.maximum(below, above)
    assert bool((nearer < -10.0).all() and torch.isfinite(nearer).all())
    assert bool((other > -1e-3).all())


def test_draws_have_the_cdf(n_components: int) -> None:
    marginal = one(n_components, 20_000)
    drawn = marginal.sample(noise_of(20_000))
    assert kstest(marginal.cdf(drawn).numpy(), "uniform").pvalue > 1e-3


def test_an_interval_and_what_lies_beside_it_have_all_mass(n_components: int) -> None:
    ends = torch.tensor([[-1.0, 0.2], [0.0, 1e-6], [2.0, 9.0], [-40.0, 40.0]]).double()
    masses = some(n_components).log_masses(ends)
    total = torch.stack([mass.exp() for mass in masses]).sum(0)
    torch.testing.assert_close(total, torch.ones(4).double())
    assert bool((masses[0] > -30.0).all())


@pytest.mark.parametrize(("low", "high"), [(-0.4, 0.9), (1.5, 1.6), (6.0, 30.0), (-90.0, -3.0)])
def test_draws_inside_an_interval_have_the_truncated_cdf(
    n_components: int, low: float, high: float
) -> None:
    marginal = one(n_components, 20_000)
    ends = torch.full((20_000,), low).double(), torch.full((20_000,), high).double()
    log_prob, drawn = marginal.draw_inside(*ends, noise_of(20_000))
    mass = marginal.log_masses(torch.stack(ends, -1))[0]
    torch.testing.assert_close(log_prob, mass)
    assert bool(((drawn >= low) & (drawn <= high)).all())
    # The share of the interval below each draw: exact in either tail.
    below = marginal.log_masses(torch.stack([ends[0], drawn.clamp(min=low + 1e-12)], -1))[0]
    assert kstest((below - mass).exp().numpy(), "uniform").pvalue > 1e-3


def test_draws_within_several_intervals_are_in_each_by_its_mass(n_components: int) -> None:
    n = 40_000
    marginal = one(n_components, n)
    lower, upper = torch.tensor([[-torch.inf, 0.3, 2.0]]).double(), torch.tensor([[-1.0, 0.5, 7.0]])
    within = marginal.within(lower, upper.double(), torch.zeros_like(lower))
    masses = torch.stack(
        [
            marginal[:1].log_masses(torch.stack([lower[:, i], upper[:, i].double()], -1))[0]
            for i in range(3)
        ]
    )[:, 0]
    torch.testing.assert_close(within.log_prob, masses.logsumexp(0).expand(n))
    drawn, interval = within.sample(noise_of(n))
    assert bool(((drawn >= lower[0, interval]) & (drawn <= upper[0, interval])).all())
    found = torch.bincount(interval, minlength=3) / n
    torch.testing.assert_close(found.double(), torch.softmax(masses, 0), atol=0.01, rtol=0)


def test_a_point_counts_with_its_density(n_components: int) -> None:
    marginal = some(n_components)
    at = torch.tensor([[0.7]], dtype=torch.float64)
    within = marginal.within(at, at, torch.full_like(at, 0.25))
    expected = marginal.log_prob(at[:, 0]) + 0.25
    torch.testing.assert_close(within.log_prob, expected)
    assert bool((within.sample(noise_of(4))[0] - 0.7).abs().max() < 1e-9)
