"""Type aliases for NumPy arrays, one for each dtype; docstrings of functions give the shapes.

A date or time is an int64 count of microseconds since 1970-01-01; NaT marks a missing cell.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
"""Integer codes, such as the index of a cell's category."""
Texts = npt.NDArray[np.object_]
"""Array of Python strings."""
TIMES: Final = "datetime64[us]"
"""Dtype of dates and times; those with a time zone are stored in UTC."""
DAY = 86_400_000_000
"""Number of microseconds in a day."""
FIRST_TIME = np.datetime64("0001-01-01", "us")
LAST_TIME = np.datetime64("9999-12-31T23:59:59.999999", "us")
"""Last time that Python's datetime and SQL can represent; `FIRST_TIME` is the first one."""
