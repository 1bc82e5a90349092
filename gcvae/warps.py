"""Monotone maps of the numbers' axis that bring a model's one-way margins to where they should be.

A column's value v has the density p(S(v)) S'(v), where p is the model's mixture and S a rising,
piecewise linear map, straight with slope one beyond its knots. S starts as the identity.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_RANGE = 3.5
_N_KNOTS = 57


class Warps(nn.Module):
    """S of each real column, by its heights at common knots. Shape: heights (D_real, n_knots)."""

    knots: Tensor
    heights: Tensor

    def __init__(self, n_columns: int) -> None:
        super().__init__()
        knots = torch.linspace(-_RANGE, _RANGE, _N_KNOTS, dtype=torch.float64)
        self.register_buffer("knots", knots, persistent=False)
        self.register_buffer("heights", knots.repeat(n_columns, 1))

    def straighten(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """(S(v), log S'(v)). Shape: (..., D_real) -> two of (..., D_real)."""
        if bool((self.heights == self.knots).all()):  # before calibration, and with no column
            return values, torch.zeros_like(values)
        columns = values.movedim(-1, 0).flatten(1)
        found = [self.straighten_column(v, j) for j, v in enumerate(columns)]
        straight, log_slope = (torch.stack(part, dim=-1) for part in zip(*found, strict=True))
        return straight.view(values.shape), log_slope.view(values.shape)

    def straighten_column(self, values: Tensor, j: int) -> tuple[Tensor, Tensor]:
        """(S(v), log S'(v)) of real column j. Shape: (N,) -> (N,), (N,)."""
        return piecewise(values.double(), self.knots, self.heights[j])

    def bend_column(self, straight: Tensor, j: int) -> Tensor:
        """S^-1 of real column j. Shape: (N,) -> (N,)."""
        return piecewise(straight.double(), self.heights[j], self.knots)[0]


def piecewise(x: Tensor, knots: Tensor, heights: Tensor) -> tuple[Tensor, Tensor]:
    """(y, log dy/dx) of the rising line through the knots, straight with slope one beyond them.

    Shape: (N,), (k,), (k,) -> (N,), (N,).
    """
    at = torch.searchsorted(knots, x.contiguous(), right=True).clamp(1, len(knots) - 1)
    left, base = knots[at - 1], heights[at - 1]
    slope = (heights[at] - base) / (knots[at] - left)
    is_low, is_high = x < knots[0], x > knots[-1]
    slope = torch.where(is_low | is_high, 1.0, slope)
    left = torch.where(is_high, knots[-1], left)
    base = torch.where(is_high, heights[-1], base)
    return base + slope * (x - left), slope.log()
