"""Types of arrays, by dtype; the docstring of each function gives their shapes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
"""Category indices, and other whole numbers that index."""
