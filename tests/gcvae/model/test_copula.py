"""Laws of the Gaussian copula, in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from gcvae.model.copula import QuadratureWarning, RankOneCopula
from gcvae.numerics.generators import generator_for, normal
from gcvae.numerics.normal import log_normal_density

D = 6


def draws(*shape: int, seed: int = 0) -> Tensor:
    return normal(shape, generator_for(seed, "test")).double()


def everywhere(score: Tensor) -> Tensor:
    return torch.ones_like(score, dtype=torch.bool)


def dense_log_density(score: Tensor, correlation: Tensor) -> float:
    """log N(q; 0, R) - sum log N(q_j; 0, 1)."""
    joint = multivariate_normal(cov=correlation.numpy()).logpdf(score.numpy())
    return float(joint - log_normal_density(score).sum())


def rectangle(lower: Tensor, upper: Tensor, correlation: Tensor) -> float:
    """P(lower < q < upper) by the sum over 2^D corners."""
    normal_ = multivariate_normal(
        cov=correlation.numpy(), maxpts=200_000, abseps=1e-8, releps=1e-8, seed=0
    )
    total = 0.0
    for corner in itertools.product((0, 1), repeat=len(lower)):
        at = torch.tensor(corner, dtype=torch.bool)
        point = torch.where(at, upper, lower)
        if bool((point == -torch.inf).any()):
            continue
        total += (-1) ** int((~at).sum()) * float(normal_.cdf(point.clamp(-40, 40).numpy()))
    return total


def test_the_log_density_is_the_dense_multivariate_normal_minus_its_margins() -> None:
    copula = RankOneCopula(2.0 * draws(D))
    score = draws(D, seed=1)
    expected = dense_log_density(score, copula.correlation())
    assert copula.log_density(score, everywhere(score)).item() == pytest.approx(expected, abs=1e-11)


def test_the_density_does_not_change_when_psi_is_scaled() -> None:
    a, score = draws(4, D), draws(4, D, seed=1)
    omega = torch.tensor([0.3, 1.0, 2.0, 50.0], dtype=torch.float64)
    scale = 7.3
    plain = RankOneCopula(a, omega)
    scaled = RankOneCopula(a * scale**0.5, omega * scale)
    present = everywhere(score)
    torch.testing.assert_close(
        plain.log_density(score, present), scaled.log_density(score, present), atol=1e-12, rtol=0
    )


def test_zero_loadings_are_independence() -> None:
    score = draws(5, D)
    copula = RankOneCopula(torch.zeros(5, D))
    assert copula.log_density(score, everywhere(score)).abs().max() == 0.0
    assert torch.equal(copula.correlation(), torch.eye(D).double().expand(5, D, D))


def test_a_column_that_is_left_out_drops_its_row_of_the_loadings() -> None:
    b, score = 1.5 * draws(D), draws(D, seed=1)
    present = torch.tensor([True, False, True, True, False, True])
    whole = RankOneCopula(b).log_density(score, present)
    part = RankOneCopula(b[present]).log_density(score[present], everywhere(score[present]))
    assert whole.item() == pytest.approx(part.item(), abs=1e-12)


def test_long_loadings_lose_no_digits_in_float32() -> None:
    b, score = 1e4 * draws(D), draws(D, seed=1)
    exact = RankOneCopula(b).log_density(score, everywhere(score)).item()
    single = RankOneCopula(b.float()).log_density(score.float(), everywhere(score)).item()
    assert single == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("length", [0.0, 1e-6, 1.0, 1e4, 1e5])
def test_gradients_are_finite_for_loadings_of_any_length(length: float) -> None:
    loadings = (length * draws(3, D).float()).requires_grad_()
    score = (6.0 * draws(3, D, seed=1).float()).requires_grad_()
    RankOneCopula(loadings).log_density(score, everywhere(score)).sum().backward()
    assert loadings.grad is not None
    assert bool(torch.isfinite(loadings.grad).all())
    assert score.grad is not None
    assert bool(torch.isfinite(score.grad).all())


def test_points_alone_have_the_density_of_the_copula() -> None:
    copula, score = RankOneCopula(draws(D)), draws(D, seed=1)
    present, unused = everywhere(score), torch.zeros(D).double()
    mixed = copula.log_mixed(score, unused, unused, present, present)
    assert mixed.item() == pytest.approx(copula.log_density(score, present).item(), abs=1e-9)


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0, 3.0])
def test_intervals_alone_agree_with_the_sum_over_2_to_the_d_corners(strength: float) -> None:
    copula = RankOneCopula(strength * draws(4))
    lower = torch.tensor([-torch.inf, -0.4, 0.2, -1.0], dtype=torch.float64)
    upper = torch.tensor([0.3, 0.9, torch.inf, 0.5], dtype=torch.float64)
    none = torch.zeros(4, dtype=torch.bool)
    got = copula.log_mixed(torch.zeros(4).double(), lower, upper, none, ~none).exp().item()
    assert got == pytest.approx(rectangle(lower, upper, copula.correlation()), abs=2e-6)


def test_points_and_intervals_agree_with_the_conditional_normal() -> None:
    """p(q_G) P(lower < q_H < upper | q_G), the conditional covariance formed densely."""
    copula = RankOneCopula(1.3 * draws(5))
    r = copula.correlation().numpy()
    score = draws(5, seed=1)
    g, h = [0, 2], [1, 3, 4]
    lower = torch.tensor([0.0, -0.5, 0.0, -torch.inf, 0.1], dtype=torch.float64)
    upper = torch.tensor([0.0, 0.7, 0.0, 0.4, 2.0], dtype=torch.float64)
    gain = r[np.ix_(h, g)] @ np.linalg.inv(r[np.ix_(g, g)])
    mean = gain @ score[g].numpy()
    cov = r[np.ix_(h, h)] - gain @ r[np.ix_(g, h)]
    probability = rectangle(
        lower[h] - torch.from_numpy(mean), upper[h] - torch.from_numpy(mean), torch.from_numpy(cov)
    )
    density = dense_log_density(score[g], torch.from_numpy(r[np.ix_(g, g)]))
    is_point = torch.tensor([True, False, True, False, False])
    got = copula.log_mixed(score, lower, upper, is_point, everywhere(score))
    assert got.item() == pytest.approx(density + np.log(probability), abs=1e-5)


@pytest.mark.parametrize("length", [0.1, 1.0, 5.0, 10.0, 20.0])
def test_an_interval_without_company_keeps_its_marginal_probability(length: float) -> None:
    """int N(f) Phi(psi t - b f) df = Phi(t): the quadrature's own test, at every steepness."""
    t = torch.linspace(-6.0, 6.0, 25, dtype=torch.float64)[:, None]
    copula = RankOneCopula(torch.full((25, 1), length))
    none = torch.zeros(25, 1, dtype=torch.bool)
    lower = torch.full_like(t, -torch.inf)
    got = copula.log_mixed(torch.zeros_like(t), lower, t, none, ~none)
    torch.testing.assert_close(got, torch.special.log_ndtr(t[:, 0]), atol=1e-6, rtol=0.0)


