"""Batch sizes for which the result of a row does not depend on the other rows, to the last bit.

SIMD loops compute a fixed number of values at a time and use another code path, whose last bit may
differ, for the remainder and for products of few rows. A large batch without remainder gives every
row the same result.
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
    """Returns the broadcast shape; torch's own function takes forty times as long."""
    return torch.Size(np.broadcast_shapes(*map(tuple, shapes)))


def draws_without_end(n_draws: int, n_rows: int) -> int:
    """Returns the least number of samples per row, at least `n_draws`, that gives such a batch."""
    step = LANES // math.gcd(LANES, n_rows)
    return -(-max(n_draws, _LEAST // n_rows) // step) * step


def filled(index: Tensor) -> Tensor:
    """Pads row indices with the first one to such a batch size; empty stays empty. Shape: (m,)."""
    missing = -len(index) % LANES
    return torch.cat([index, index[:1].expand(missing if len(index) else 0)])
