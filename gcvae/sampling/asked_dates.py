"""Dates that are not known, but some of their parts: months, weekdays, hours.

What the known parts leave is found together, by a look at every day or hour between the column's
limits: a date of which the month, the day and the hour are known is hardly ever met by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.codec.table_codec import TableCodec
from gcvae.rules.grids import Grid
from gcvae.rules.predictions import predicted, quantities
from gcvae.rules.residuals import Residual
from gcvae.sampling.wanted_places import Places, WantedPlaces
from gcvae.schema.rules import DatePartRule
from gcvae.spelling.date_text import DAY_NANOSECONDS

_HOUR_NANOSECONDS = DAY_NANOSECONDS // 24
_MOST_BLOCKS = 200_000
"""Days or hours that are looked at: more than 20 years of hours."""
_MOST_RUNS = 160
"""Of blocks that are possible: the weekdays of three years. Of more, chance meets one."""


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


def asked_dates(codec: TableCodec, frame: pd.DataFrame) -> Iterator[AskedDate]:
    """What is asked of each date of which a part is known in rows where it is not.

    Args:
        codec: Of the table.
        frame: Typed; blank cells are not known.
    """
    parts: dict[str, list[DatePartRule]] = {}
    for rewriting in codec.reduction.rewritings:
        if isinstance(rewriting, Residual) and isinstance(rewriting.rule, DatePartRule):
            parts.setdefault(rewriting.rule.of, []).append(rewriting.rule)
    for parent, rules in parts.items():
        cells = frame[[rule.column for rule in rules]]
        is_asked = frame[parent].isna().to_numpy() & cells.notna().to_numpy().any(axis=1)
        starts = _blocks(codec, parent) if is_asked.any() else None
        if starts is not None:
            yield AskedDate(codec, parent, _wanted(codec, rules, cells, is_asked, starts))


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
    rules: Sequence[DatePartRule],
    cells: pd.DataFrame,
    is_asked: Mask,
    starts: Places,
) -> WantedPlaces:
    """The places of a date whose parts are these cells. Shape: starts (B,)."""
    schema, parent = codec.schema, rules[0].of
    grid = Grid.of(schema[parent])
    assert grid is not None, "it has blocks"
    dates = pd.DataFrame({parent: grid.values(starts, limited=False)})
    said = {rule.column: quantities(predicted(rule, dates, schema[rule.column])) for rule in rules}
    size = int(starts[1] - starts[0]) if len(starts) > 1 else grid.high - grid.low + 1
    low = np.ones((len(cells), _MOST_RUNS), dtype=np.int64)
    high = np.zeros_like(low)  # no interval holds anything yet
    is_known = np.zeros(len(cells), dtype=bool)
    numbers = np.stack([quantities(cells[rule.column]) for rule in rules], axis=1)
    asked, which = np.unique(numbers[is_asked], axis=0, return_inverse=True)
    rows = np.flatnonzero(is_asked)
    for i, parts in enumerate(asked):
        is_possible = np.ones(len(starts), dtype=bool)
        for rule, part in zip(rules, parts, strict=True):
            is_possible &= np.isnan(part) | (said[rule.column] == part)
        first, last = _runs(is_possible)
        if not 0 < len(first) <= _MOST_RUNS:
            continue
        own = rows[which.ravel() == i]
        is_known[own] = True
        low[own, : len(first)], high[own, : len(first)] = starts[first], starts[last] + size - 1
    used = max(1, int((low <= high).sum(axis=1).max(initial=1)))
    return WantedPlaces(low[:, :used], high[:, :used], is_known, np.zeros_like(is_known))


def _runs(is_possible: Mask) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The first and the last of each run. Shape: (B,) -> (R,), (R,)."""
    edges = np.diff(np.concatenate([[0], is_possible.astype(np.int8), [0]]))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
