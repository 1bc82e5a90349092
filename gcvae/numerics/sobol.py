"""Quasi-random (Sobol) points in the unit cube, which the caller randomises by a digital shift.

A digital shift combines all points of a set with one random number per dimension, by exclusive or
of binary digits. Each point is then uniformly distributed, and the set still covers the cube
evenly. The mean of a function over the points is unbiased and, for smooth functions, has a smaller
error than the mean over independent points.

Source: L'Ecuyer & Lemieux 2002 (digital shifts); Joe & Kuo 2008 (direction numbers, as in torch).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from gcvae.numerics.permutations import Numbers
from gcvae.numerics.row_noise import N_BITS

_SOBOL_BITS = 30
"""Number of bits of torch's Sobol points; the digital shift fills the lower bits."""


@lru_cache(maxsize=64)
def sobol_points(n: int, width: int) -> Numbers:
    """Returns the first n points of the Sobol sequence in `width` dimensions, with each coordinate
    x as the integer x * 2^N_BITS. Shape: (n, width), uint64."""
    if not width:
        return np.zeros((n, 0), dtype=np.uint64)
    points = torch.quasirandom.SobolEngine(width).draw(n, dtype=torch.float64).numpy()
    return (points * 2.0**_SOBOL_BITS).astype(np.uint64) << np.uint64(N_BITS - _SOBOL_BITS)
