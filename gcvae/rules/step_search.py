"""Search of a column's steps and endings, validated on rows that did not propose them.

One half of the cells names the remainders that are common, the other half says how many nats a cell
they save beside remainders that are all alike. Of cells without steps the saving is that of a
likelihood ratio, whose mean is one: it exceeds t nats with a chance of at most exp(-t).
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
from gcvae.rules.grids import Grid
from gcvae.rules.splits import (
    DAYS_TO_MONDAY,
    Places,
    Split,
    first_days,
    last_days,
    step_of,
)
from gcvae.schema.columns import Column
from gcvae.schema.steps import DURATIONS, MONTH, MONTH_END, Step
from gcvae.spelling.date_text import is_time_of_day

MOST_CELLS = 20_000
"""Cells that are looked at; which steps all cells keep is asked of all."""
LEAST_CELLS = 100
"""Under which nothing is found; single values that many cells share do not count."""
LEAST_NATS = 14.0
"""That all cells of the second half save: by chance in one of a million."""
LEAST_NATS_PER_CELL = 0.05
LEAST_NATS_PER_DAY = 0.002
"""Of weekdays and days of the month, which two weeks of many rows tell apart."""
HEAVY_SHARE = 0.005
"""Of the cells, from which on a value or a remainder is told from its neighbours ..."""
HEAVY_CELLS = 5
"""... and so many of them at least, as `gcvae.codec.quantile_codec` has it."""
LEAST_CELLS_PER_ATOM = 12
MOST_ATOMS = 512
MOST_IN_ONE = 0.1
"""Of the cells between two multiples of a step; with more it is as wide as the column."""
LEAST_HEAVY = 0.5
"""Of the cells have common remainders; with fewer the remainder is no column of few values."""
_NEARLY = 0.9
"""Of the most nats: the smallest step that saves so much is taken."""
MOST_DECIMALS = 4
"""Of numbers that are looked at; those of more are measured, and their digits no steps ..."""
USUAL_SHARE = 0.98
"""... so many of the cells having no more."""
_COUNTED_WIDTH = 1 << 16
"""Of values so near to each other each is counted; others are sorted first."""
_ENDING_SHARE = 0.05
"""Of the cells with one remainder, from which on it is shown."""
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


def may_have_steps(column: Column) -> bool:
    """Returns whether steps of the column are to be looked for: nobody said them, and it has a
    grid."""
    is_open = column.steps is None and column.endings is None
    return is_open and column.is_modelled and column.kind.is_real and Grid.of(column) is not None


def with_steps(
    values: pd.Series[Any], codes: npt.NDArray[np.integer[Any]], column: Column
) -> Column:
    """Returns the column with the steps and endings that its typed cells have, if they have any.

    Args:
        values: The distinct ones, none missing. Shape: (U,).
        codes: Which of them each cell is, -1 for none; each is one. Shape: (n,).
        column: Without steps.
    """
    grid = Grid.of(column)
    if grid is None or not may_have_steps(column):
        return column
    places = grid.places(values)
    if grid.step is None and not are_exact(places, values, grid):
        return column
    known = codes if codes.min(initial=0) >= 0 else codes[codes >= 0]
    steps, endings = found_steps(places, known, grid)
    return replace(column, steps=steps or None, endings=endings or None)


def are_exact(places: Places, present: pd.Series[Any], grid: Grid) -> bool:
    """Returns whether every number lies on the grid."""
    numbers = present.to_numpy(dtype=np.float64)
    decimals = grid.column.decimals or 0
    return bool((np.round(places / grid.per_unit, decimals) == numbers).all())


def found_steps(places: Places, codes: npt.NDArray[np.integer[Any]], grid: Grid) -> Found:
    """Returns the steps and endings of a column's cells; both empty where it has none.

    Shape: (U,) distinct places, (n,).
    """
    n = len(codes)
    if n < LEAST_CELLS:
        return (), ()
    if n > MOST_CELLS:
        chosen = np.random.default_rng(n).choice(n, MOST_CELLS, replace=False)
        rows = places[codes[np.sort(chosen)]]
    else:
        rows = places[codes]
    free = rows[_are_free(rows)]
    if len(free) < LEAST_CELLS:
        return (), ()
    order = np.random.default_rng(0).permutation(len(free))
    halves = Halves(free[order[::2]], free[order[1::2]], len(free) / len(rows))
    common = _common_step(places)
    if grid.step is None:
        return _number_steps(halves, common, grid)
    written = grid.column.date_format
    usual = np.unique(free)
    steps, endings = _date_steps(
        usual, halves, _common_step(usual), grid, has_days=not is_time_of_day(written)
    )
    return _with_rest(steps, endings, places, common, grid)


def _with_rest(
    steps: tuple[Step, ...], endings: tuple[str, ...], places: Places, common: int, grid: Grid
) -> Found:
    """Returns the steps of most dates, followed by a step that all keep, such as 9999-12-31
    23:59:59 beside midnights."""
    split = Split.of(replace(grid.column, steps=steps, endings=endings or None)) if steps else None
    if split is None or split.keeps(places).all():
        return steps, endings
    last = max((step for step in _steps_of_time(grid) if common % step == 0), default=1)
    behind_months: tuple[Step, ...] = ("1 day",) if MONTH in steps else ()
    chain = dict.fromkeys([*steps, *behind_months, step_of(last, grid)])
    return tuple(chain), tuple(ending for ending in endings if ending == MONTH_END)


def _steps_of_time(grid: Grid) -> list[int]:
    """Returns the usual steps of time, in places, rising."""
    assert grid.step is not None, "dates have a step"
    return [step // grid.step for step in _STEPS_OF_TIME if step % grid.step == 0]


@dataclass(frozen=True)
class Halves:
    """Cells that are no atoms, in two halves: one finds, the other judges.

    Attributes:
        finding, judging: Places. Shape: (n / 2,) each.
        share: Share of all cells that are no atoms.
    """

    finding: Places
    judging: Places
    share: float

    def remainders(self, step: int) -> Halves:
        """What is left of the places beyond multiples of a step."""
        return self.mapped(lambda places: places % step)

    def mapped(self, part: Callable[[Places], Places]) -> Halves:
        """Returns the places under a function."""
        return Halves(part(self.finding), part(self.judging), self.share)

    def log_shares(self, n_values: int) -> tuple[Numbers, float]:
        """Returns (log of the share that the one half gives each cell of the other, share of common
        ones).

        Where there are many values, those that are not common are all alike.

        Args:
            n_values: How many values there may be.
        """
        found, counts = _counted(self.finding)
        n_cells = len(self.finding)
        if 2 * n_values <= n_cells:
            is_common = np.ones(len(found), dtype=bool)
            shares = (counts + 0.5) / (n_cells + 0.5 * n_values)
        else:
            is_common = counts >= max(HEAVY_CELLS, HEAVY_SHARE * n_cells)
            shares = counts / (n_cells + 1.0)
        common, shares = found[is_common], shares[is_common]
        other = (1.0 - shares.sum()) / max(n_values - len(common), 1)
        if not len(common):
            return np.full(len(self.judging), np.log(other)), 0.0
        at = np.searchsorted(common, self.judging)
        is_known = np.append(common, -1)[at] == self.judging
        p = np.where(is_known, np.append(shares, other)[at], other)
        return np.log(p), float(is_known.mean()) if 2 * n_values > n_cells else 1.0

    def is_worth(self, nats: float, least: float) -> bool:
        """Returns whether so many nats are more than chance gives, and more than nothing."""
        per_cell = nats / len(self.judging) * self.share
        return nats >= LEAST_NATS and per_cell >= least


def _are_free(rows: Places) -> Mask:
    """Returns the cells whose value is no atom. Shape: (n,)."""
    found, counts = _counted(rows)
    is_heavy = counts >= max(HEAVY_CELLS, HEAVY_SHARE * len(rows))
    others = counts[~is_heavy]
    if len(found) <= MOST_ATOMS and others.sum() >= LEAST_CELLS_PER_ATOM * len(others):
        return np.zeros(len(rows), dtype=bool)
    if not is_heavy.any():
        return np.ones(len(rows), dtype=bool)
    return np.asarray(~is_heavy[np.searchsorted(found, rows)])


def _are_many(quotients: Places, most: float = MOST_IN_ONE) -> bool:
    """Returns whether no quotient has so large a share that its remainders tell the column's own
    shape."""
    return bool(_counted(quotients)[1].max() <= most * len(quotients))


def _counted(values: Places) -> tuple[Places, Places]:
    """Returns the distinct values, rising, and how often each stands there. Shape: (n,) -> (U,)
    twice."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low > _COUNTED_WIDTH:
        found, counts = np.unique(values, return_counts=True)
        return found, counts
    of_all = np.bincount(values - low)
    places = np.flatnonzero(of_all)
    return places + low, of_all[places]


