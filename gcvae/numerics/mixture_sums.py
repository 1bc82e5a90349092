"""Log sums of exponentials of quadratics, with a memory-efficient gradient.

    log(least + sum_m exp(A_m + B_m s_k + C_m s_k^2))

A mixture of M components at K atoms has n M K exponentials, most of what a training step writes to
memory. Autograd would store each intermediate result; here the exponentials are stored once and
converted to their gradient in place.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_AT_ONCE = 1_000_000
"""Number of exponentials in memory at a time without gradients."""


def log_mixture_sums(terms: Tensor, powers: Tensor, least: float) -> Tensor:
    """Returns log(least + sum_m exp(A_m + B_m s_k + C_m s_k^2)) at each s_k.

    Shape: terms (G, M, n, 3), powers (G, 3, K) -> (G, n, K).

    Args:
        terms: (A, B, C) of each component.
        powers: (1, s, s^2) of each s_k, without gradient.
        least: Lower limit of the sum.
    """
    if terms.requires_grad and torch.is_grad_enabled():
        found: Tensor = _LogMixtureSums.apply(terms, powers, least)  # type: ignore[no-untyped-call]
        return found
    n_at_once = max(
        1, _AT_ONCE * terms.shape[-2] // max(1, terms[..., 0].numel() * powers.shape[2])
    )
    parts = [_sums(part, powers, least)[1].log() for part in terms.split(n_at_once, dim=2)]
    return torch.cat(parts, dim=1)


def _sums(terms: Tensor, powers: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """Returns the exponentials and their sums. Shape: (G, M, n, K), (G, n, K)."""
    # Powers of two are faster than powers of e.
    flat = torch.bmm(terms.flatten(1, 2), powers / math.log(2.0)).exp2_()
    exponentials = flat.view(*terms.shape[:-1], powers.shape[-1])
    return exponentials, exponentials.sum(1).add_(least)


class _LogMixtureSums(torch.autograd.Function):
    """`log_mixture_sums`."""

    @staticmethod
    def forward(ctx: Any, terms: Tensor, powers: Tensor, least: float) -> Tensor:
        exponentials, sums = _sums(terms, powers, least)
        ctx.save_for_backward(powers, sums)
        ctx.exponentials = exponentials
        return sums.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        powers, sums = ctx.saved_tensors
        exponentials, ctx.exponentials = ctx.exponentials, None
        exponentials.mul_((gradient / sums)[:, None])
        found = torch.bmm(exponentials.flatten(1, 2), powers.transpose(1, 2))
        return found.view(*exponentials.shape[:-1], powers.shape[1]), None, None
