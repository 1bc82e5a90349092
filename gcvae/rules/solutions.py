"""Solves the formula of a rule for one column, given its result and the other columns."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Mask, Numbers
from gcvae.rules.grids import LARGEST_INDEX, Grid, Indices
from gcvae.rules.predictions import Prediction, quantities
from gcvae.schema.columns import Column
from gcvae.schema.expressions import names_in
from gcvae.schema.rules import Formula

MINUTES = 1440
"""Number of minutes in a day."""
_FARTHEST = 1 << 40
"""Largest multiple of a numeric column's resolution among which solutions are searched."""


_MONOTONE_FUNCTIONS = {
    "round",
    "floor",
    "ceil",
    "min",
    "max",
    "days",
    "months",
    "years",
    "add_months",
}
_MONOTONE_NODES = (
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.UnaryOp, ast.USub, ast.UAdd,
    ast.Name, ast.Load, ast.Constant, ast.Call, ast.Subscript,
)  # fmt: skip


def can_solve(form: Formula, parent: str, is_positive: bool = False) -> bool:
    """Returns whether `solutions` can solve a formula for its column `parent`, because it is
    monotone in that column.

    This holds if the formula contains the column once, and otherwise consists of sums, products,
    quotients and monotone functions, such as `round` or `months`. Powers are permitted only if all
    values of the column are positive (`is_positive`). The column may also be in the key of a lookup
    if the key only compares it with limits (`limits_of`). A formula `clock(start, minutes)` can be
    solved too. Some solutions of a quotient are not found if the divisor takes both signs.
    """
    if clock_of(form) is not None:
        return True
    keys = [node.slice for node in ast.walk(form.value) if isinstance(node, ast.Subscript)]
    of_keys = {node for key in keys for node in ast.walk(key)}
    nodes = [node for node in ast.walk(form.value) if node not in of_keys]
    powers = [n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)]
    keys = [key for key in keys if parent in names_in(key) and not _limits(key, parent)]
    keys += [] if is_positive else powers
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    n_named = sum(isinstance(node, ast.Name) and node.id == parent for node in nodes)
    return (
        n_named == 1
        and all(isinstance(node, _MONOTONE_NODES) for node in nodes)
        and all(getattr(call, "id", "") in _MONOTONE_FUNCTIONS for call in calls)
        and not any(parent in names_in(key) for key in keys)
    )


def limits_of(form: Formula, parent: str) -> list[float]:
    """Returns the limits of a column in the keys of a formula's lookups, such as 7 and 30 of
    rate[bracket(days, 7, 30)], in ascending order."""
    keys = (node.slice for node in ast.walk(form.value) if isinstance(node, ast.Subscript))
    return sorted({limit for key in keys for limit in _limits(key, parent)})


def _limits(key: ast.expr, parent: str) -> list[float]:
    """Returns the limits of a column in a key `bracket(parent, 7, 30)` or `parent >= 7`; an empty
    list for other keys."""
    match key:
        case ast.Call(func=ast.Name(id="bracket"), args=[ast.Name(id=name), *ends]):
            pass
        case ast.Compare(left=ast.Name(id=name), ops=[ast.GtE()], comparators=ends):
            pass
        case _:
            return []
    try:
        limits = [ast.literal_eval(end) for end in ends]
    except ValueError:
        return []
    is_own = name == parent and all(isinstance(limit, int | float) for limit in limits)
    return limits if is_own else []


def clock_of(form: Formula) -> tuple[str, str] | None:
    """Returns the column names (start, minutes) of a formula `clock(start, minutes)`; else None."""
    match form.value:
        case ast.Call(
            func=ast.Name(id="clock"), args=[ast.Name(id=start), ast.Name(id=minutes), *_]
        ):
            return start, minutes
    return None


def solutions(
    prediction: Prediction, parent: Column, others: pd.DataFrame, low: Indices, high: Indices
) -> tuple[Indices, Indices]:
    """Returns the intervals in which the column `parent` lies if a formula f lies in given
    intervals. All numbers are multiples of the columns' resolutions.

    Args:
        prediction: Compiled formula f.
        others: Cells of the other columns of f. n rows.
        low, high: First and last values of m intervals of f. Shape: (n, m) each.

    Returns:
        (First values, last values) of m' intervals of `parent`; m' may differ from m. An interval
        is empty if first > last. Shape: (n, m') each.
    """
    grid, own = Grid.of(prediction.column), Grid.of(parent)
    if grid is None or own is None:
        return np.ones(low.shape, dtype=np.int64), np.zeros(low.shape, dtype=np.int64)
    clock = clock_of(prediction.form)
    if clock is not None:
        return _of_clock(clock, parent.name, others, low)

    def g(indices: Indices) -> Numbers:
        """Returns f for a value of `parent` in each row, both as multiples of the resolution; NaN
        where f has no value."""
        cells = {name: others[name] for name in others.columns}
        cells[parent.name] = pd.Series(own.values(indices), index=others.index)
        found = prediction.predicted(pd.DataFrame(cells, index=others.index))
        indices_of_g = np.full(len(others), np.nan)
        has_value = found.notna().to_numpy()
        indices_of_g[has_value] = grid.indices(found[has_value])
        return indices_of_g

    limits = limits_of(prediction.form, parent.name)
    firsts = [own.low, *(math.ceil(round(limit * own.per_unit, 6)) for limit in limits)]
    ends = [
        monotone_solutions(g, replace(own, low=first, high=last), len(others), low, high)
        for first, last in zip(
            firsts, [*(first - 1 for first in firsts[1:]), own.high], strict=True
        )
    ]
    lows, highs = (np.concatenate(part, axis=1) for part in zip(*ends, strict=True))
    return lows, highs


