"""The closed forms of the paper's models, held to the digits that float64 has."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from gcvae.model.copula import RankOneCopula
from gcvae.numerics.generators import generator_for, normal, uniform
from gcvae.numerics.normal import log_normal_density
from gcvae.paper.principal_direction import log_rank_one_normal

D = 8
SIZES = (2, 3, 2, 4)


def draws(*shape: int, seed: int = 0) -> Tensor:
    return normal(shape, generator_for(seed, "closed forms")).double()


def edges(seed: int) -> list[Tensor]:
    """Normal quantiles of the cumulative masses of each column's levels, both ends included."""
    masses = [draws(size, seed=seed + j).softmax(0) for j, size in enumerate(SIZES)]
    inner = [torch.special.ndtri(mass.cumsum(0)[:-1]) for mass in masses]
    end = torch.tensor([torch.inf], dtype=torch.float64)
    return [torch.cat([-end, quantiles, end]) for quantiles in inner]


def all_cells(quantiles: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Lower and upper ends of every combination of levels. Shape: (prod E, D) twice."""
    every = list(itertools.product(*map(range, SIZES)))
    ends = [
        torch.stack([torch.stack([q[k + up] for q, k in zip(quantiles, at, strict=True)])
                     for at in every])
        for up in (0, 1)
    ]  # fmt: skip
    return ends[0], ends[1]


def test_the_copula_is_the_dense_form_of_its_correlation_to_twelve_digits() -> None:
    """-1/2 log |R| - 1/2 q^T (R^-1 - I) q, with R formed."""
    copula, q = RankOneCopula(draws(D)), draws(D, seed=1)
    R = copula.correlation()
    dense = -0.5 * (torch.logdet(R) + q @ torch.linalg.solve(R, q) - q @ q)
    got = copula.log_density(q, torch.ones(D, dtype=torch.bool))
    assert got.item() == pytest.approx(dense.item(), abs=1e-12, rel=0)


def test_the_vae_roc_is_the_dense_normal_to_twelve_digits() -> None:
    """log N(x; 0, omega I + a a^T), its covariance formed."""
    x, a = draws(D), draws(D, seed=1)
    omega, n = (torch.tensor(number, dtype=torch.float64) for number in (0.3, D))
    covariance = omega * torch.eye(D).double() + torch.outer(a, a)
    dense = torch.distributions.MultivariateNormal(torch.zeros(D).double(), covariance)
    got = log_rank_one_normal(x, a, omega, n)
    assert got.item() == pytest.approx(dense.log_prob(x).item(), abs=1e-12, rel=0)


@pytest.mark.parametrize("strength", [0.3, 1.0, 3.0])
def test_exact_masses_of_all_rows_of_levels_sum_to_one(strength: float) -> None:
    low, high = all_cells(edges(0))
    copula = RankOneCopula(strength * draws(len(SIZES)).expand(len(low), -1))
    none = torch.zeros(low.shape, dtype=torch.bool)
    log_mass = copula.log_mixed(torch.zeros_like(low), low, high, none, ~none)
    assert log_mass.exp().sum().item() == pytest.approx(1.0, abs=1e-10, rel=0)


def test_the_mean_over_jitters_is_the_exact_mass() -> None:
    """E_v [c(u) prod_j p_j] of the continuous extension, within five standard errors."""
    n = 40_000
    low, high = all_cells(edges(5))
    loadings = 0.7 * draws(len(SIZES))
    none = torch.zeros(len(SIZES), dtype=torch.bool)
    start, end = torch.special.ndtr(low), torch.special.ndtr(high)
    for i in range(0, len(low), 7):
        v = uniform((n, len(SIZES)), generator_for(i, "jitters"), torch.float64)
        score = torch.special.ndtri(start[i] + v * (end[i] - start[i]))
        copula = RankOneCopula(loadings.expand(n, -1))
        weight = copula.log_density(score, ~none.expand(n, -1)).exp() * (end[i] - start[i]).prod()
        exact = RankOneCopula(loadings).log_mixed(
            torch.zeros(len(SIZES)).double(), low[i], high[i], none, ~none
        )
        error = weight.std() / n**0.5
        assert abs(weight.mean() - exact.exp()) < 5 * error


def test_gaussian_marginals_under_the_copula_are_the_joint_normal() -> None:
    """The VAE-ROC is the GCVAE of b = a / sqrt(omega) on margins N(0, omega + a^2)."""
    x, a, omega = draws(D), draws(D, seed=1), 0.4
    sigma = (omega + a.square()).sqrt()
    copula = RankOneCopula(a / omega**0.5)
    present = torch.ones(D, dtype=torch.bool)
    log_margins = (log_normal_density(x / sigma) - sigma.log()).sum()
    joint = copula.log_density(x / sigma, present) + log_margins
    noise, n = (torch.tensor(number, dtype=torch.float64) for number in (omega, D))
    direct = log_rank_one_normal(x, a, noise, n)
    assert joint.item() == pytest.approx(direct.item(), abs=1e-12, rel=0)
