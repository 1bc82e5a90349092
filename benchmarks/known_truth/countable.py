"""A table with a step, a sum and a function of levels, whose rows can all be counted.

    deposit    0, 5, ..., 1495: whole fives
    fee        0, 1, 2
    total      deposit + fee in `1 - SURCHARGE_SHARE` of the rows, and 1 more in the others
    city       of three
    land       of the city, but in `MOVED_SHARE` of the rows the other one

`masses` gives every row that can be, and its probability; they add up to one.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

SURCHARGE_SHARE = 0.05
MOVED_SHARE = 0.02
STEP = 5
DEPOSITS = tuple(range(0, 1_500, STEP))
FEES = (0, 1, 2)
LANDS = {"Graz": "Austria", "Wien": "Austria", "Bern": "Switzerland"}
COLUMNS = ("deposit", "fee", "total", "city", "land")


def masses() -> pd.DataFrame:
    """Every possible row, with its probability in the column `mass`. Shape: 10,800 rows."""
    every = list(product(DEPOSITS, FEES, (0, 1), LANDS, (False, True)))
    frame = pd.DataFrame(every, columns=["deposit", "fee", "more", "city", "moved"])
    fall = 2.0 - frame["deposit"] / max(DEPOSITS)
    rise = 1.0 + frame["fee"] * frame["deposit"] / max(DEPOSITS)  # of fees, with deposits
    rises = sum(1.0 + fee * frame["deposit"] / max(DEPOSITS) for fee in FEES)
    mass = fall * rise / rises
    mass *= np.where(frame["more"] == 1, SURCHARGE_SHARE, 1 - SURCHARGE_SHARE)
    mass *= np.where(frame["moved"], MOVED_SHARE, 1 - MOVED_SHARE)
    own = frame["city"].map(LANDS)
    other = own.map({"Austria": "Switzerland", "Switzerland": "Austria"})
    return pd.DataFrame(
        {
            "deposit": frame["deposit"],
            "fee": frame["fee"],
            "total": frame["deposit"] + frame["fee"] + frame["more"],
            "city": frame["city"],
            "land": own.where(~frame["moved"], other),
            "mass": mass / mass.sum(),
        }
    )


def draw_countable(n: int, seed: int = 0) -> pd.DataFrame:
    """Rows of the table. Shape: n rows of 5 columns."""
    every = masses()
    random = np.random.default_rng(seed)
    drawn = random.choice(len(every), n, p=every["mass"].to_numpy())
    return every.loc[drawn, list(COLUMNS)].reset_index(drop=True)
