"""Possible values of columns as intervals of grid indices, and the regions that they define.

A grid index is a number or date as a multiple of its column's resolution (`gcvae.rules.grids`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.codec.column_codecs import RealCodec
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.region import NOWHERE, Region
from gcvae.rules.grids import Grid, LevelGrid

if TYPE_CHECKING:
    from gcvae.codec.column_codec import ColumnCodec

Indices = npt.NDArray[np.int64]
_MOST_INTERVALS = 200


@dataclass(frozen=True)
class TargetIntervals:
    """Possible values of a column in n rows, or in all rows alike (n = 1).

    Attributes:
        low, high: First and last value of m intervals, as multiples of the column's resolution; an
            interval with low > high is empty. Shape: (n, m) each.
        is_known: Mask of the rows in which the column is restricted. Shape: (n,).
        missing: Mask of the rows in which a missing cell is possible. Shape: (n,).
    """

    low: Indices
    high: Indices
    is_known: Mask
    missing: Mask

    def __len__(self) -> int:
        """Returns the number of rows; 1 if all rows share the restriction."""
        return len(self.low)

    def take(self, rows: npt.NDArray[np.int64]) -> TargetIntervals:
        """Returns the possible values for the rows with the given indices."""
        low, high, is_known, missing = self.low[rows], self.high[rows], self.is_known, self.missing
        return TargetIntervals(low, high, is_known[rows], missing[rows])

    @classmethod
    def of_cells(
        cls, grid: Grid | LevelGrid, series: pd.Series[Any], *, may_be_missing: bool
    ) -> TargetIntervals:
        """Returns known cells as intervals of one value; missing cells are unknown.

        Args:
            grid: Conversion of the column's cells to multiples of its resolution.
            series: Cells of the column's dtype.
            may_be_missing: Whether an unknown cell may be a missing value.
        """
        is_known = series.notna().to_numpy()
        indices = np.zeros(len(series), dtype=np.int64)
        indices[is_known] = grid.indices(series[is_known])
        missing = ~is_known & may_be_missing
        return cls(indices[:, None], indices[:, None], is_known, missing)

    @property
    def is_restricted(self) -> Mask:
        """Mask of the rows in which the column is restricted. Shape: (n,), or (1,) for all."""
        return self.is_known

    def within(self, other: TargetIntervals, among: Mask) -> TargetIntervals:
        """Returns the intersection with another restriction, in the rows of the mask `among`.

        A row without a common value stays unchanged, and so do all rows if too many pairs of
        intervals would have to be compared.
        """
        width = self.low.shape[1]
        n_pairs = width * other.low.shape[1]
        rows = np.flatnonzero(self.is_known & other.is_known & among)
        if not len(rows) or n_pairs > _MOST_INTERVALS:
            return self
        low = np.maximum(self.low[rows, :, None], other.low[rows, None, :]).reshape(-1, n_pairs)
        high = np.minimum(self.high[rows, :, None], other.high[rows, None, :]).reshape(-1, n_pairs)
        is_common = (low <= high).any(axis=1)
        found = replace(
            self,
            low=np.ones((len(self.low), n_pairs), dtype=np.int64),
            high=np.zeros((len(self.low), n_pairs), dtype=np.int64),
        )
        found.low[:, :width], found.high[:, :width] = self.low, self.high
        found.low[rows[is_common]], found.high[rows[is_common]] = low[is_common], high[is_common]
        return found

    def of_particles(self, codes: Tensor, values: Tensor) -> TargetIntervals:
        """Returns the possible values for each of N particles (weighted draws of a row). Of `codes`
        and `values` only the length N is used."""
        return self.take(np.zeros(len(codes), dtype=np.int64)) if len(self.low) == 1 else self


def region_of_intervals(codec: ColumnCodec, target: TargetIntervals) -> Region:
    """Returns the region (set of possible cells) of the multiples of a column's resolution that lie
    within intervals; in rows without a restriction, all cells are possible.

    Args:
        codec: Codec of a column of multiples of a resolution, or of levels that are integers.
        target: Possible values of the codec's column.
    """
    target_low, target_high = _disjoint(target.low, target.high)
    n, m = target_low.shape
    log_share = np.where(target.is_known, -np.inf, 0.0)[:, None].repeat(codec.n_codes, 1)
    if codec.has_missing:
        log_share[target.is_known & target.missing, 0] = 0.0
        log_share[~target.is_known & ~target.missing, 0] = -np.inf
    if isinstance(codec, LevelCodec):
        grid = Grid.of(codec.column)
        levels = (
            np.array(codec.levels, dtype=np.int64)
            if grid is None
            else (grid.indices(pd.Series(codec.levels)))
        )
        inside = (target_low[..., None] <= levels) & (levels <= target_high[..., None])
        at = log_share[:, codec.has_missing :]
        at[inside.any(1) & target.is_known[:, None]] = 0.0
        nothing = torch.zeros(n, 0, dtype=torch.float64)
        return Region(torch.from_numpy(log_share), nothing, nothing)
    assert isinstance(codec, QuantileCodec | RealCodec), "numbers or levels"
    grid = Grid.of(codec.column)
    assert grid is not None, "only columns that have one are parts of rules"
    low, high = np.maximum(target_low, grid.low), np.minimum(target_high, grid.high)
    is_empty = (low > high) & target.is_known[:, None]
    first, last = np.where(is_empty, grid.low, low), np.where(is_empty, grid.low, high)
    cells = [pd.Series(grid.values(ends.ravel())) for ends in (first, last)]
    lower, upper = (ends.reshape(n, m) for ends in codec.edges(*cells))
    if isinstance(codec, QuantileCodec):
        atoms = codec.codes_between(*cells).reshape(n, m, codec.n_codes) & ~is_empty[..., None]
        log_share[atoms.any(1) & target.is_known[:, None]] = 0.0
        is_empty |= atoms.any(-1) & (lower >= upper)  # no other number is between
    log_share[(~is_empty).any(1) & target.is_known, -1] = 0.0
    is_free = ~target.is_known
    lower, upper = np.where(is_empty, NOWHERE, lower), np.where(is_empty, np.inf, upper)
    lower[is_free], upper[is_free] = NOWHERE, np.inf
    lower[is_free, 0] = -np.inf
    ends = torch.from_numpy(lower), torch.from_numpy(np.maximum(lower, upper))
    return Region(torch.from_numpy(log_share), *ends)


def _disjoint(low: Indices, high: Indices) -> tuple[Indices, Indices]:
    """Returns intervals with the same union in each row that do not overlap, so that no index
    counts twice; an interval can become empty. Shape: (n, m) each."""
    if low.shape[1] == 1:
        return low, high
    order = np.argsort(low, axis=1)
    low, high = (np.take_along_axis(ends, order, axis=1) for ends in (low, high))
    last = np.maximum.accumulate(high, axis=1)
    low[:, 1:] = np.maximum(low[:, 1:], last[:, :-1] + 1)
    return low, high


def blanks_region(codec: ColumnCodec, *, alone: bool) -> Region:
    """Returns a set of possible cells (region), the same for all rows: only missing cells if
    `alone`, else all cells that are not missing."""
    everything = Region.everything(codec.n_codes)
    is_blank = torch.arange(codec.n_codes) == (0 if codec.has_missing else -1)
    if not alone:
        return replace(everything, log_share=everything.log_share.masked_fill(is_blank, -torch.inf))
    nowhere = torch.full((1, 1), NOWHERE, dtype=torch.float64)
    log_share = everything.log_share.masked_fill(~is_blank, -torch.inf)
    return Region(log_share, nowhere, everything.upper)


def lies_in(region: Region, codes: Tensor, values: Tensor) -> Tensor:
    """Returns a mask of the N cells that are in their row's region, the set of possible cells.

    Shape: codes (N,), values (N,) -> (N,).
    """
    is_code = ~torch.isneginf(region.log_share.gather(-1, codes.long()[:, None])[:, 0])
    if not region.lower.shape[-1]:
        return is_code
    placed = values[:, None]
    is_value = ((placed >= region.lower) & (placed <= region.upper)).any(-1)
    is_point = codes == region.log_share.shape[-1] - 1
    return is_code & (is_value | ~is_point)


def indices_of_rows(rows: Tensor, n_known: int) -> npt.NDArray[np.int64]:
    """Converts row indices to a NumPy array that indexes a restriction of `n_known` rows; all
    indices become 0 if the restriction has a single row, which applies to all."""
    found: npt.NDArray[np.int64] = rows.numpy()
    return found if n_known > 1 else np.zeros_like(found)


def rows_of(frame: pd.DataFrame, at: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Returns the rows of a frame with the given indices, numbered anew."""
    return frame.iloc[at].reset_index(drop=True)


def rows_of_particles(frame: pd.DataFrame | None, n: int) -> pd.DataFrame | None:
    """Returns a frame for n particles (weighted draws of rows); its single row, if it has only one,
    is repeated for all. None without a frame."""
    if frame is None or len(frame) == n:
        return frame
    return rows_of(frame, np.zeros(n, dtype=np.int64))
