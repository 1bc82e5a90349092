"""Monotone, piecewise linear transforms of columns of numbers, which calibrate their marginals.

With p the decoder's density of a column and S its transform, the model's density of a number v is
p(S(v)) S'(v). Before calibration S is the identity; calibration sets S so that the marginal of
generated rows equals that of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.model.networks import set_constants

_RANGE = 3.5
_N_KNOTS = 57


@dataclass(frozen=True)
class MonotoneTransform:
    """Monotone transform S of the numbers of one column: linear between k knots, slope one beyond
    them.

    Attributes:
        knots: Numbers v at the knots, ascending. Shape: (k,).
        heights: S(v) at the knots, a view of the model's tensor. Shape: (k,).
    """

    knots: Tensor
    heights: Tensor

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns S(v) and log S'(v). Shape: (N,) -> two of (N,), float64."""
        return piecewise(values.double(), self.knots, self.heights)

    def inverse(self, transformed: Tensor) -> Tensor:
        """Returns the inverse S^-1 of each transformed number. Shape: (N,) -> (N,), float64."""
        return piecewise(transformed.double(), self.heights, self.knots)[0]


class MonotoneTransforms(nn.Module):
    """Monotone transforms of all D_real columns of numbers.

    Attributes:
        knots: Knots, the same for all columns. Shape: (k,).
        heights: Transformed knots of each column. Shape: (D_real, k).
    """

    knots: Tensor
    heights: Tensor

    def __init__(self, n_columns: int) -> None:
        super().__init__()
        knots = torch.linspace(-_RANGE, _RANGE, _N_KNOTS, dtype=torch.float64)
        set_constants(self, knots=knots)
        self.register_buffer("heights", knots.repeat(n_columns, 1))

    def column(self, number_index: int) -> MonotoneTransform:
        """Returns the transform at position `number_index` in the list of columns of numbers."""
        return MonotoneTransform(self.knots, self.heights[number_index])

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns S(v) and log S'(v) for all columns. Shape: (..., D_real) -> two of (...,
        D_real)."""
        if bool((self.heights == self.knots).all()):  # before calibration, and with no column
            return values, torch.zeros_like(values)
        columns = values.movedim(-1, 0).flatten(1)
        found = [self.column(j).forward(v) for j, v in enumerate(columns)]
        transformed, log_slope = (torch.stack(of_all, -1) for of_all in zip(*found, strict=True))
        return transformed.view(values.shape), log_slope.view(values.shape)


def piecewise(x: Tensor, knots: Tensor, heights: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (y, log dy/dx) at x, interpolating linearly between ascending knots (x) and heights
    (y), with slope one beyond. Shape: x (N,), knots and heights (k,) -> (N,), (N,)."""
    at = torch.searchsorted(knots, x.contiguous(), right=True).clamp(1, len(knots) - 1)
    left, base = knots[at - 1], heights[at - 1]
    slope = (heights[at] - base) / (knots[at] - left)
    is_low, is_high = x < knots[0], x > knots[-1]
    slope = torch.where(is_low | is_high, 1.0, slope)
    left = torch.where(is_high, knots[-1], left)
    base = torch.where(is_high, heights[-1], base)
    return base + slope * (x - left), slope.log()
