"""Types of arrays, by dtype; the docstring of each function gives their shapes.

A time is an int64 count of microseconds since 1970-01-01; NaT is a missing cell.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
"""Category indices, and other whole numbers that index."""
TIMES: Final = "datetime64[us]"
"""Dtype of dates and times, in UTC if they have a zone."""
DAY = 86_400_000_000
"""Microseconds of a day."""
FIRST_TIME = np.datetime64("0001-01-01", "us")
LAST_TIME = np.datetime64("9999-12-31T23:59:59.999999", "us")
"""The years that texts, SQL and Python's datetime can express."""