def test_twenty_two_coupled_binary_columns_agree_with_ten_times_the_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = 4.0 * draws(8, 22)
    bounds = 0.7 * draws(8, 22, seed=1)
    is_low = draws(8, 22, seed=2) > 0
    lower = torch.where(is_low, -torch.inf, bounds)
    upper = torch.where(is_low, bounds, torch.inf)
    none = torch.zeros(8, 22, dtype=torch.bool)
    got = RankOneCopula(b).log_mixed(torch.zeros(8, 22).double(), lower, upper, none, ~none)
    monkeypatch.setattr("gcvae.model.copula._NODES_PER_UNIT_SLOPE", 180.0)
    fine = RankOneCopula(b).log_mixed(torch.zeros(8, 22).double(), lower, upper, none, ~none)
    torch.testing.assert_close(got, fine, atol=1e-8, rtol=0.0)


@pytest.mark.parametrize("length", [0.0, 1.0, 1e2, 1e4])
def test_the_exact_likelihood_has_finite_gradients(length: float) -> None:
    loadings = (length * draws(4, D)).requires_grad_()
    bound = draws(4, D, seed=1).requires_grad_()
    infinite = torch.full((4, D), torch.inf, dtype=torch.float64)
    is_point = torch.zeros(4, D, dtype=torch.bool)
    is_point[:, :2] = True
    log_mixed = RankOneCopula(loadings).log_mixed(
        bound, -infinite, bound, is_point, everywhere(bound)
    )
    log_mixed.sum().backward()
    assert loadings.grad is not None
    assert bool(torch.isfinite(loadings.grad).all())
    assert bound.grad is not None
    assert bool(torch.isfinite(bound.grad).all())


