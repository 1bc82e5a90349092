"""Points that fill the unit cube evenly, each set of them moved at random by itself.

A digital shift moves all points of a set by one random number for each dimension, exclusive or of
the digits of base two: each point is uniform then, and the set as even as it was. So the mean of a
function over the points has the right expectation, and for a smooth function a smaller error than
that of as many independent ones.

Source: L'Ecuyer & Lemieux 2002 (digital shifts); Joe & Kuo 2008 (the directions, as torch has
them).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from gcvae.numerics.row_noise import N_BITS, Keys

_SOBOL_BITS = 30
"""Of torch's points; those below are the shift's alone."""


@lru_cache(maxsize=64)
def sobol_points(n: int, width: int) -> Keys:
    """Returns the first n points of Sobol's sequence, as numbers of N_BITS bits. Shape:
    (n, width)."""
    if not width:
        return np.zeros((n, 0), dtype=np.uint64)
    points = torch.quasirandom.SobolEngine(width).draw(n, dtype=torch.float64).numpy()
    return (points * 2.0**_SOBOL_BITS).astype(np.uint64) << np.uint64(N_BITS - _SOBOL_BITS)
