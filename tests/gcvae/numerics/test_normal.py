"""The normal distribution keeps its laws where float arithmetic runs out."""

from __future__ import annotations

import pytest
import torch
from scipy import special

from gcvae.numerics.normal import (
    log_interval,
    log_normal_cdf,
    log_one_minus_exp,
    normal_cdf,
    normal_score_of_tails,
)


def tails(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.special.log_ndtr(x), torch.special.log_ndtr(-x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_score_of_the_tails_of_x_is_x_from_minus_40_to_40(dtype: torch.dtype) -> None:
    x = torch.linspace(-40.0, 40.0, 801, dtype=dtype)
    tolerance = 1e-5 if dtype is torch.float32 else 1e-12
    torch.testing.assert_close(normal_score_of_tails(*tails(x)), x, rtol=tolerance, atol=tolerance)


def test_an_empty_tail_has_an_infinite_score_and_a_zero_gradient() -> None:
    log_below = torch.tensor([-torch.inf, 0.0], requires_grad=True)
    log_above = torch.tensor([0.0, -torch.inf], requires_grad=True)
    scores = normal_score_of_tails(log_below, log_above)
    assert scores.tolist() == [-torch.inf, torch.inf]
    torch.where(torch.isinf(scores), 0.0, scores).sum().backward()
    assert log_below.grad is not None
    assert log_below.grad.tolist() == [0.0, 0.0]


def test_the_score_has_the_gradient_of_its_inverse() -> None:
    x = torch.tensor([-8.0, -2.0, -0.1, 0.3, 5.0], dtype=torch.float64)
    log_below, log_above = (t.requires_grad_() for t in tails(x))
    below, above = torch.autograd.grad(
        normal_score_of_tails(log_below, log_above).sum(), [log_below, log_above]
    )
    slope_below = torch.exp(log_below - torch.distributions.Normal(0.0, 1.0).log_prob(x))
    slope_above = -torch.exp(log_above - torch.distributions.Normal(0.0, 1.0).log_prob(x))
    expected = torch.where(x < 0, slope_below, slope_above)
    torch.testing.assert_close(below + above, expected.detach())


def test_the_cdf_keeps_its_digits_in_the_lower_tail() -> None:
    x = torch.linspace(-37.0, 8.0, 451, dtype=torch.float64)
    expected = torch.from_numpy(special.ndtr(x.numpy()))
    torch.testing.assert_close(normal_cdf(x), expected, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_log_cdf_has_its_asymptotic_gradient_far_out(dtype: torch.dtype) -> None:
    """d log Phi(x) / dx -> -x; torch's own gradient is wrong by orders of magnitude in float32."""
    x = torch.tensor([-1e2, -1e3, -1e5, -1e7], dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(log_normal_cdf(x).sum(), x)
    torch.testing.assert_close(slope, -x.detach(), rtol=2e-4, atol=0.0)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-1.0, 2.0), (3.0, 3.5), (-9.0, -8.99), (0.0, 1e-9), (-torch.inf, -7.0), (6.0, torch.inf)],
)
def test_an_interval_has_the_difference_of_its_ends_cdf(lower: float, upper: float) -> None:
    low, high = (lower, upper) if lower + upper <= 0 else (-upper, -lower)
    expected = special.ndtr(high) - special.ndtr(low)
    got = log_interval(
        torch.tensor(lower, dtype=torch.float64), torch.tensor(upper, dtype=torch.float64)
    )
    assert got.exp().item() == pytest.approx(expected, rel=1e-6)


def test_far_intervals_keep_their_log_probability_and_a_finite_gradient() -> None:
    lower = torch.tensor([-60.0, 45.0, -torch.inf, 50.0], dtype=torch.float64, requires_grad=True)
    upper = torch.tensor([-50.0, 46.0, -50.0, torch.inf], dtype=torch.float64, requires_grad=True)
    log_mass = log_interval(lower, upper)
    expected = torch.special.log_ndtr(
        torch.tensor([-50.0, -45.0, -50.0, -50.0], dtype=torch.float64)
    )
    torch.testing.assert_close(log_mass.detach(), expected, rtol=1e-12, atol=0.0)
    gradients = torch.autograd.grad(log_mass.sum(), [lower, upper])
    assert all(bool(torch.isfinite(g).all()) for g in gradients)


def test_log_one_minus_exp_is_exact_on_both_sides_of_log_2() -> None:
    x = torch.tensor([-1e-12, -0.5, -5.0, -700.0, -torch.inf], dtype=torch.float64)
    expected = [-27.6310211159285, -0.9327521295671886, -0.006760749449488557, 0.0, 0.0]
    torch.testing.assert_close(
        log_one_minus_exp(x), torch.tensor(expected, dtype=torch.float64), atol=1e-11, rtol=1e-9
    )
