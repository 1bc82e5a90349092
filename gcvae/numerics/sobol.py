"""Quasi-random points in the unit cube, randomised by a digital shift for each set.

A digital shift combines all points of a set with one random number per dimension, by exclusive or
of binary digits. Each point is then uniform, and the set as even as before. The mean of a function
over the points is unbiased and, for smooth functions, has a smaller error than the mean over
independent points.

Source: L'Ecuyer & Lemieux 2002 (digital shifts); Joe & Kuo 2008 (the directions, as in torch).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from gcvae.numerics.row_noise import N_BITS, Keys

_SOBOL_BITS = 30
"""Bits of torch's points; lower bits come from the shift."""


@lru_cache(maxsize=64)
def sobol_points(n: int, width: int) -> Keys:
    """Returns the first n points of the Sobol sequence as integers of N_BITS bits. Shape: (n,
    width)."""
    if not width:
        return np.zeros((n, 0), dtype=np.uint64)
    points = torch.quasirandom.SobolEngine(width).draw(n, dtype=torch.float64).numpy()
    return (points * 2.0**_SOBOL_BITS).astype(np.uint64) << np.uint64(N_BITS - _SOBOL_BITS)
