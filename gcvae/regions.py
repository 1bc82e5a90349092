"""Which cells of a column are possible: some codes, and some intervals of values.

A region is what a condition says of a column, in the codec's terms. A known cell is one code, and
under the point code the values that round to its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.codec import ColumnCodec, EncodedTable, TableCodec
from gcvae.column_codecs import RealCodec
from gcvae.quantile_codec import QuantileCodec

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Region:
    """The cells of one column that are possible, for each of n rows, or for all alike (n = 1).

    Attributes:
        log_share: log of the share of each code that is possible: 0 all of it, -inf nothing; in
            between for a bundle of which some levels are. Shape: (n, K).
        lower: Ends of the intervals of values that are possible under the point code; where both
            ends are equal it is a point, which counts by its density. Shape: (n, m), float64.
        upper: The same.
    """

    log_share: Tensor
    lower: Tensor
    upper: Tensor

    def take(self, rows: Tensor | None) -> Region:
        """Of these rows; the region itself where it is that of all rows."""
        if rows is None or len(self.log_share) == 1:
            return self
        return Region(self.log_share[rows], self.lower[rows], self.upper[rows])

    @property
    def has_density(self) -> bool:
        """True where some row's condition is a point: of density, not of probability."""
        return bool((self.lower == self.upper).any())


Regions = Sequence[Region | None]
"""Of all columns; None where every cell is possible."""


def everything(n_codes: int) -> Region:
    """Of a column with values, for all rows: every cell is possible."""
    end = torch.full((1, 1), torch.inf, dtype=torch.float64)
    return Region(torch.zeros(1, n_codes, dtype=torch.float64), -end, end)


def level_region(log_share: Numbers) -> Region:
    """Of a column of levels, for all rows. Shape: (K,)."""
    nothing = torch.zeros(1, 0, dtype=torch.float64)
    return Region(torch.from_numpy(log_share)[None], nothing, nothing)


def number_region(
    codec: RealCodec | QuantileCodec, low: pd.Series[Any], high: pd.Series[Any], missing: bool
) -> Region | None:
    """The numbers between any low and its high, both included, and perhaps the missing cells.

    A single number of which the model has no mass, but a density, is a point; beside anything that
    has mass it adds nothing.

    Args:
        low: Typed cells. Shape: (m,).
        high: The same.
        missing: Missing cells belong too; the codec must have them.

    Returns: None where nothing belongs.
    """
    possible = np.zeros(codec.n_codes, dtype=bool)
    if isinstance(codec, QuantileCodec) and len(low):
        possible |= codec.atoms_between(low, high).any(axis=0)
    possible[0] |= missing
    lower, upper = codec.edges(low, high) if len(low) else (np.zeros(0), np.zeros(0))
    has_mass = lower < upper
    kept = has_mass if has_mass.any() or possible.any() else np.ones(len(low), dtype=bool)
    possible[-1] |= kept.any()
    if not possible.any():
        return None
    log_share = torch.from_numpy(np.where(possible, 0.0, -np.inf))
    lower, upper = lower[kept], np.maximum(lower, upper)[kept]
    if not len(lower):  # the point code is barred, and any interval under it with it
        lower, upper = np.array([-np.inf]), np.array([np.inf])
    return Region(log_share[None], torch.from_numpy(lower)[None], torch.from_numpy(upper)[None])


def known_regions(
    codec: TableCodec, frame: pd.DataFrame, rows: EncodedTable, *, blanks_missing: bool
) -> list[Region | None]:
    """The regions of the known cells of rows, each its own.

    Args:
        codec: Of the table.
        frame: Typed.
        rows: The same rows, encoded; cells that are not `observed` are not known.
        blanks_missing: A cell that is not known may turn out to be missing.
    """
    return [
        _known_region(column, codec.known_cells(frame, column.name), rows, j, blanks_missing)
        for j, column in enumerate(codec.columns)
    ]


def _known_region(
    codec: ColumnCodec, series: pd.Series[Any], rows: EncodedTable, j: int, blanks_missing: bool
) -> Region | None:
    known = rows.observed[:, j]
    bars_missing = codec.has_missing and not blanks_missing
    if not bool(known.any()) and not bars_missing:
        return None
    codes = rows.codes[:, j].long()
    is_own = torch.arange(codec.n_codes) == codes[:, None]
    log_share = torch.where(known[:, None] & ~is_own, -torch.inf, 0.0).double()
    if bars_missing:
        log_share[~known, 0] = -torch.inf
    if not codec.is_real:
        nothing = torch.zeros(len(rows), 0, dtype=torch.float64)
        return Region(log_share, nothing, nothing)
    lower = torch.full((len(rows), 1), -torch.inf, dtype=torch.float64)
    upper = -lower
    at = (known & (codes == codec.n_codes - 1)).numpy()
    if at.any():
        assert isinstance(codec, RealCodec | QuantileCodec), "numbers are on a line"
        ends = codec.edges(series[at], series[at])
        low, high = (torch.from_numpy(end)[:, None] for end in ends)
        lower[at], upper[at] = low, torch.maximum(low, high)
    return Region(log_share, lower, upper)