def test_drawn_scores_have_the_copulas_correlation() -> None:
    copula = RankOneCopula(1.5 * draws(1, D))
    many = RankOneCopula(copula.loadings.expand(200_000, D))
    sample = many.sample(generator_for(3, "test"))
    torch.testing.assert_close(
        torch.corrcoef(sample.T).double(), copula.correlation()[0], atol=0.01, rtol=0.0
    )


def test_a_copula_too_steep_for_the_nodes_says_so() -> None:
    """Two columns that are nearly one: P(q_1 < 0, q_2 < 0) is a half, but for what is told."""
    cells = (torch.full((2,), -torch.inf).double(), torch.zeros(2).double(), torch.zeros(2).bool())
    score = torch.zeros(2).double()
    for evaluated in (RankOneCopula.log_mixed, RankOneCopula.log_prefixes):
        steep = RankOneCopula(torch.full((2,), 400.0).double())
        with pytest.warns(QuadratureWarning, match="ask for 10,182 nodes; 8,192 are taken"):
            found = evaluated(steep, score, *cells, everywhere(score))
        assert found.flatten()[-1].exp().item() == pytest.approx(0.5, abs=2e-3)
        evaluated(RankOneCopula(0.8 * steep.loadings), score, *cells, everywhere(score))  # no sound


def test_rows_of_points_have_the_closed_form_of_every_first_columns() -> None:
    """Also where one loading is a million others, and beside rows with intervals."""
    loadings = 2.0 * draws(3, D)
    loadings[1, 3] = 1e8
    copula, score = RankOneCopula(loadings), draws(3, D, seed=1)
    score[1, 3] = 1e-9
    present = everywhere(score)
    present[2, 1] = False
    bounds, columns = (score - 1.0, score + 1.0), torch.arange(D)
    found = copula.log_prefixes(score, *bounds, everywhere(score), present)
    expected = [copula.log_density(score, present & (columns <= j)) for j in range(D)]
    torch.testing.assert_close(found, torch.stack(expected, -1), atol=1e-9, rtol=1e-12)
    mixed = everywhere(score)
    mixed[0, 2] = False
    beside = RankOneCopula(2.0 * draws(3, D)).log_prefixes(score, *bounds, mixed, present)
    alone = RankOneCopula(2.0 * draws(3, D)[1:])
    rest = (score[1:], bounds[0][1:], bounds[1][1:], mixed[1:], present[1:])
    assert torch.equal(beside[1:], alone.log_prefixes(*rest))


def test_points_and_intervals_of_a_row_agree_with_the_mixed_likelihood() -> None:
    copula, score = RankOneCopula(draws(4, D)), draws(4, D, seed=1)
    is_point = torch.arange(D) % 2 == 0
    cells = (score, score - 0.5, score + 0.5, is_point.expand(4, D))
    found = copula.log_prefixes(*cells, everywhere(score))[:, -1]
    expected = copula.log_mixed(*cells, everywhere(score))
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0.0)