def _common_step(places: Places) -> int:
    """Returns the largest step from each place to each other. Shape: (U,)."""
    return int(np.gcd.reduce(places - places[0])) if len(places) else 0


# Numbers


def _number_steps(halves: Halves, common: int, grid: Grid) -> Found:
    decimals = len(str(grid.per_unit)) - 1
    usual = _usual_decimals(halves.finding, decimals)
    if usual > MOST_DECIMALS:
        return (), ()
    last, digits = common, 10 ** (decimals - usual)
    has_odd_cells = digits > common and digits % common == 0
    if has_odd_cells:  # a few cells do not give their digits to all
        last, common = digits, 1
        halves = halves.mapped(lambda places: places[places % last == 0])
    rest = int(halves.finding[0] % last)
    best = _best_step(halves, _plain_steps(halves, last, grid), last, decimals)
    is_rare = best is not None and (halves.finding % best == 0).mean() < USUAL_SHARE
    if (best is None and common == 1) or (has_odd_cells and is_rare):  # decimal classes say it
        return (), ()
    endings: tuple[str, ...] = ()
    if rest:
        endings = (_ending_text(rest, common, grid),)
    elif best is not None:
        endings = _heavy_endings(halves.finding % best, best, grid)
    steps = dict.fromkeys(step for step in (best, last, common) if step is not None)
    return tuple(step_of(step, grid) for step in steps), endings


