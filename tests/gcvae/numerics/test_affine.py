"""The products of draws and scores are those of torch, and a row's do not depend on its company."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gcvae.numerics.affine import affine, affine_silu, through

SHAPES = [(128, 64), (64, 98), (8, 128), (13, 7), (1, 1)]


def parts(d_in: int, d_out: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Rows, a matrix, a bias and something to add."""
    torch.manual_seed(0)
    shapes = (300, d_in), (d_out, d_in), (d_out,), (300, d_out)
    x, weight, bias, plus = (torch.randn(shape, dtype=dtype) for shape in shapes)
    return x, weight, bias, plus


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_those_of_torch(shape: tuple[int, int], dtype: torch.dtype) -> None:
    x, weight, bias, plus = parts(*shape, dtype)
    expected = x @ weight.T + bias
    with torch.no_grad():
        torch.testing.assert_close(affine(x, weight, bias), expected)
        torch.testing.assert_close(affine(x, weight, bias, plus=plus), expected + plus)
        torch.testing.assert_close(affine(x, weight, None, plus=plus), expected - bias + plus)
        torch.testing.assert_close(affine_silu(x, weight, bias), nn.functional.silu(expected))


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_a_row_has_its_product_in_any_company_and_on_any_number_of_threads(
    shape: tuple[int, int],
) -> None:
    x, weight, bias, _ = parts(*shape, torch.float32)
    n_threads = torch.get_num_threads()
    with torch.no_grad():
        whole = affine_silu(x, weight, bias)
        for n in (16, 64, 176, 256):
            assert torch.equal(affine_silu(x[20 : 20 + n], weight, bias), whole[20 : 20 + n])
        try:
            torch.set_num_threads(3 - min(n_threads, 2))
            assert torch.equal(affine_silu(x, weight, bias), whole)
        finally:
            torch.set_num_threads(n_threads)


def test_gradients_pass_and_no_rows_have_no_products() -> None:
    x, weight, bias, plus = parts(4, 3, torch.float32)
    weight.requires_grad_()
    affine_silu(affine(x, weight, bias, plus=plus)[:, :3], weight[:, :3], bias).sum().backward()
    assert weight.grad is not None
    with torch.no_grad():
        assert affine(x[:0], weight, bias).shape == (0, 3)
        assert affine(x[:1], weight, bias, plus=plus[:1]).shape == (1, 3)


def test_a_network_gives_what_it_gives() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 32), nn.SiLU(), nn.Linear(32, 16), nn.Tanh())
    x = torch.randn(100, 5)
    with torch.no_grad():
        torch.testing.assert_close(through(network, x), network(x))
