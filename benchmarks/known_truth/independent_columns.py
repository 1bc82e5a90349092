"""Tables of columns of all kinds, each drawn by itself: what is found between them is chance.

Among them are the columns that mislead: numbers and dates whose ranges do not overlap, so that one
is always below the other; levels of which one has nearly all rows; many levels with few rows each;
small whole numbers, of which sums agree now and then; clock times and years; and blanks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

N_COLUMNS = (20, 5, 40, 12, 28)
ROWS = (300, 1_000, 3_000, 20_000)
"""Of the tables, in turn."""
BLANK_SHARES = (0.0, 0.0, 0.0, 0.05, 0.4)
"""Of the columns, one of these each."""

Random = np.random.Generator
Texts = npt.NDArray[Any] | list[str]


def draw_independent(seed: int) -> pd.DataFrame:
    """The cells of the table of that seed, as a file has them. Shape: n rows, 5 to 40 columns."""
    random = np.random.default_rng(seed)
    n = ROWS[seed % len(ROWS)]
    every = list(_KINDS)
    # Each kind once, in another order in each table, and some twice.
    n_columns = N_COLUMNS[seed % len(N_COLUMNS)]
    kinds = [*random.permutation(every), *random.choice(every, n_columns)][:n_columns]
    columns = {}
    for place, kind in enumerate(kinds):
        cells = pd.Series(_KINDS[kind](n, random), dtype=object)
        blank = random.random(n) < random.choice(BLANK_SHARES)
        columns[f"{kind} {place}"] = cells.where(~blank, "")
    return pd.DataFrame(columns)


def _written(numbers: npt.NDArray[Any], decimals: int = 0) -> list[str]:
    return [f"{x:.{decimals}f}" for x in numbers]


def _dates(n: int, random: Random, start: str, days: int) -> Texts:
    return (np.datetime64(start, "D") + random.integers(0, days, n)).astype(str)


def _moments(n: int, random: Random) -> Texts:
    seconds = random.integers(0, 3 * 365 * 86_400, n)
    return np.char.replace((np.datetime64("2021-03-01T00:00:00") + seconds).astype(str), "T", " ")


def _clock_times(n: int, random: Random) -> Texts:
    minutes = random.integers(0, 1_440, n)
    return (minutes // 60 * 100 + minutes % 60).astype(str)


def _levels(n: int, random: Random, n_levels: int, steepness: float) -> Texts:
    weights = np.arange(1, n_levels + 1) ** -steepness
    names = [f"{chr(65 + i % 26)}{i // 26:02d}" for i in range(n_levels)]
    return np.array(names)[random.choice(n_levels, n, p=weights / weights.sum())]


def _zero_or_amount(n: int, random: Random) -> Texts:
    amounts = np.where(random.random(n) < 0.6, 0.0, random.lognormal(6.0, 1.2, n))
    return _written(amounts, 2)


_KINDS: Mapping[str, Callable[[int, Random], Texts]] = {
    "height": lambda n, r: _written(r.normal(170, 10, n), 1),
    "income": lambda n, r: _written(r.lognormal(10, 0.6, n), 2),
    "share": lambda n, r: _written(r.beta(2, 5, n), 4),
    "gain": _zero_or_amount,
    "visits": lambda n, r: r.poisson(3, n).astype(str),
    "age": lambda n, r: r.integers(18, 91, n).astype(str),
    "metres": lambda n, r: r.negative_binomial(3, 0.003, n).astype(str),
    "balance": lambda n, r: _written(r.normal(0, 2_000, n), 2),
    "born": lambda n, r: r.integers(1950, 2006, n).astype(str),
    "clock": _clock_times,
    "grade": lambda n, r: r.integers(1, 6, n).astype(str),
    "begun": lambda n, r: _dates(n, r, "2010-01-01", 900),
    "ended": lambda n, r: _dates(n, r, "2015-01-01", 1_200),
    "logged": _moments,
    "member": lambda n, r: np.where(r.random(n) < 0.3, "yes", "no"),
    "flag": lambda n, r: np.where(r.random(n) < 0.98, "no", "yes"),
    "region": lambda n, r: _levels(n, r, 6, 0.5),
    "code": lambda n, r: _levels(n, r, 40, 1.0),
    "place": lambda n, r: _levels(n, r, 400, 0.8),
}