def _usual_decimals(places: Places, decimals: int) -> int:
    """Returns the fewest decimals that nearly all numbers have, of at most so many. Shape: (n,)."""
    for usual in range(decimals):
        if (places % 10 ** (decimals - usual) == 0).mean() >= USUAL_SHARE:
            return usual
    return decimals


def _plain_steps(halves: Halves, common: int, grid: Grid) -> list[int]:
    """Steps that people round to, wider than the common one and multiples of it, rising."""
    widest = int(np.ptp(halves.finding))
    steps, unit = set[int](), 1
    while unit <= widest:
        steps |= {unit, 2 * unit, 5 * unit} | ({unit * 5 // 2} if unit % 2 == 0 else set())
        unit *= 10
    steps |= {count * grid.per_unit for count in _COUNTS}
    return sorted(step for step in steps if step > common and step % common == 0)


def _best_step(halves: Halves, steps: list[int], common: int, decimals: int = 0) -> int | None:
    """Returns the smallest step whose remainders save nearly as much as those of any other."""
    alike = _log_decimals(halves, common, decimals)
    found = {}
    for step in steps:
        if not _are_many(halves.finding // step):
            break
        shares, heavy = halves.remainders(step).log_shares(step // common)
        nats = float((shares + math.log(step) - alike).sum())
        if heavy >= LEAST_HEAVY and halves.is_worth(nats, LEAST_NATS_PER_CELL):
            found[step] = nats
    if not found:
        return None
    most = max(found.values())
    slack = max((1.0 - _NEARLY) * most, LEAST_NATS_PER_CELL * len(halves.judging))
    return min(step for step, nats in found.items() if nats >= most - slack)


def _log_decimals(halves: Halves, common: int, decimals: int) -> Numbers:
    """log of (share of the cells with as many decimals) x (places from one such to the next).

    What a column without steps gives a cell beside its density: how many decimals numbers have is
    learned there too, see `gcvae.codec.rounding`. Shape: (n / 2,).

    Args:
        halves: Halves of the column.
        common: The step that all cells keep.
        decimals: Decimals of the column, where it has numbers of fewer decimals too.
    """
    unit = 10**decimals // common if 10**decimals % common == 0 else 1
    most = len(str(unit)) - 1 if str(unit).strip("0") == "1" else 0

    def n_zeros(places: Places) -> Places:
        zeros = [places // common % 10**k == 0 for k in range(1, most + 1)]
        return np.asarray(np.sum(zeros, axis=0), dtype=np.int64)

    if not most:
        return np.full(len(halves.judging), math.log(common))
    zeros = halves.mapped(n_zeros)
    shares = zeros.log_shares(most + 1)[0]
    some_are_wider = np.where(zeros.judging < most, math.log(0.9), 0.0)
    found: Numbers = shares + zeros.judging * math.log(10.0) - some_are_wider + math.log(common)
    return found


def _heavy_endings(remainders: Places, step: int, grid: Grid) -> tuple[str, ...]:
    """Returns the texts of the commonest remainders, where the step is a power of ten."""
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
    places: Places, halves: Halves, common: int, grid: Grid, *, has_days: bool
) -> Found:
    assert grid.step is not None, "dates have a step"
    if has_days and common and (whole := _whole_periods(places, common, grid)):
        return whole
    day = DURATIONS["day"] // grid.step
    # Of the steps of time that all cells keep the widest; all at one time of day keep days.
    kept = _steps_of_time(grid)
    last = max((step for step in kept if common % step == 0), default=1)
    ending = int(halves.finding[0] % last)
    judged = halves.mapped(lambda places: places - ending)
    steps: list[Step] = []
    endings = [date_ending_text(ending, step_of(last, grid), grid.step)] if ending else []
    hour = DURATIONS["hour"] // grid.step
    finer = [step for step in kept if last < step <= hour and step % last == 0]
    best = _best_step(judged, finer, last)
    if has_days:
        calendar, from_end = _calendar(judged, day, grid)
        steps += [calendar] if calendar is not None else []
        endings += [MONTH_END] if from_end else []
        if last < day and (steps or _has_hours(judged, day, last)):
            steps.append(step_of(day, grid))
        elif steps:
            steps.append(step_of(day, grid))
            last = day
    chain = [step for step in (best, last) if step is not None]
    steps += [step_of(step, grid) for step in chain]
    steps = list(dict.fromkeys(steps))
    return ((), ()) if steps == [step_of(1, grid)] else (tuple(steps), tuple(endings))


def _whole_periods(places: Places, common: int, grid: Grid) -> Found | None:
    """Returns the steps of dates that all lie at one time of one day of the week or of the
    month."""
    assert grid.step is not None
    day = DURATIONS["day"] // grid.step
    if common % day:
        return None
    clock = int(places[0] % day)
    found = np.unique(places // day)
    if common % (7 * day) == 0:
        left = int((found[0] + DAYS_TO_MONDAY) % 7) * day + clock
        return ("1 week",), (date_ending_text(left, "1 week", grid.step),) if left else ()
    for from_end in (False, True):
        days = np.unique(_days_of_month(found, from_end=from_end))
        if len(days) == 1 and len(found) > 2:
            left = int(days[0]) * day + clock
            text = date_ending_text(clock if from_end else left, MONTH, grid.step)
            if not from_end:
                return (MONTH,), (text,) if left else ()
            if days[0] == 0:
                return (MONTH,), (MONTH_END, *((text,) if clock else ()))
    return None


def _calendar(halves: Halves, day: int, grid: Grid) -> tuple[Step | None, bool]:
    """Returns (weeks or months, whether days count from the month's end), whichever saves
    the most."""
    days = halves.mapped(lambda places: places // day)
    nats: dict[tuple[Step, bool], float] = {}
    if _are_many((days.finding + DAYS_TO_MONDAY) // 7):
        weekdays = days.mapped(lambda x: (x + DAYS_TO_MONDAY) % 7)
        nats["1 week", False] = _saved(weekdays, np.full(7, 1.0 / 7.0))
    every = np.arange(days.finding.min(), days.finding.max() + 1)
    if _are_many(_months(days.finding), 1.5 * MOST_IN_ONE):  # twelve months of a year do
        for from_end in (False, True):
            shares = np.bincount(_days_of_month(every, from_end=from_end), minlength=31)
            of_month = days.mapped(partial(_days_of_month, from_end=from_end))
            nats[MONTH, from_end] = _saved(of_month, shares / shares.sum())
    if not nats:
        return None, False
    best = max(nats, key=lambda name: nats[name])
    return best if days.is_worth(nats[best], LEAST_NATS_PER_DAY) else (None, False)


def _has_hours(halves: Halves, day: int, last: int) -> bool:
    """Returns whether some times of day are commoner than others."""
    if not _are_many(halves.finding // day):
        return False
    hour = max(day // 24, last)
    n_hours = -(-day // hour)
    nats = _saved(halves.mapped(lambda x: x % day // hour), np.full(n_hours, 1.0 / n_hours))
    return halves.is_worth(nats, LEAST_NATS_PER_CELL)


def _saved(parts: Halves, alike: Numbers) -> float:
    """Nats that the shares of parts save beside those of time itself. Shape: alike (k,)."""
    counts = np.bincount(parts.finding, minlength=len(alike)) + len(alike) * alike
    return float(np.log((counts / counts.sum() / alike)[parts.judging]).sum())


def _months(days: Places) -> Places:
    """Months since 1970-01 of days since 1970. Shape: (n,)."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _days_of_month(days: Places, *, from_end: bool) -> Places:
    """Days since the first of the month, or until its last. Shape: (n,)."""
    months = _months(days)
    return last_days(months) - days if from_end else days - first_days(months)
