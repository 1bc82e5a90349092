"""Numbers that are names, such as a flight's or a shop's: what comes with one says little of those
next to it.

Whether a column's numbers are such, the other columns tell: they are foretold from the number
itself, by its other rows, and from the numbers near it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.codec.correspondence import CoarseColumn

LEAST_ROWS = 5
"""Rows of a number that can be known by its name."""
_MOST_NAMES = 4_096
_LEAST_REPEATED = 0.5
"""Share of the rows whose number has so many."""
_N_BINS = 64
_LEAST_NATS = 0.2
"""That a row gains where one of the other columns is foretold by the number and not by those near
it."""
_PRIOR_ROWS = 2.0
"""Rows of a number as which those near it count."""

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


def are_names(numbers: pd.Series[Any], name: str, others: Sequence[CoarseColumn]) -> bool:
    """Whether numbers are names.

    Args:
        numbers: Typed cells of a column.
        name: The column's.
        others: The table's columns in few bins; the column itself may be among them.
    """
    others = [other for other in others if other.name != name]
    if not others:
        return False
    cells = numbers.iloc[:: others[0].step]
    known = cells.notna().to_numpy()
    values, at = np.unique(cells[known].to_numpy(), return_inverse=True)
    counts = np.bincount(at, minlength=len(values))
    n_repeated = counts[counts >= LEAST_ROWS]
    if len(n_repeated) > _MOST_NAMES or n_repeated.sum() < _LEAST_REPEATED * max(len(at), 1):
        return False
    middles = np.cumsum(counts) - 0.5 * counts
    bins = np.floor(_N_BINS * middles / counts.sum()).astype(np.int64)[at]
    return any(
        _gain(at, bins, other.codes[known].astype(np.int64), other.n_codes) >= _LEAST_NATS
        for other in others
    )


def _gain(names: Codes, bins: Codes, cells: Codes, n_cells: int) -> float:
    """Mean nats by which a row's cell is likelier by its name's other rows than by its bin's.

    Shape: (n,) three times.
    """
    everywhere = np.bincount(cells, minlength=n_cells) / len(cells)
    near = _foretold(bins, cells, n_cells, 1.0, everywhere[cells])
    own = _foretold(names, cells, n_cells, _PRIOR_ROWS, near)
    return float(np.log(own / near).mean())


def _foretold(keys: Codes, cells: Codes, n_cells: int, n_prior: float, prior: Numbers) -> Numbers:
    """Of each row the share of its cell in the other rows of its key, and in the prior's rows."""
    joint = keys * n_cells + cells
    of_both, of_key = np.bincount(joint)[joint], np.bincount(keys)[keys]
    shares: Numbers = (of_both - 1 + n_prior * prior) / (of_key - 1 + n_prior)
    return shares
