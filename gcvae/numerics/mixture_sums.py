"""Log densities of Gaussian mixtures at fixed points, with a memory-efficient gradient.

    log(least + sum_m exp(A_m + B_m s_k + C_m s_k^2))

The exponent is the log of the weighted density of component m at point s_k, up to a constant;
`least` keeps the result finite. For n rows, M components and K points, this needs n M K
exponentials, which are most of what a training step writes to memory. Autograd would store each
intermediate result; this module stores the exponentials once and converts them to their gradient.
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
    """Returns log(least + sum_m exp(A_m + B_m s_k + C_m s_k^2)) at each point s_k.

    Args:
        terms: Coefficients (A, B, C) of G columns, M components and n rows. Shape: (G, M, n, 3).
        powers: (1, s, s^2) of the K points of each column, without gradient. Shape: (G, 3, K).
        least: Positive number added to the sum, so that its logarithm is finite.

    Shape: (G, n, K).
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
    """Returns exp(A_m + B_m s_k + C_m s_k^2) for each component m and point s_k, and the sum over m
    plus `least`. The arguments are those of `log_mixture_sums`."""
    # Powers of two are faster than powers of e.
    flat = torch.bmm(terms.flatten(1, 2), powers / math.log(2.0)).exp2_()
    exponentials = flat.view(*terms.shape[:-1], powers.shape[-1])
    return exponentials, exponentials.sum(1).add_(least)


class _LogMixtureSums(torch.autograd.Function):
    """Computes `log_mixture_sums` and its gradient."""

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
