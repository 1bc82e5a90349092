"""Regions of possible cells of a column: a set of codes, and intervals of values.

A region is a condition on one column, expressed in the codec's codes and values. The region of a
known cell is one code and, for a number, the interval of values that are rounded to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask, Numbers
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.column_codecs import RealCodec
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.region import Region
from gcvae.codec.table_codec import TableCodec
from gcvae.sampling.dependent_regions import RegionsByRow, regions_of_rows

AnyRegion = Region | RegionsByRow
Regions = Sequence[AnyRegion | None]
"""Region of each column; None for an unconditioned one."""


def level_region(log_share: Numbers) -> Region:
    """Returns the region (set of possible cells) of a column of levels, the same for all rows.

    `log_share` is the log of a share for each of K codes: 0 if the code is possible, -inf if it is
    excluded. If a code stands for several levels, of which only some are possible, it is the log of
    the share of the code's rows with a possible level. Shape: (K,).
    """
    nothing = torch.zeros(1, 0, dtype=torch.float64)
    return Region(torch.from_numpy(log_share)[None], nothing, nothing)


def number_region(
    codec: RealCodec | QuantileCodec, low: pd.Series[Any], high: pd.Series[Any], missing: bool
) -> Region | None:
    """Returns the region (set of possible cells) of numbers in m closed intervals; None if empty.

    An interval of a single number has a density but no probability. It is ignored if other cells of
    the region have a probability, because densities and probabilities cannot be compared.

    Args:
        low: Lower end of each interval, in the column's dtype. Shape: (m,).
        high: Upper end of each interval, in the column's dtype. Shape: (m,).
        missing: Whether the region includes missing cells, for which the codec must have a code.
    """
    log_share = np.full(codec.n_codes, -np.inf)
    if len(low):
        log_share[codec.codes_between(low, high).any(axis=0)] = 0.0
    if missing:
        log_share[0] = 0.0
    possible = log_share > -np.inf
    lower, upper = codec.edges(low, high) if len(low) else (np.zeros(0), np.zeros(0))
    has_mass = lower < upper
    exists = (lower < np.inf) & (upper > -np.inf)
    kept = has_mass if has_mass.any() or possible.any() else exists
    if kept.any():
        log_share[-1] = 0.0
    elif not possible.any():
        return None
    lower, upper = lower[kept], np.maximum(lower, upper)[kept]
    if not len(lower):  # excludes the point code and all intervals under it
        lower, upper = np.array([-np.inf]), np.array([np.inf])
    shares, *ends = (torch.from_numpy(found)[None] for found in (log_share, lower, upper))
    return Region(shares, *ends)


def known_regions(
    codec: TableCodec,
    frame: pd.DataFrame,
    rows: EncodedTable,
    order: Sequence[int] | None,
    *,
    may_be_missing: bool,
    open_blanks: Mapping[str, Mask] = MappingProxyType({}),
    impossible: Mapping[str, Mask] = MappingProxyType({}),
) -> list[AnyRegion | None]:
    """Returns for each column the set of cells (region) that are possible in each row, given the
    row's known cells; None for columns without a restriction.

    Args:
        frame: Rows with cells of the columns' dtypes.
        rows: The same rows, encoded; cells that are not `observed` are unknown.
        order: Order in which the decoder generates the columns; None if the model has no order.
        may_be_missing: Whether an unknown cell may be a missing value.
        open_blanks: By column, a mask of the unknown cells that may be missing values even if
            `may_be_missing` is False. Shape: (n,) each.
        impossible: By column, a mask of excluded levels. Shape: (n, K) for K levels each.
    """
    reduced = codec.reduced(frame)
    known: list[Region | None] = []
    for j, column in enumerate(codec.columns):
        owner = codec.reduction.owners.get(column.name, column.name)
        cells_may_be_missing = np.full(len(frame), may_be_missing) | open_blanks.get(owner, False)
        wrong = None if column.name in codec.reduction.owners else impossible.get(column.name)
        of_codes = None if wrong is None else _impossible_codes(column, wrong)
        cells = reduced[column.name]
        known.append(_known_region(column, cells, rows, j, cells_may_be_missing, of_codes))
    regions: list[AnyRegion | None] = [*known]
    if len(codec.reduction) and order is not None:
        of_rules = regions_of_rows(codec, frame, order, may_be_missing=may_be_missing)
        for j, region in of_rules.items():
            regions[j] = replace(region, default_region=known[j])
    return regions


def _impossible_codes(codec: ColumnCodec, impossible: Mask) -> Tensor:
    """Returns a mask of the codes all of whose levels are impossible. Shape: (n, K) for K levels ->
    (n, number of codes)."""
    levels = pd.Series(codec.column.typed_levels)
    codes = torch.from_numpy(codec.encode(levels)[0].astype(np.int64))
    has_code = codes >= 0
    found = torch.zeros(len(impossible), codec.n_codes, dtype=torch.bool)
    possible = found.clone()
    wrong = torch.from_numpy(impossible)[:, has_code]
    for k, code in enumerate(codes[has_code].tolist()):
        found[:, code] |= wrong[:, k]
        possible[:, code] |= ~wrong[:, k]
    return found & ~possible


def _known_region(
    codec: ColumnCodec,
    series: pd.Series[Any],
    rows: EncodedTable,
    j: int,
    cells_may_be_missing: Mask,
    impossible: Tensor | None,
) -> Region | None:
    """Returns the set of possible cells (region) of column j in each row: the known cell or, where
    it is unknown, all cells except the codes of the mask `impossible` and, where they are not
    allowed, missing cells. None if this excludes nothing in any row."""
    known = rows.observed[:, j]
    bars_missing = ~known & torch.from_numpy(~cells_may_be_missing) & codec.has_missing
    if not bool(known.any()) and not bool(bars_missing.any()) and impossible is None:
        return None
    codes = rows.codes[:, j].long()
    is_own = torch.arange(codec.n_codes) == codes[:, None]
    log_share = torch.where(known[:, None] & ~is_own, -torch.inf, 0.0).double()
    log_share[bars_missing, 0] = -torch.inf
    if impossible is not None:
        log_share[impossible & ~known[:, None]] = -torch.inf
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
