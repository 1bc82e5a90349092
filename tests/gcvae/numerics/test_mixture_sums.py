"""Logarithms of mixtures' sums, beside what autograd makes of the formula."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gcvae.numerics.mixture_sums import log_mixture_sums

LEAST = 1e-5


def mixtures(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Terms of (columns 3, components 4, rows 5) and powers of 7 places."""
    random = torch.Generator().manual_seed(0)
    mean = torch.randn(3, 4, 5, generator=random, dtype=dtype)
    precision = torch.rand(3, 4, 5, generator=random, dtype=dtype) * 9.0 + 0.1
    terms = torch.stack([-0.5 * mean**2 * precision, mean * precision, -0.5 * precision], -1)
    places = torch.linspace(-3.0, 3.0, 7, dtype=dtype).expand(3, -1)
    return terms.requires_grad_(), torch.stack([places**0, places, places**2], 1)


def by_formula(terms: Tensor, powers: Tensor) -> Tensor:
    exponents = torch.einsum("gmnp,gpk->gmnk", terms, powers)
    return (exponents.exp().sum(1) + LEAST).log()


@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_values_and_gradients_are_those_of_the_formula(dtype: torch.dtype, error: float) -> None:
    terms, powers = mixtures(dtype)
    weights = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(1), dtype=dtype)
    found, expected = log_mixture_sums(terms, powers, LEAST), by_formula(terms, powers)
    assert torch.allclose(found, expected, atol=error)
    (own,) = torch.autograd.grad((found * weights).sum(), terms)
    (known,) = torch.autograd.grad((expected * weights).sum(), terms)
    assert torch.allclose(own, known, atol=error * float(known.abs().max()))


def test_far_from_every_component_is_the_least() -> None:
    terms, powers = mixtures(torch.float64)
    far = powers.clone()
    far[:, 1], far[:, 2] = 1e3, 1e6
    assert torch.allclose(log_mixture_sums(terms, far, LEAST).exp(), torch.tensor(LEAST).double())


def test_the_gradient_is_taken_once() -> None:
    terms, powers = mixtures(torch.float64)
    found = log_mixture_sums(terms, powers, LEAST).square().sum()
    (slope,) = torch.autograd.grad(found, terms, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
