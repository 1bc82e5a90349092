"""Batch sizes that make a row's result independent of the rest of the batch, to the last bit.

SIMD loops compute a fixed number of values at a time, and the remaining values by other code, whose
results may differ in the last bit. Matrix products of few rows also use other code. Batch sizes
that are multiples of 16 and at least 64 avoid both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

LANES = 16
"""Number of values that torch's loops compute at a time: two vectors of eight."""
_LEAST = 64
"""Matrix products of fewer rows use other code paths."""


def broadcast_shape(*shapes: Sequence[int]) -> torch.Size:
    """Returns the shape to which the shapes broadcast; forty times as fast as
    `torch.broadcast_shapes`."""
    return torch.Size(np.broadcast_shapes(*map(tuple, shapes)))


def samples_without_padding(n_draws: int, n_rows: int) -> int:
    """Returns a number of samples per row, at least `n_draws`, whose product with `n_rows` is a
    multiple of `LANES`, so that a batch needs no padding."""
    step = LANES // math.gcd(LANES, n_rows)
    return -(-max(n_draws, _LEAST // n_rows) // step) * step


def padded_to_lanes(index: Tensor) -> Tensor:
    """Pads row indices to a multiple of `LANES` by repeating the first one, if there is one."""
    missing = -len(index) % LANES
    return torch.cat([index, index[:1].expand(missing if len(index) else 0)])
