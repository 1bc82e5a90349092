"""Restricts unknown dates of a row by their known parts, such as the month, weekday or hour.

A part is a column that a formula computes from a date column. A date drawn at random hardly ever
has a given month, day and hour at once. Every day or hour between the limits of the date column is
therefore tested against all known parts together, and unknown dates are drawn among the days or
hours (blocks) that agree with every part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import DAY, Mask, Numbers
from gcvae.codec.table_codec import TableCodec
from gcvae.rules.alternatives import Alternative
from gcvae.rules.grids import Grid, grid_of
from gcvae.rules.predictions import Prediction
from gcvae.rules.residuals import Residual
from gcvae.sampling.target_intervals import Indices, TargetIntervals

_HOUR = DAY // 24
_MOST_BLOCKS = 200_000
"""Maximum number of days or hours that are tested: more than 20 years of hours."""
_MOST_RUNS = 100
"""Maximum number of runs of adjacent possible blocks, such as one weekday in nearly two years. With
more runs, such as one hour of every day, the date is not restricted: draws without restriction
often succeed, and so many probabilities would take longer to compute than they save."""


def date_constraints(
    codec: TableCodec,
    frame: pd.DataFrame,
    guessed: pd.DataFrame,
    targets: Mapping[str, TargetIntervals],
) -> Iterator[tuple[str, TargetIntervals]]:
    """Yields (name, possible values) of each date column that is unknown in rows where a column
    computed from the date, such as its month, is known or restricted.

    Args:
        frame: Rows with cells of the columns' dtypes; missing cells are unknown.
        guessed: The same rows, completed with cells that follow from known ones.
        targets: Possible values of restricted columns that are computed from dates, by column.
    """
    parts: dict[str, list[Prediction]] = {}
    for rewriting in codec.reduction.rewritings:
        if isinstance(rewriting, Residual | Alternative) and _is_part(rewriting.prediction):
            parts.setdefault(rewriting.parents[0], []).append(rewriting.prediction)
    for parent, rules in parts.items():
        possible = [
            _possible(rule, guessed[rule.column.name], targets.get(rule.column.name))
            for rule in rules
        ]
        is_known = np.any([part.is_known for part in possible], axis=0)
        is_constrained = frame[parent].isna().to_numpy() & is_known
        starts = _blocks(codec, parent) if is_constrained.any() else None
        if starts is not None:
            ends = _ends(codec, parent, guessed, targets)
            yield parent, _target(codec, rules, possible, ends, is_constrained, starts)


def _possible(
    rule: Prediction, cells: pd.Series[Any], target: TargetIntervals | None
) -> TargetIntervals:
    """Returns the possible values of a column computed from a date (part): its known cell or, where
    the cell is unknown, its restriction `target`."""
    found = TargetIntervals.of_cells(grid_of(rule.column), cells, may_be_missing=False)
    if target is None or found.is_known.all():
        return found
    is_known = found.is_known[:, None]
    low, high = (
        np.where(is_known, known, ends)
        for known, ends in ((found.low, target.low), (found.high, target.high))
    )
    is_set = found.is_known | (target.is_known & ~target.missing)
    return TargetIntervals(low, high, is_set, np.zeros_like(is_set))


def _is_part(prediction: Prediction) -> bool:
    columns = prediction.parents.columns
    is_of_date = len(columns) == 1 and columns[0].has_times and not prediction.column.has_times
    return is_of_date and not prediction.form.is_inequality


def _ends(
    codec: TableCodec,
    parent: str,
    frame: pd.DataFrame,
    targets: Mapping[str, TargetIntervals],
) -> Numbers:
    """Returns the first and the last moment, in microseconds, that inequalities with other known or
    restricted dates leave to a date; infinite without such inequalities. Shape: (n, 2)."""
    ends = np.tile(np.array([-np.inf, np.inf]), (len(frame), 1))
    for rewriting in codec.reduction.rewritings:
        if not isinstance(rewriting, Residual) or not rewriting.is_inequality:
            continue
        if rewriting.parents != (parent,) or not rewriting.prediction.form.is_of_one:
            continue
        cells = frame[rewriting.column]
        other = _possible(rewriting.prediction, cells, targets.get(rewriting.column))
        unit = float(rewriting.grid.step or 0)
        step = unit * rewriting.stride
        first, last = rewriting.limits  # of y minus the date, up to rounding
        low = np.where(other.is_known, other.low.min(axis=1) * unit - (last + 1) * step, -np.inf)
        high = np.where(other.is_known, other.high.max(axis=1) * unit - (first - 1) * step, np.inf)
        ends = np.stack([np.maximum(ends[:, 0], low), np.minimum(ends[:, 1], high)], axis=1)
    return ends


def _blocks(codec: TableCodec, parent: str) -> Indices | None:
    """Returns the first moment of each of B days or hours between the limits of a date column, as a
    multiple of its resolution; None if there are too many to test. Shape: (B,)."""
    grid = Grid.of(codec.schema[parent])
    assert grid is not None, "its parts are a rule"
    assert grid.step is not None, "it is a date"
    size = max(1, _HOUR // grid.step)
    first = grid.low - grid.low % size
    if (grid.high - first) // size >= _MOST_BLOCKS:
        return None
    return np.arange(first, grid.high + 1, size)


def _target(
    codec: TableCodec,
    rules: Sequence[Prediction],
    possible: Sequence[TargetIntervals],
    ends: Numbers,
    is_constrained: Mask,
    starts: Indices,
) -> TargetIntervals:
    """Returns the possible values of a date column: the days or hours that agree with the known
    month, weekday or hour.

    The date stays unrestricted in a row if no day or hour agrees, or if they form too many
    intervals.

    Args:
        rules: Formulas that compute the parts, such as the month, from the date.
        possible: Possible values of each part.
        ends: First and last possible moment of the date. Shape: (n, 2).
        is_constrained: Mask of the rows to compute. Shape: (n,).
        starts: First moment of each of B days or hours. Shape: (B,).
    """
    schema, parent = codec.schema, rules[0].parents.names[0]
    grid = Grid.of(schema[parent])
    assert grid is not None, "it has blocks"
    dates = pd.DataFrame({parent: grid.values(starts, limited=False)})
    said = [_places(rule, rule.predicted(dates)) for rule in rules]
    size = int(starts[1] - starts[0]) if len(starts) > 1 else grid.high - grid.low + 1
    low = np.ones((len(ends), _MOST_RUNS), dtype=np.int64)
    high = np.zeros_like(low)  # all intervals empty
    is_known = np.zeros(len(ends), dtype=bool)
    columns = [part for p in possible for part in (p.is_known[:, None], p.low, p.high)]
    step = float(grid.step or 1)
    rows = np.flatnonzero(is_constrained)
    keys = np.concatenate([*columns, ends], axis=1)[rows]
    _, examples, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    for i, row in enumerate(rows[examples]):
        first_moment, last_moment = ends[row]
        is_possible = ((starts + size) * step > first_moment) & (starts * step <= last_moment)
        for of_blocks, part in zip(said, possible, strict=True):
            if part.is_known[row]:
                at = of_blocks[:, None]
                is_possible &= ((part.low[row] <= at) & (at <= part.high[row])).any(axis=1)
        first, last = _runs(is_possible)
        if not 0 < len(first) <= _MOST_RUNS:
            continue
        own = rows[which.ravel() == i]
        is_known[own] = True
        low[own, : len(first)], high[own, : len(first)] = starts[first], starts[last] + size - 1
    used = max(1, int((low <= high).sum(axis=1).max(initial=1)))
    return TargetIntervals(low[:, :used], high[:, :used], is_known, np.zeros_like(is_known))


def _places(rule: Prediction, cells: pd.Series[Any]) -> Numbers:
    """Returns cells as multiples of the column's resolution; NaN for missing ones."""
    known = cells.notna().to_numpy()
    found = np.full(len(cells), np.nan)
    found[known] = grid_of(rule.column).indices(cells[known])
    return found


def _runs(is_possible: Mask) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Returns the first and the last index of each of R runs of True. Shape: (B,) -> (R,), (R,)."""
    edges = np.diff(np.concatenate([[0], is_possible.astype(np.int8), [0]]))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
