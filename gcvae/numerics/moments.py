"""Mean and standard deviation without overflow."""

from __future__ import annotations

import numpy as np

from gcvae.arrays import Numbers


def mean_and_deviation(numbers: Numbers) -> tuple[float, float]:
    """Returns mean and standard deviation; (0, 0) for an empty array. Very large or small numbers
    are scaled before they are squared, against overflow and underflow."""
    size = float(np.abs(numbers).max(initial=0.0))
    if size == 0.0:
        return 0.0, 0.0
    unit = 1.0 if 1e-150 < size < 1e150 else size  # squares would overflow
    scaled = numbers / unit
    return float(scaled.mean()) * unit, float(scaled.std()) * unit