def monotone_solutions(
    g: Callable[[Indices], Numbers], own: Grid, n: int, low: Indices, high: Indices
) -> tuple[Indices, Indices]:
    """Returns the intervals in which a column lies if a monotone function g of it lies in given
    intervals. All numbers are indices: multiples of the resolution.

    Args:
        g: Returns the index of the result for an index of the column in each of n rows; NaN where
            there is no result. Shape: (n,) -> (n,).
        own: Grid of the column.
        n: Number of rows.
        low, high: First and last values of m intervals of g. Shape: (n, m) each.

    Returns:
        (First values, last values) of the intervals of the column. An interval is empty if first >
        last. Shape: (n, m) each.
    """
    # The ends of the column are the same for all intervals.
    farthest = _FARTHEST if own.step is None else LARGEST_INDEX
    first = np.full(n, max(own.low, -farthest))
    last = np.full(n, min(own.high, farthest))
    line = _Line(first, last, g(first), g(last))
    ends = [_of_monotone(g, line, low[:, i], high[:, i]) for i in range(low.shape[1])]
    firsts, lasts = (np.stack(part, axis=1) for part in zip(*ends, strict=True))
    return firsts, lasts


@dataclass(frozen=True)
class _Line:
    """Straight line that approximates a function g of a column's indices, in each of n rows.

    It leads from the point (first, at_first) to the point (last, at_last).

    Attributes:
        first, last: First and last index of the column. Shape: (n,) each.
        at_first, at_last: Values of g at these indices. Shape: (n,) each.
    """

    first: Indices
    last: Indices
    at_first: Numbers
    at_last: Numbers

    def around(self, target: Numbers) -> tuple[Indices, Indices]:
        """Returns (lower, upper) indices between which the line reaches the target of each row,
        with a margin for rounding. Both are the first index where the line is undefined. Shape:
        (n,) -> (n,) twice."""
        with np.errstate(divide="ignore", invalid="ignore"):
            run = (self.last - self.first) / (self.at_last - self.at_first)
            found = self.first + (target - self.at_first) * run
            reach = np.ceil(np.abs(run)) + 1.0
            below, above = found - reach, found + reach
        return self._clipped(below), self._clipped(above)

    def _clipped(self, indices: Numbers) -> Indices:
        inside = np.clip(np.where(np.isnan(indices), self.first, indices), self.first, self.last)
        return inside.astype(np.int64)


def _of_monotone(
    g: Callable[[Indices], Numbers], line: _Line, low: Indices, high: Indices
) -> tuple[Indices, Indices]:
    """Returns in each row the first and last index with low <= g <= high, for a monotone function
    g. Shape: (n,) each.

    Nearly all such functions are rounded straight lines. The search thus begins where the straight
    line through the ends of g reaches `low` or `high`; bisection finds other solutions.
    """
    first, last, falls = line.first, line.last, line.at_first > line.at_last

    def crossing(is_beyond: Callable[[Numbers], Mask], target: Numbers) -> Indices:
        """Returns in each row the smallest index for which `is_beyond(g)` holds; last + 1 if there
        is none."""
        below, above = first - 1, last + 1

        def look(middle: Indices) -> None:
            nonlocal below, above
            is_between = (below < middle) & (middle < above)
            beyond = is_beyond(g(np.clip(middle, first, last)))
            below = np.where(is_between & ~beyond, middle, below)
            above = np.where(is_between & beyond, middle, above)

        for near in line.around(target):
            look(near)
        while (above - below > 1).any():
            look((below + above) // 2)
        return above

    upper, lower = high + 0.5, low - 0.5
    start = crossing(
        lambda found: np.where(falls, found <= high, found >= low), np.where(falls, upper, lower)
    )
    end = crossing(
        lambda found: np.where(falls, found < low, found > high), np.where(falls, lower, upper)
    )
    return start, end - 1


def _of_clock(
    clock: tuple[str, str], parent: str, others: pd.DataFrame, target: Indices
) -> tuple[Indices, Indices]:
    """Solves the formula clock(start, minutes) for the column `parent`, which is one of the two.
    `others` contains the cells of the other column. The results are the first column of `target`.

    Returns (first values, last values) of intervals that contain one number each. There is one for
    `start`. There are three for `minutes`, a day apart, because a time of day does not tell on
    which day it is. Shape: (n, 1) or (n, 3) each.
    """
    end = minutes_of(target[:, 0])
    begin, gone = clock
    known = others[gone if parent == begin else begin]
    cells: Any = (
        np.nan_to_num(quantities(known)).clip(-LARGEST_INDEX, LARGEST_INDEX).astype(np.int64)
    )
    if parent == begin:
        start = (end - cells) % MINUTES
        indices = (start // 60 * 100 + start % 60)[:, None]
        return indices, indices
    gap = (end - minutes_of(cells)) % MINUTES
    indices = gap[:, None] + MINUTES * np.array([-1, 0, 1])
    return indices, indices


def minutes_of(clock: Any) -> Any:
    """Converts times of day, such as 517 for 05:17, to minutes since midnight."""
    return clock // 100 * 60 + clock % 100
