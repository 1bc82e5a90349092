"""Finds the steps and endings of a column, validated on cells that did not propose them.

    gain of a step = Σ over validation cells of log(share of the cell's remainder · number of
    remainders)

A step is a spacing such as 0.05 or 15 minutes; an ending is a common remainder such as .99. One
half of the cells determines the shares of the remainders. The other half measures the gain in
log-likelihood, in nats, over a model in which all remainders are equally frequent. If the cells
have no steps, the gain is the log of a likelihood ratio with mean one: it exceeds t nats with
probability at most exp(-t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask, Numbers
from gcvae.rules.endings import date_ending_text, number_ending_text
from gcvae.rules.grids import Grid, Indices, counted
from gcvae.rules.splits import DAYS_TO_MONDAY, Split, days_of_month, months_of, step_of
from gcvae.schema.columns import Column
from gcvae.schema.steps import DURATIONS, MONTH, MONTH_END, Step
from gcvae.spelling.date_text import is_time_of_day

MOST_CELLS = 20_000
"""Maximum number of sampled cells; a step common to all cells is computed from all of them."""
LEAST_CELLS = 100
"""Minimum number of cells, not counting frequent values."""
LEAST_NATS = 14.0
"""Minimum gain of all validation cells: one in a million by chance."""
LEAST_NATS_PER_CELL = 0.05
LEAST_NATS_PER_DAY = 0.002
"""Minimum gain per cell of weekdays and days of the month."""
HEAVY_SHARE = 0.005
"""Minimum share of the cells that contain a value or remainder for it to be called frequent."""
HEAVY_CELLS = 5
"""Minimum number of these cells, as in `gcvae.codec.quantile_codec`."""
LEAST_CELLS_PER_ATOM = 12
MOST_ATOMS = 512
MOST_IN_ONE = 0.1
"""Maximum share of the cells between two multiples of a step; else the step is too wide."""
LEAST_HEAVY = 0.5
"""Minimum share of the cells with common remainders."""
_NEARLY = 0.9
"""Share of the largest gain that suffices: the smallest step with that gain is chosen."""
MOST_DECIMALS = 4
"""Maximum number of decimals of numbers with steps; numbers with more are measurements."""
USUAL_SHARE = 0.98
"""Share of the cells that counts as nearly all, for example when decimals are counted."""
_ENDING_SHARE = 0.05
"""Minimum share of the cells with an ending that is shown to users."""
_STEPS_OF_TIME = tuple(
    count * DURATIONS[unit]
    for unit, counts in (
        ("millisecond", (1, 10, 100)),
        ("second", (1, 5, 10, 15, 30)),
        ("minute", (1, 5, 10, 15, 30)),
        ("hour", (1, 2, 3, 6, 12)),
        ("day", (1,)),
    )
    for count in counts
)
_COUNTS = (12, 60, 300, 900, 3_600, 86_400)
"""Steps of numbers that count months, minutes or seconds."""

Found = tuple[tuple[Step, ...], tuple[str, ...]]
"""(steps, endings) as in a schema; both empty if there are none."""


def may_have_steps(column: Column) -> bool:
    """Returns whether to search for steps (spacings of the values, such as 0.05 or 15 minutes): the
    user specified none, and the column has a fixed resolution."""
    is_open = column.steps is None and column.endings is None
    return is_open and column.is_modelled and column.kind.is_real and Grid.of(column) is not None


def with_steps(
    values: pd.Series[Any], codes: npt.NDArray[np.integer[Any]], column: Column
) -> Column:
    """Returns the column with its steps (spacings such as 0.05) and endings (common remainders such
    as .99), if its cells have any.

    Args:
        values: The U distinct values, none missing. Shape: (U,).
        codes: Index in `values` of each of n cells, -1 for missing. Shape: (n,).
        column: Column without steps.
    """
    grid = Grid.of(column)
    if grid is None or not may_have_steps(column):
        return column
    indices = grid.indices(values)
    if grid.step is None and not are_exact(indices, values, grid):
        return column
    known = codes if codes.min(initial=0) >= 0 else codes[codes >= 0]
    steps, endings = found_steps(indices, known, grid)
    return replace(column, steps=steps or None, endings=endings or None)


def are_exact(indices: Indices, present: pd.Series[Any], grid: Grid) -> bool:
    """Returns whether each of n cells equals its nearest multiple of the column's resolution, given
    in `indices`. Shape: (n,), (n,)."""
    numbers = present.to_numpy(dtype=np.float64)
    decimals = grid.column.decimals or 0
    return bool((np.round(indices / grid.per_unit, decimals) == numbers).all())


def found_steps(indices: Indices, codes: npt.NDArray[np.integer[Any]], grid: Grid) -> Found:
    """Returns (steps, endings) of a column's cells: spacings such as 15 minutes, and common
    remainders such as .99; both empty if there are none.

    Args:
        indices: The U distinct values as multiples of the column's resolution. Shape: (U,).
        codes: Index in `indices` of each of n cells. Shape: (n,).
        grid: Converter between the column's cells and these multiples.
    """
    n = len(codes)
    if n < LEAST_CELLS:
        return (), ()
    if n > MOST_CELLS:
        chosen = np.random.default_rng(n).choice(n, MOST_CELLS, replace=False)
        rows = indices[codes[np.sort(chosen)]]
    else:
        rows = indices[codes]
    free = rows[_are_free(rows)]
    if len(free) < LEAST_CELLS:
        return (), ()
    order = np.random.default_rng(0).permutation(len(free))
    halves = Halves(free[order[::2]], free[order[1::2]], len(free) / len(rows))
    common = _common_step(indices)
    if grid.step is None:
        return _number_steps(halves, common, grid)
    written = grid.column.date_format
    usual = np.unique(free)
    steps, endings = _date_steps(
        usual, halves, _common_step(usual), grid, has_days=not is_time_of_day(written)
    )
    return _with_rest(steps, endings, indices, common, grid)


def _with_rest(
    steps: tuple[Step, ...], endings: tuple[str, ...], indices: Indices, common: int, grid: Grid
) -> Found:
    """Returns steps and endings that fit all dates, given those that fit most dates.

    If some dates do not fit, a smaller step is appended, such that all dates are multiples of it.
    An example is a second, if 9999-12-31 23:59:59 occurs beside midnights. All endings are then
    removed, except "month end".

    Args:
        steps: Spacings of most dates, such as 1 day.
        endings: Remainders that most dates have in common, such as 23:59:59. "month end" means that
            days are counted from the end of the month.
        indices: The U distinct dates as multiples of the column's resolution. Shape: (U,).
        common: Common divisor of all differences between these multiples.
        grid: Converter between dates and these multiples.
    """
    split = Split.of(replace(grid.column, steps=steps, endings=endings or None)) if steps else None
    if split is None or split.keeps(indices).all():
        return steps, endings
    last = max((step for step in _steps_of_time(grid) if common % step == 0), default=1)
    behind_months: tuple[Step, ...] = ("1 day",) if MONTH in steps else ()
    chain = dict.fromkeys([*steps, *behind_months, step_of(last, grid)])
    return tuple(chain), tuple(ending for ending in endings if ending == MONTH_END)


def _steps_of_time(grid: Grid) -> list[int]:
    assert grid.step is not None, "dates have a step"
    return [step // grid.step for step in _STEPS_OF_TIME if step % grid.step == 0]


@dataclass(frozen=True)
class Halves:
    """The n cells of a column whose values are not frequent, in two random halves, as integer
    multiples of the column's resolution. A frequent value occurs in at least 0.5 % of the cells.

    Attributes:
        training: Half that proposes steps. Shape: (n / 2,).
        validation: Half that validates them. Shape: (n / 2,).
        share: Share of all cells that are not frequent values.
    """

    training: Indices
    validation: Indices
    share: float

    def remainders(self, step: int) -> Halves:
        """Returns both halves with each cell replaced by its remainder modulo `step`."""
        return self.mapped(lambda indices: indices % step)

    def mapped(self, part: Callable[[Indices], Indices]) -> Halves:
        """Returns the halves after applying the function `part` to their cells."""
        return Halves(part(self.training), part(self.validation), self.share)

    def log_shares(self, n_values: int) -> tuple[Numbers, float]:
        """Returns (log of the share of each validation cell's value, estimated from the training
        half; share of validation cells whose value is common in training). Shape: (n / 2,), ().

        If there are many possible values (`n_values`), those that are not common count as equally
        frequent; if there are few, all count as common.
        """
        found, counts = counted(self.training)
        n_cells = len(self.training)
        if 2 * n_values <= n_cells:
            is_common = np.ones(len(found), dtype=bool)
            shares = (counts + 0.5) / (n_cells + 0.5 * n_values)
        else:
            is_common = counts >= max(HEAVY_CELLS, HEAVY_SHARE * n_cells)
            shares = counts / (n_cells + 1.0)
        common, shares = found[is_common], shares[is_common]
        other = (1.0 - shares.sum()) / max(n_values - len(common), 1)
        if not len(common):
            return np.full(len(self.validation), np.log(other)), 0.0
        at = np.searchsorted(common, self.validation)
        is_known = np.append(common, -1)[at] == self.validation
        p = np.where(is_known, np.append(shares, other)[at], other)
        return np.log(p), float(is_known.mean()) if 2 * n_values > n_cells else 1.0

    def is_worth(self, nats: float, least: float) -> bool:
        """Returns whether a step gains enough: `nats`, the gain of all validation cells, is
        significant, and at least `least` per cell of the column."""
        per_cell = nats / len(self.validation) * self.share
        return nats >= LEAST_NATS and per_cell >= least


def _are_free(rows: Indices) -> Mask:
    """Returns a mask of the cells whose value is not frequent; frequent values are modelled
    separately. Shape: (n,)."""
    found, counts = counted(rows)
    is_heavy = counts >= max(HEAVY_CELLS, HEAVY_SHARE * len(rows))
    others = counts[~is_heavy]
    if len(found) <= MOST_ATOMS and others.sum() >= LEAST_CELLS_PER_ATOM * len(others):
        return np.zeros(len(rows), dtype=bool)
    if not is_heavy.any():
        return np.ones(len(rows), dtype=bool)
    return np.asarray(~is_heavy[np.searchsorted(found, rows)])


def _are_many(quotients: Indices, most: float = MOST_IN_ONE) -> bool:
    """Returns whether no quotient (cell // step) has a larger share than `most`. If one quotient
    dominated, the remainders would only reflect the distribution of the column."""
    return bool(counted(quotients)[1].max() <= most * len(quotients))


def _common_step(indices: Indices) -> int:
    """Returns the greatest common divisor of all differences between indices; 0 if there are none.
    Shape: (U,)."""
    return int(np.gcd.reduce(indices - indices[0])) if len(indices) else 0


# Numbers


def _number_steps(halves: Halves, common: int, grid: Grid) -> Found:
    """Returns (steps, endings) of numbers that all have the same remainder modulo `common`."""
    decimals = len(str(grid.per_unit)) - 1
    usual = _usual_decimals(halves.training, decimals)
    if usual > MOST_DECIMALS:
        return (), ()
    last, digits = common, 10 ** (decimals - usual)
    has_odd_cells = digits > common and digits % common == 0
    if has_odd_cells:  # a few cells with more decimals do not determine the step
        last, common = digits, 1
        halves = halves.mapped(lambda indices: indices[indices % last == 0])
    rest = int(halves.training[0] % last)
    best = _best_step(halves, _plain_steps(halves, last, grid), last, decimals)
    is_rare = best is not None and (halves.training % best == 0).mean() < USUAL_SHARE
    if (best is None and common == 1) or (
        has_odd_cells and is_rare
    ):  # the codec learns the number of decimals without steps
        return (), ()
    endings: tuple[str, ...] = ()
    if rest:
        endings = (_ending_text(rest, common, grid),)
    elif best is not None:
        endings = _heavy_endings(halves.training % best, best, grid)
    steps = dict.fromkeys(step for step in (best, last, common) if step is not None)
    return tuple(step_of(step, grid) for step in steps), endings


def _usual_decimals(indices: Indices, decimals: int) -> int:
    for usual in range(decimals):
        if (indices % 10 ** (decimals - usual) == 0).mean() >= USUAL_SHARE:
            return usual
    return decimals


def _plain_steps(halves: Halves, common: int, grid: Grid) -> list[int]:
    """Returns the multiples of `common` among usual steps of rounding, such as 5; ascending."""
    widest = int(np.ptp(halves.training))
    steps, unit = set[int](), 1
    while unit <= widest:
        steps |= {unit, 2 * unit, 5 * unit} | ({unit * 5 // 2} if unit % 2 == 0 else set())
        unit *= 10
    steps |= {count * grid.per_unit for count in _COUNTS}
    return sorted(step for step in steps if step > common and step % common == 0)


def _best_step(halves: Halves, steps: list[int], common: int, decimals: int = 0) -> int | None:
    """Returns the smallest of the ascending `steps` whose gain is nearly the largest; None if no
    gain is significant. All cells are multiples of `common`, apart from a common remainder. For
    dates, `decimals` is 0."""
    alike = _log_decimals(halves, common, decimals)
    found = {}
    for step in steps:
        if not _are_many(halves.training // step):
            break
        shares, heavy = halves.remainders(step).log_shares(step // common)
        nats = float((shares + math.log(step) - alike).sum())
        if heavy >= LEAST_HEAVY and halves.is_worth(nats, LEAST_NATS_PER_CELL):
            found[step] = nats
    if not found:
        return None
    most = max(found.values())
    slack = max((1.0 - _NEARLY) * most, LEAST_NATS_PER_CELL * len(halves.validation))
    return min(step for step, nats in found.items() if nats >= most - slack)


def _log_decimals(halves: Halves, common: int, decimals: int) -> Numbers:
    """Returns the log-likelihood of each validation cell in a codec without steps, relative to a
    model in which all multiples of the resolution are equally frequent. Shape: (n / 2,).

    Such a codec learns how many decimals cells have (`gcvae.codec.rounding`). The result is
    log(share of cells with as many decimals · distance between numbers with so many decimals). All
    cells are multiples of `common`.
    """
    unit = 10**decimals // common if 10**decimals % common == 0 else 1
    most = len(str(unit)) - 1 if str(unit).strip("0") == "1" else 0

    def n_zeros(indices: Indices) -> Indices:
        zeros = [indices // common % 10**k == 0 for k in range(1, most + 1)]
        return np.asarray(np.sum(zeros, axis=0), dtype=np.int64)

    if not most:
        return np.full(len(halves.validation), math.log(common))
    zeros = halves.mapped(n_zeros)
    shares = zeros.log_shares(most + 1)[0]
    some_are_wider = np.where(zeros.validation < most, math.log(0.9), 0.0)
    found: Numbers = shares + zeros.validation * math.log(10.0) - some_are_wider + math.log(common)
    return found


def _heavy_endings(remainders: Indices, step: int, grid: Grid) -> tuple[str, ...]:
    """Returns the texts of the most common remainders if the step is a power of ten, else an empty
    tuple."""
    found, counts = np.unique(remainders, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shares = counts[order] / len(remainders)
    heavy = [rest for rest in found[order[shares >= _ENDING_SHARE]].tolist() if rest]
    units = step // grid.per_unit
    if step % grid.per_unit or str(units).strip("0") != "1" or len(heavy) > 5:
        return ()
    return tuple(number_ending_text(rest, len(str(units)) - 1, grid.per_unit) for rest in heavy)


def _ending_text(rest: int, common: int, grid: Grid) -> str:
    largest = math.ceil(common / grid.per_unit) - 1
    digits = len(str(largest)) if largest > 0 else 0
    return number_ending_text(rest, digits, grid.per_unit)


# Dates


def _date_steps(
    indices: Indices, halves: Halves, common: int, grid: Grid, *, has_days: bool
) -> Found:
    """Returns (steps, endings) of a column of dates, or of times of day unless `has_days`."""
    assert grid.step is not None, "dates have a step"
    if has_days and common and (whole := _whole_periods(indices, common, grid)):
        return whole
    day = DURATIONS["day"] // grid.step
    # The widest step of time of which all cells are multiples; a day if all have one time of day.
    kept = _steps_of_time(grid)
    last = max((step for step in kept if common % step == 0), default=1)
    ending = int(halves.training[0] % last)
    shifted = halves.mapped(lambda indices: indices - ending)
    steps: list[Step] = []
    endings = [date_ending_text(ending, step_of(last, grid), grid.step)] if ending else []
    hour = DURATIONS["hour"] // grid.step
    finer = [step for step in kept if last < step <= hour and step % last == 0]
    best = _best_step(shifted, finer, last)
    if has_days:
        calendar, from_end = _calendar(shifted, day)
        steps += [calendar] if calendar is not None else []
        endings += [MONTH_END] if from_end else []
        if last < day and (steps or _has_hours(shifted, day, last)):
            steps.append(step_of(day, grid))
        elif steps:
            steps.append(step_of(day, grid))
            last = day
    chain = [step for step in (best, last) if step is not None]
    steps += [step_of(step, grid) for step in chain]
    steps = list(dict.fromkeys(steps))
    return ((), ()) if steps == [step_of(1, grid)] else (tuple(steps), tuple(endings))


def _whole_periods(indices: Indices, common: int, grid: Grid) -> Found | None:
    """Returns (steps, endings) of dates with the same time of day that all fall on one weekday, on
    one day of the month, or on the last day of a month; None for other dates."""
    assert grid.step is not None
    day = DURATIONS["day"] // grid.step
    if common % day:
        return None
    clock = int(indices[0] % day)
    found = np.unique(indices // day)
    if common % (7 * day) == 0:
        left = int((found[0] + DAYS_TO_MONDAY) % 7) * day + clock
        return ("1 week",), (date_ending_text(left, "1 week", grid.step),) if left else ()
    for from_end in (False, True):
        days = np.unique(days_of_month(found, from_end=from_end))
        if len(days) == 1 and len(found) > 2:
            left = int(days[0]) * day + clock
            text = date_ending_text(clock if from_end else left, MONTH, grid.step)
            if not from_end:
                return (MONTH,), (text,) if left else ()
            if days[0] == 0:
                return (MONTH,), (MONTH_END, *((text,) if clock else ()))
    return None


def _calendar(halves: Halves, day: int) -> tuple[Step | None, bool]:
    """Returns the step of dates that gains most, as (week or month, whether days of the month are
    counted from its end); (None, False) if no gain suffices. A day has `day` multiples of the
    column's resolution."""
    days = halves.mapped(lambda indices: indices // day)
    nats: dict[tuple[Step, bool], float] = {}
    if _are_many((days.training + DAYS_TO_MONDAY) // 7):
        weekdays = days.mapped(lambda x: (x + DAYS_TO_MONDAY) % 7)
        nats["1 week", False] = _gain(weekdays, np.full(7, 1.0 / 7.0))
    every = np.arange(days.training.min(), days.training.max() + 1)
    if _are_many(
        months_of(days.training), 1.5 * MOST_IN_ONE
    ):  # the twelve months of one year suffice
        for from_end in (False, True):
            shares = np.bincount(days_of_month(every, from_end=from_end), minlength=31)
            of_month = days.mapped(partial(days_of_month, from_end=from_end))
            nats[MONTH, from_end] = _gain(of_month, shares / shares.sum())
    if not nats:
        return None, False
    best = max(nats, key=lambda name: nats[name])
    return best if days.is_worth(nats[best], LEAST_NATS_PER_DAY) else (None, False)


def _has_hours(halves: Halves, day: int, last: int) -> bool:
    """Returns whether some times of day are more frequent than others. Times are counted in hours,
    or in the step `last` of which all cells are multiples if that is wider. A day has `day`
    multiples of the column's resolution."""
    if not _are_many(halves.training // day):
        return False
    hour = max(day // 24, last)
    n_hours = -(-day // hour)
    nats = _gain(halves.mapped(lambda x: x % day // hour), np.full(n_hours, 1.0 / n_hours))
    return halves.is_worth(nats, LEAST_NATS_PER_CELL)


def _gain(parts: Halves, alike: Numbers) -> float:
    """Returns the gain in log-likelihood of all validation cells, in nats, of a model that learns
    the shares of the parts, such as weekdays, over a model without the step. `alike` is the share
    of each of the k parts if there is no step. Shape: (k,)."""
    nats = parts.log_shares(len(alike))[0] - np.log(alike[parts.validation])
    return float(nats.sum())
