"""The table of the tests of the commands on files."""

from __future__ import annotations

import numpy as np
import pandas as pd

N_ROWS = 120


def small_table() -> pd.DataFrame:
    """A table with a number, a whole number, levels and missing cells."""
    generator = np.random.default_rng(3)
    size = generator.normal(10.0, 2.0, N_ROWS)
    return pd.DataFrame(
        {
            "size": size.round(2),
            "count": generator.poisson(40.0, N_ROWS),
            "colour": np.where(size > 10, "red", "blue"),
            "grade": generator.choice(["a", "b", "?"], N_ROWS, p=[0.6, 0.3, 0.1]),
        }
    )
