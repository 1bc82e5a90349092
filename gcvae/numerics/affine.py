"""Affine maps of many rows, using oneDNN where it is faster than torch's usual matrix product.

oneDNN has kernels for each CPU type, and computes sum and activation while the product is in the
cache. MKL, which `torch.nn.functional.linear` uses, is about half as fast on AMD CPUs. With
gradients, on GPUs and in float64 the maps use `torch.nn.functional.linear`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_linear_pointwise"
)
_NO_SCALARS: list[float] = []


def affine(x: Tensor, weight: Tensor, bias: Tensor | None, *, plus: Tensor | None = None) -> Tensor:
    """Returns W x + b + plus for each row x; a `bias` or `plus` of None is omitted. Shape: (n,
    d_in), (d_out, d_in), (d_out,), (n, d_out) -> (n, d_out)."""
    if not _is_plain(x, weight):
        product = nn.functional.linear(x, weight, bias)
        return product if plus is None else product + plus
    found: Tensor
    if plus is None:
        found = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", _NO_SCALARS, None)
    else:
        found = torch.ops.mkldnn._linear_pointwise.binary(x, plus, weight, bias, "add")
    return found


def affine_silu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Returns silu(W x + b), silu(y) = y sigmoid(y). Shape: (n, d_in), (d_out, d_in), (d_out,) ->
    (n, d_out)."""
    if not _is_plain(x, weight):
        return nn.functional.silu(nn.functional.linear(x, weight, bias), inplace=True)
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "swish", _NO_SCALARS, None)
    return found


def through(network: nn.Module, x: Tensor) -> Tensor:
    """Returns the output of a network for rows x, computing its linear layers by `affine`. Shape:
    (n, d_in) -> (n, d_out)."""
    if isinstance(network, nn.Linear):
        return affine(x, network.weight, network.bias)
    if isinstance(network, nn.Sequential):
        for layer in network:
            x = through(layer, x)
        return x
    found: Tensor = network(x)
    return found


def _is_plain(x: Tensor, weight: Tensor) -> bool:
    """Returns whether oneDNN supports the product and computes each row independently of others."""
    return (
        _HAS_ONEDNN
        and x.dim() == 2
        and len(x) > 1
        and min(weight.shape) > 0
        and x.dtype is torch.float32
        and x.device.type == "cpu"
        and not torch.is_grad_enabled()
    )
