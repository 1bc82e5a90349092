"""Constraints on unknown dates from their known parts: months, weekdays, hours.

Every day or hour between the column's limits is tested against all known parts together, because a
date drawn at random hardly ever has a given month, day and hour at once.
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
from gcvae.sampling.target_intervals import Places, TargetIntervals
from gcvae.spelling.date_text import DAY_NANOSECONDS
from gcvae.spelling.never_dates import are_never

_HOUR_NANOSECONDS = DAY_NANOSECONDS // 24
_MOST_BLOCKS = 200_000
"""Largest number of days or hours that are tested: more than 20 years of hours."""
_MOST_RUNS = 800
"""Largest number of runs of possible blocks: an hour of every day of two years. Random draws meet a
set of more runs often enough."""


@dataclass(frozen=True)
class DateConstraint:
    """Constraint on an unknown date, from its known parts.

    Attributes:
        codec: Codec of the table.
        parent: Name of the date's column.
        target: Possible values of the date.
    """

    codec: TableCodec
    parent: str
    target: TargetIntervals

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.target.low)

    @property
    def is_informative(self) -> Mask:
        """Mask of the rows with a constraint. Shape: (n,)."""
        return self.target.is_known

    def take(self, rows: npt.NDArray[np.int64]) -> DateConstraint:
        """Returns the constraint of these rows."""
        return DateConstraint(self.codec, self.parent, self.target.take(rows))

    def of_particles(self, codes: Tensor, values: Tensor) -> TargetIntervals:
        """Returns the possible values of the date for each particle. Shape: (N, D) twice."""
        return self.target.of_particles(codes, values)


def date_constraints(
    codec: TableCodec, frame: pd.DataFrame, guessed: pd.DataFrame
) -> Iterator[DateConstraint]:
    """Yields a constraint for each date that is unknown in rows where a part of it is known.

    Args:
        codec: Codec of the table.
        frame: Typed rows; missing cells are unknown.
        guessed: The same rows, completed with cells that follow from known ones.
    """
    parts: dict[str, list[Prediction]] = {}
    for rewriting in codec.reduction.rewritings:
        if isinstance(rewriting, Residual | Alternative) and _is_part(rewriting.prediction):
            parts.setdefault(rewriting.parents[0], []).append(rewriting.prediction)
    for parent, rules in parts.items():
        cells = guessed[[rule.column.name for rule in rules]]
        is_constrained = frame[parent].isna().to_numpy() & cells.notna().to_numpy().any(axis=1)
        starts = _blocks(codec, parent) if is_constrained.any() else None
        if starts is not None:
            ends = _ends(codec, parent, guessed)
            yield DateConstraint(
                codec, parent, _target(codec, rules, cells, ends, is_constrained, starts)
            )


def _is_part(prediction: Prediction) -> bool:
    """Returns whether a column is a function of one date, and not a date itself."""
    columns = prediction.parents.columns
    is_of_date = len(columns) == 1 and columns[0].has_times and not prediction.column.has_times
    return is_of_date and not prediction.form.is_inequality


def _ends(codec: TableCodec, parent: str, frame: pd.DataFrame) -> Numbers:
    """Returns the first and the last possible moment of a date, in nanoseconds, from inequalities
    with other known dates; infinite if there are none. Shape: (n, 2)."""
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
        first, last = rewriting.limits  # of y less the date, up to rounding
        low = np.where(known, moments - (last + 1) * step, -np.inf)
        high = np.where(known, moments - (first - 1) * step, np.inf)
        ends = np.stack([np.maximum(ends[:, 0], low), np.minimum(ends[:, 1], high)], axis=1)
    return ends


def _blocks(codec: TableCodec, parent: str) -> Places | None:
    """Returns the grid indices at which the days or hours between a date's limits begin; None if
    there are too many."""
    grid = Grid.of(codec.schema[parent])
    assert grid is not None, "its parts are a rule"
    assert grid.step is not None, "it is a date"
    size = max(1, _HOUR_NANOSECONDS // grid.step)
    first = grid.low - grid.low % size
    if (grid.high - first) // size >= _MOST_BLOCKS:
        return None
    return np.arange(first, grid.high + 1, size)


def _target(
    codec: TableCodec,
    rules: Sequence[Prediction],
    cells: pd.DataFrame,
    ends: Numbers,
    is_constrained: Mask,
    starts: Places,
) -> TargetIntervals:
    """Returns the possible values of a date with these parts, between its ends.

    Shape: ends (n, 2), starts (B,).
    """
    schema, parent = codec.schema, rules[0].parents.names[0]
    grid = Grid.of(schema[parent])
    assert grid is not None, "it has blocks"
    dates = pd.DataFrame({parent: grid.values(starts, limited=False)})
    said = [_places(rule, rule.predicted(dates)) for rule in rules]
    size = int(starts[1] - starts[0]) if len(starts) > 1 else grid.high - grid.low + 1
    low = np.ones((len(cells), _MOST_RUNS), dtype=np.int64)
    high = np.zeros_like(low)  # all intervals empty
    is_known = np.zeros(len(cells), dtype=bool)
    parts_of = [_places(rule, cells[rule.column.name]) for rule in rules]
    numbers = np.concatenate([np.stack(parts_of, axis=1), ends], axis=1)
    step = float(grid.step or 1)
    asked, which = np.unique(numbers[is_constrained], axis=0, return_inverse=True)
    rows = np.flatnonzero(is_constrained)
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
    return TargetIntervals(low[:, :used], high[:, :used], is_known, np.zeros_like(is_known))


def _places(rule: Prediction, cells: pd.Series[Any]) -> Numbers:
    """Returns the grid indices of a part's cells, NaN for missing ones. Shape: (n,)."""
    known = cells.notna().to_numpy()
    found = np.full(len(cells), np.nan)
    found[known] = grid_of(rule.column).places(cells[known])
    return found


def _runs(is_possible: Mask) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Returns the first and the last index of each run. Shape: (B,) -> (R,), (R,)."""
    edges = np.diff(np.concatenate([[0], is_possible.astype(np.int8), [0]]))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
