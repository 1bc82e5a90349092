"""Dates that are not known, but some of their parts: months, weekdays, hours.

What the known parts leave is found together, by a look at every day or hour between the column's
limits: a date of which the month, the day and the hour are known is hardly ever met by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor

from gcvae.arrays import Mask, Numbers
from gcvae.codec.table_codec import TableCodec
from gcvae.rules.alternatives import Alternative
from gcvae.rules.grids import Grid, grid_of
from gcvae.rules.predictions import Prediction
from gcvae.rules.residuals import Residual
from gcvae.sampling.wanted_places import Places, WantedPlaces
from gcvae.spelling.date_text import DAY_NANOSECONDS
from gcvae.spelling.never_dates import are_never

_HOUR_NANOSECONDS = DAY_NANOSECONDS // 24
_MOST_BLOCKS = 200_000
"""Days or hours that are looked at: more than 20 years of hours."""
_MOST_RUNS = 800
"""Of blocks that are possible: an hour of every day of two years. Of more, chance meets one."""


@dataclass(frozen=True)
class AskedDate:
    """What the known parts of a date ask of it.

    Attributes:
        codec: Of the table.
        parent: The date.
        wanted: Its places.
    """

    codec: TableCodec
    parent: str
    wanted: WantedPlaces

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.wanted.low)

    @property
    def says_more(self) -> Mask:
        """Of which rows something is known. Shape: (n,)."""
        return self.wanted.is_known

    def take(self, rows: npt.NDArray[np.int64]) -> AskedDate:
        """What is asked in these rows."""
        return AskedDate(self.codec, self.parent, self.wanted.take(rows))

    def of_particles(self, codes: Tensor, values: Tensor) -> WantedPlaces:
        """Places of the date for each particle. Shape: (N, D) twice."""
        return self.wanted.of_particles(codes, values)


def asked_dates(
    codec: TableCodec, frame: pd.DataFrame, guessed: pd.DataFrame
) -> Iterator[AskedDate]:
    """What is asked of each date of which a part is known in rows where it is not.

    Args:
        codec: Of the table.
        frame: Typed; blank cells are not known.
        guessed: The same, and what follows from known cells.
    """
    parts: dict[str, list[Prediction]] = {}
    for rewriting in codec.reduction.rewritings:
        if isinstance(rewriting, Residual | Alternative) and _is_part(rewriting.prediction):
            parts.setdefault(rewriting.parents[0], []).append(rewriting.prediction)
    for parent, rules in parts.items():
        cells = guessed[[rule.column.name for rule in rules]]
        is_asked = frame[parent].isna().to_numpy() & cells.notna().to_numpy().any(axis=1)
        starts = _blocks(codec, parent) if is_asked.any() else None
        if starts is not None:
            ends = _ends(codec, parent, guessed)
            yield AskedDate(codec, parent, _wanted(codec, rules, cells, ends, is_asked, starts))


def _is_part(prediction: Prediction) -> bool:
    """Whether a column is a function of one date, and no date itself."""
    columns = prediction.parents.columns
    is_of_date = len(columns) == 1 and columns[0].has_times and not prediction.column.has_times
    return is_of_date and not prediction.form.is_inequality


def _ends(codec: TableCodec, parent: str, frame: pd.DataFrame) -> Numbers:
    """The first and the last moment of a date by the other dates that are known to lie before or
    behind it, in nanoseconds; infinite where none says so. Shape: (n, 2)."""
    ends = np.tile(np.array([-np.inf, np.inf]), (len(frame), 1))
    for rewriting in codec.reduction.rewritings:
        if not isinstance(rewriting, Residual) or not rewriting.is_inequality:
            continue
        if rewriting.parents != (parent,) or not rewriting.prediction.form.is_of_one:
            continue
        cells = frame[rewriting.column]
        known = (cells.notna() & ~are_never(cells)).to_numpy()
        step = float(rewriting.grid.step or 0) * rewriting.stride
        moments = cells.to_numpy("datetime64[ns]").astype(np.int64).astype(np.float64)
        first, last = rewriting.limits  # of y less the date, but for what rounding takes
        low = np.where(known, moments - (last + 1) * step, -np.inf)
        high = np.where(known, moments - (first - 1) * step, np.inf)
        ends = np.stack([np.maximum(ends[:, 0], low), np.minimum(ends[:, 1], high)], axis=1)
    return ends


def _blocks(codec: TableCodec, parent: str) -> Places | None:
    """First places of the days or hours between a date's limits; None where they are too many."""
    grid = Grid.of(codec.schema[parent])
    assert grid is not None, "its parts are a rule"
    assert grid.step is not None, "it is a date"
    size = max(1, _HOUR_NANOSECONDS // grid.step)
    first = grid.low - grid.low % size
    if (grid.high - first) // size >= _MOST_BLOCKS:
        return None
    return np.arange(first, grid.high + 1, size)


def _wanted(
    codec: TableCodec,
    rules: Sequence[Prediction],
    cells: pd.DataFrame,
    ends: Numbers,
    is_asked: Mask,
    starts: Places,
) -> WantedPlaces:
    """The places of a date whose parts are these cells, between its ends.

    Shape: ends (n, 2), starts (B,).
    """
    schema, parent = codec.schema, rules[0].parents.names[0]
    grid = Grid.of(schema[parent])
    assert grid is not None, "it has blocks"
    dates = pd.DataFrame({parent: grid.values(starts, limited=False)})
    said = [_places(rule, rule.predicted(dates)) for rule in rules]
    size = int(starts[1] - starts[0]) if len(starts) > 1 else grid.high - grid.low + 1
    low = np.ones((len(cells), _MOST_RUNS), dtype=np.int64)
    high = np.zeros_like(low)  # no interval holds anything yet
    is_known = np.zeros(len(cells), dtype=bool)
    parts_of = [_places(rule, cells[rule.column.name]) for rule in rules]
    numbers = np.concatenate([np.stack(parts_of, axis=1), ends], axis=1)
    step = float(grid.step or 1)
    asked, which = np.unique(numbers[is_asked], axis=0, return_inverse=True)
    rows = np.flatnonzero(is_asked)
    for i, (*parts, first_moment, last_moment) in enumerate(asked):
        is_possible = ((starts + size) * step > first_moment) & (starts * step <= last_moment)
        for of_blocks, part in zip(said, parts, strict=True):
            is_possible &= np.isnan(part) | (of_blocks == part)
        first, last = _runs(is_possible)
        if not 0 < len(first) <= _MOST_RUNS:
            continue
        own = rows[which.ravel() == i]
        is_known[own] = True
        low[own, : len(first)], high[own, : len(first)] = starts[first], starts[last] + size - 1
    used = max(1, int((low <= high).sum(axis=1).max(initial=1)))
    return WantedPlaces(low[:, :used], high[:, :used], is_known, np.zeros_like(is_known))


def _places(rule: Prediction, cells: pd.Series[Any]) -> Numbers:
    """The places of cells of a part, NaN where they are blank. Shape: (n,)."""
    known = cells.notna().to_numpy()
    found = np.full(len(cells), np.nan)
    found[known] = grid_of(rule.column).places(cells[known])
    return found


def _runs(is_possible: Mask) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The first and the last of each run. Shape: (B,) -> (R,), (R,)."""
    edges = np.diff(np.concatenate([[0], is_possible.astype(np.int8), [0]]))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
