"""Shapes of batches, and sizes in which a row's numbers are the same, to the last digit, anywhere.

Vectors of the processor take so many numbers together, and what is left at a batch's end is
computed in another way, whose last digit may differ; so may that of products of few rows. A batch
of many numbers that leaves nothing is the same for every row in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

LANES = 16
"""Numbers that torch's loops take together: two vectors of eight."""
_LEAST = 64
"""Products of fewer rows go other ways."""


def broadcast_shape(*shapes: Sequence[int]) -> torch.Size:
    """Returns the shape that these have together; torch's own function takes forty times
    as long."""
    return torch.Size(np.broadcast_shapes(*map(tuple, shapes)))


def draws_without_end(n_draws: int, n_rows: int) -> int:
    """Returns the least number of draws of each row, not under `n_draws`, that makes such
    a batch."""
    step = LANES // math.gcd(LANES, n_rows)
    return -(-max(n_draws, _LEAST // n_rows) // step) * step


def filled(index: Tensor) -> Tensor:
    """Row numbers, the first again and again to a size without an end; none stay none. (m,)."""
    missing = -len(index) % LANES
    return torch.cat([index, index[:1].expand(missing if len(index) else 0)])
