"""Mixtures fitted by expectation maximisation, beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture as Reference

from gcvae.numerics.gaussian_mixtures import GaussianMixture, fit_gaussian_mixture
from gcvae.numerics.generators import generator_for, normal


def clouds(n: int = 3000) -> torch.Tensor:
    """Three of them, bent and of different sizes."""
    x = normal((n, 3), generator_for(0, "clouds")).double()
    x[:, 1] += x[:, 0].square()
    x[: n // 2] = 0.2 * x[: n // 2] + torch.tensor([4.0, -4.0, 1.0])
    x[: n // 8, 2] -= 9.0
    return x


def log_prob(mixture: GaussianMixture, x: torch.Tensor) -> torch.Tensor:
    components = torch.distributions.MultivariateNormal(mixture.mean, scale_tril=mixture.factor)
    return (components.log_prob(x[:, None]) + mixture.weight.log()).logsumexp(-1)


@pytest.mark.parametrize("n_components", [1, 4, 12])
def test_a_mixture_is_as_likely_as_scikit_learns(n_components: int) -> None:
    x, unseen = clouds()[::2], clouds()[1::2]
    reference = Reference(
        n_components, init_params="k-means++", max_iter=60, reg_covar=1e-4, random_state=0
    ).fit(x.numpy())
    found = fit_gaussian_mixture(x, n_components, generator_for(0, "fit"))
    assert float(found.weight.sum()) == pytest.approx(1.0)
    for points in (x, unseen):
        mean = float(log_prob(found, points).mean())
        assert mean > reference.score(points.numpy()) - 0.06


def test_one_component_has_the_points_mean_and_covariance() -> None:
    x = clouds()
    found = fit_gaussian_mixture(x, 1, generator_for(0, "fit"))
    covariance = np.cov(x.numpy().T, bias=True) + 1e-4 * np.eye(3)
    np.testing.assert_allclose(found.mean[0], x.mean(0))
    np.testing.assert_allclose(found.factor[0] @ found.factor[0].T, covariance, atol=1e-9)


@pytest.mark.parametrize(
    "x", [torch.ones(60, 2), torch.ones(1, 2), torch.tensor([[0.0], [0.0], [1.0]])]
)
def test_points_on_top_of_each_other_have_a_mixture(x: torch.Tensor) -> None:
    found = fit_gaussian_mixture(x, min(len(x), 3), generator_for(0, "fit"))
    assert bool(torch.isfinite(log_prob(found, x.double())).all())


def test_the_seed_decides() -> None:
    first, again = (fit_gaussian_mixture(clouds(), 5, generator_for(1, "fit")) for _ in range(2))
    other = fit_gaussian_mixture(clouds(), 5, generator_for(2, "fit"))
    assert torch.equal(first.mean, again.mean)
    assert not torch.equal(first.mean, other.mean)
