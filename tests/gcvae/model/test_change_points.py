"""Densities with change points: proper, drawn as they are scored, cut down as they are drawn."""

from __future__ import annotations

import torch
from scipy.stats import kstest

from gcvae.model.change_points import PiecewiseMarginal
from gcvae.model.number_marginals import Marginal
from gcvae.numerics.generators import generator_for, normal, uniform

GRID = torch.linspace(-80.0, 80.0, 200_001, dtype=torch.float64)


def densities(n: int, strength: float = 2.0) -> PiecewiseMarginal:
    """n densities of three components and four bins."""
    generator = generator_for(3, "outputs")
    outputs = normal((n, 3, 3), generator).double()
    logits = strength * normal((n, 4), generator).double()
    return PiecewiseMarginal(
        Marginal(outputs), logits, torch.tensor([-0.7, 0.1, 0.9], dtype=torch.float64)
    )


def repeated(found: PiecewiseMarginal, at: int, n: int) -> PiecewiseMarginal:
    return found[torch.full((n,), at)]


def test_a_density_has_mass_one_and_its_cdf_as_integral() -> None:
    found = densities(5)
    for at in range(5):
        density = repeated(found, at, len(GRID)).log_prob(GRID).exp()
        integral = torch.cumulative_trapezoid(density, GRID)
        assert abs(float(integral[-1]) - 1.0) < 1e-3  # the steps fall between nodes of the grid
        cdf = found[at : at + 1][:, None].cdf(GRID)[0]
        torch.testing.assert_close(cdf[1:] - cdf[0], integral, atol=1e-3, rtol=0.0)


def test_bins_have_the_masses_that_draws_fall_into() -> None:
    found = densities(3)
    for at in range(3):
        noise = uniform((20_000,), generator_for(at, "noise"), torch.float64)
        drawn = repeated(found, at, 20_000).sample(noise)
        cdf = found[at : at + 1][:, None].cdf
        found_cdf = lambda v, cdf=cdf: cdf(torch.from_numpy(v))[0].numpy()  # noqa: E731
        assert kstest(drawn.numpy(), found_cdf).pvalue > 1e-3
        own = torch.bincount(torch.searchsorted(found.points, drawn), minlength=4) / 20_000
        torch.testing.assert_close(own.double(), found.log_bins[at].exp(), atol=0.02, rtol=0.0)


def test_intervals_have_their_masses_and_points_their_densities() -> None:
    found = densities(4)
    lower = torch.tensor([[-torch.inf, -0.3, 0.4]]).double().expand(4, -1)
    upper = torch.tensor([[-0.9, 0.2, 0.4]]).double().expand(4, -1)
    slope = torch.zeros_like(lower)
    within = found.within(lower, upper, slope)
    cdf = found[:, None].cdf(torch.tensor([-0.9, -0.3, 0.2]).double())
    masses = torch.stack([cdf[:, 0], cdf[:, 2] - cdf[:, 1]], -1).sum(-1)
    density = found.log_prob(torch.full((4,), 0.4).double()).exp()
    torch.testing.assert_close(within.log_prob.exp(), masses + density, atol=1e-9, rtol=0.0)
    noise = uniform((4,), generator_for(0, "noise"), torch.float64)
    drawn, interval = within.sample(noise)
    low, high = (ends.gather(-1, interval[:, None])[:, 0] for ends in (lower, upper))
    assert ((low <= drawn) & (drawn <= high)).all()


def test_mass_far_in_the_upper_tail_keeps_its_digits() -> None:
    outputs = torch.tensor([[[0.0], [0.0], [0.0]]], dtype=torch.float64)
    points = torch.tensor([10.0, 10.5], dtype=torch.float64)
    found = PiecewiseMarginal(Marginal(outputs), torch.tensor([[-40.0, 0.0, 0.0]]).double(), points)
    expected = torch.special.log_ndtr(torch.tensor([-10.0, -10.5]).double()).exp()
    ratio = found.log_bins[0, 2].exp() / found.log_bins[0, 1].exp()
    torch.testing.assert_close(ratio, expected[1] / (expected[0] - expected[1]), rtol=1e-6, atol=0)
