"""Columns that are never less than others: an end after its start.

An order is worth a rule where the gap between the two columns describes unseen rows better than the
upper column by itself does, both given about where the lower one lies: two columns that hardly
overlap, or that only go up and down together, have an order that says nothing. An end before its
start is seen at a glance, so of dates and of whole numbers an order is worth one, too, that rules
out some of what the upper column by itself allows. Numbers of the upper column that stand apart,
such as 0 or 2099-12-31, may stand beside the order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gcvae.arrays import TIMES, Numbers
from gcvae.cells.grid_units import grid_unit, microseconds
from gcvae.numerics.standing_apart import standing_apart
from gcvae.rules.grids import Grid
from gcvae.rules.predictions import Prediction, quantities
from gcvae.rules.row_sample import LEAST_ROWS, Candidate, RowSample
from gcvae.schema.columns import Column
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Formula, Rule
from gcvae.spelling.date_text import write_dates

LEAST_SHARE = 0.98
"""Of the rows, that an order holds in."""
_MOST_CHANCE = 0.95  # of the rows it would hold in, were the columns independent
_LEAST_NATS = 0.4
"""That a row gains. Histograms are coarser than a network: an order of less is mostly kept by
columns that rise together, and the gap is no better to learn than the column."""
_LEAST_SUM = 12.0  # that all gain, beside the logarithm of how many were tried
_LEAST_PLAIN_SHARE = 0.995
_LEAST_RULED_OUT = 0.004
"""Nats that a row of dates gains by what its order rules out alone ..."""
_MOST_LOST = 0.1
"""... and may lose by the gap, whose histograms are no worse to learn."""
_LEAST_OF_NUMBERS = 0.02
"""Nats that a row of whole numbers gains by either."""
_SIEVE_ROWS = 400
_LEAST_SIEVED = 8
_BEHIND = 1e-3
_FEW_ROWS = 1_000
"""Of dates: of fewer rows their histograms say little."""
_N_GROUPS, _N_BINS = 8, 16
_FREE = 0.02  # of the mass of a histogram, that lies anywhere


def find_orders(sample: RowSample) -> list[Candidate]:
    """Orders between columns of numbers, and between columns of dates; the best come first."""
    found = []
    for columns in (sample.numeric, sample.dates):
        n_tried = max(len(columns) * (len(columns) - 1), 1)
        for low, high in _sieved(sample, columns):
            candidate = _judged(sample, low, high, n_tried)
            if candidate is not None:
                found.append(candidate)
    return sorted(found, key=lambda candidate: -candidate.nats)


def _sieved(sample: RowSample, columns: Sequence[Column]) -> Iterator[tuple[Column, Column]]:
    """Yields pairs (low, high) whose order holds in nearly all of some rows, but not by chance."""
    if len(columns) < 2:
        return
    numbers = sample.finding.numbers
    lows = np.stack([numbers[column.name][:_SIEVE_ROWS] for column in columns], axis=1)
    apart = [standing_apart(numbers[column.name]) for column in columns]
    values = np.where([~np.isin(lows[:, j], x) for j, x in enumerate(apart)], lows.T, np.nan).T
    shifted = np.roll(values, len(values) // 2, axis=0)
    known = ~np.isnan(values)
    for i, low in enumerate(columns):
        is_low = ~np.isnan(lows[:, [i]])
        both = (known & is_low).sum(0)
        holds = (values >= lows[:, [i]]).sum(0)
        chance = (shifted >= lows[:, [i]]).sum(0) / np.maximum(
            (is_low & ~np.isnan(shifted)).sum(0), 1
        )
        good = (holds >= (LEAST_SHARE - 0.005) * both) & (both >= _LEAST_SIEVED)
        for j in np.flatnonzero(good & (chance <= _MOST_CHANCE)):
            if j != i:
                yield low, columns[int(j)]


def _judged(sample: RowSample, low: Column, high: Column, n_tried: int) -> Candidate | None:
    apart = standing_apart(sample.finding.numbers[high.name])
    beside = tuple(_as_written(value, high) for value in apart.tolist())
    rule = inequality(low.name, high.name, beside)
    unit = grid_unit(high)
    halves, n_high = [], 0
    for half in (sample.finding, sample.judging):
        said = quantities(Prediction.of(rule, sample.schema).predicted(half.frame))
        values = half.numbers[high.name]
        known = ~(np.isnan(said) | np.isnan(values) | np.isin(values, apart))
        halves.append((said[known], values[known]))
        n_high += int((~np.isnan(values) & ~np.isin(values, apart)).sum())
    n_known = [len(said) for said, _ in halves]
    if sum(n_known) < 2 * LEAST_ROWS or min(n_known) < _LEAST_SIEVED:
        return None
    step = unit if unit is not None else max(float(np.ptp(halves[0][1])), 1e-300) * 1e-6
    share = min(float((values >= said).mean()) for said, values in halves)
    if share < LEAST_SHARE:
        return None
    gaps = [(said, values - said) for said, values in halves]
    gained = _log_masses(gaps, step) - _log_masses(halves, step)
    nats = float(gained.mean())
    error = float(gained.std()) / math.sqrt(len(gained))
    least = max(_LEAST_NATS, 3 * error, (_LEAST_SUM + math.log(n_tried)) / len(gained))
    is_whole = all(grid_unit(column) == 1.0 for column in (low, high))
    may_be_plain = (low.has_times or is_whole) and share >= _LEAST_PLAIN_SHARE
    is_plain = nats < least and may_be_plain
    if is_plain and nats + 2 * error >= (-_MOST_LOST if low.has_times else _LEAST_OF_NUMBERS):
        nats = _ruled_out(*halves)
        ruled_out = _LEAST_RULED_OUT if low.has_times else _LEAST_OF_NUMBERS
        least = max(ruled_out, (_LEAST_SUM + math.log(n_tried)) / len(gained))
    # Of two orders of a column the one is taken that says something of more rows.
    if nats >= least:
        return Candidate(rule, nats * sum(n_known) / n_high, share)
    is_few = low.has_times and sum(n_known) < _FEW_ROWS
    return _of_few_rows(rule, halves, n_tried) if is_few else None


def _of_few_rows(
    rule: Rule, halves: Sequence[tuple[Numbers, Numbers]], n_tried: int
) -> Candidate | None:
    """An order of dates that every one of few rows keeps, far beyond chance: histograms of so few
    say nothing."""
    low, high = (np.concatenate(part) for part in zip(*halves, strict=True))
    shifts = range(1, len(low))
    chance = float(np.mean([(high >= np.roll(low, shift)).mean() for shift in shifts]))
    nats = -math.log(max(chance, 1 / len(low)))
    is_news = nats * len(low) > _LEAST_SUM + math.log(n_tried)
    # Of two orders of a column the one comes first whose gap describes it.
    return Candidate(rule, _BEHIND * nats, 1.0) if is_news and (high >= low).all() else None


def inequality(low: str, high: str, beside: Iterable[float | str]) -> Rule:
    """Returns the rule that one column is no less than another, or one of the values that stand
    apart."""
    y = quoted_name(high)
    apart = [f"{y} == {value!r}" for value in beside]
    return Rule(" or ".join([f"{y} >= {quoted_name(low)}", *apart]), source="found")


def with_what_stands_apart(rule: Rule, column: Column, numbers: Numbers) -> Rule:
    """An inequality that was said, with the values that are found to stand apart from it.

    Of one that every row has to keep these are numbers that keep it in any case, too large to be
    any gap; others are left to be refused.

    Args:
        rule: The inequality, with no values that stand apart.
        column: The dependent one.
        numbers: Numbers of that column, as `quantities`. Shape: (n,).
    """
    apart = standing_apart(numbers)
    is_lower = isinstance(rule.form, Formula) and rule.form.relation == "<="
    if rule.keep == "hard" and len(apart):
        median = np.nanmedian(numbers)
        apart = apart[(apart < median) if is_lower else (apart > median)]
    if not len(apart):
        return rule
    y = quoted_name(rule.column)
    values = [f"{y} == {_as_written(value, column)!r}" for value in apart.tolist()]
    return replace(rule, text=" or ".join([rule.text, *values]))


def _as_written(value: float, column: Column) -> float | str:
    """Returns a number of a column, or a date as the schema has it."""
    if not column.has_times:
        return int(value) if value == int(value) else value
    grid = Grid.of(column)
    step = microseconds(column)
    place = np.array([round(value * 1e6 / step)])
    # The far end of the column, which a float of seconds rounds, is one of its limits.
    times = (place * step).astype(TIMES) if grid is None else grid.values(place)
    return str(write_dates(times, column.date_format, column.decimals)[0])


def _ruled_out(seen: tuple[Numbers, Numbers], unseen: tuple[Numbers, Numbers]) -> float:
    """Mean -log P(no less than the other column) of seen numbers near each unseen row, in nats."""
    rows = np.linspace(0, len(unseen[0]) - 1, min(len(unseen[0]), _SIEVE_ROWS)).astype(np.int64)
    order = np.argsort(seen[0])
    others, values = seen[0][order], seen[1][order]
    reach = max(len(values) // (2 * _N_GROUPS), 1)
    at = np.clip(np.searchsorted(others, unseen[0][rows]), reach, max(len(values) - reach, reach))
    near = np.minimum(at[:, None] + np.arange(-reach, reach), len(values) - 1)
    shares = (values[near] >= unseen[0][rows][:, None]).mean(axis=1)
    return float(-np.log(np.maximum(shares, 1 / near.shape[1])).mean())


def _log_masses(halves: Sequence[tuple[Numbers, Numbers]], step: float) -> Numbers:
    """Log mass of unseen numbers by histograms of seen ones, in groups by another column.

    Shape: (m,).

    Args:
        halves: (The other column, the number) of seen rows and of unseen ones. Shape: (n,), (m,).
        step: The unit of the masses.
    """
    seen, unseen = halves
    edges = np.unique(np.quantile(seen[0], np.arange(1, _N_GROUPS) / _N_GROUPS))
    groups = [np.searchsorted(edges, other, side="right") for other, _ in (seen, unseen)]
    masses = np.empty(len(unseen[0]))
    for group in np.unique(groups[1]):
        here = seen[1][groups[0] == group]
        there = groups[1] == group
        masses[there] = _masses(here if len(here) else seen[1], unseen[1][there], step)
    return np.log(masses)


def _masses(seen: Numbers, unseen: Numbers, step: float) -> Numbers:
    """Mass of each number by a histogram whose bins hold about as many numbers, those that many
    cells have by themselves, and which lets some lie anywhere near. Shape: (n,), (m,) -> (m,)."""
    values, counts = np.unique(seen, return_counts=True)
    atoms = values[counts * _N_BINS > len(seen)]
    quantiles = np.quantile(seen, np.arange(_N_BINS + 1) / _N_BINS, method="lower")
    edges = np.unique([*quantiles, *atoms, *(atoms + step), values[-1] + step])
    edges = edges[np.append(True, np.diff(edges) > step / 2)]
    held = np.histogram(seen, edges)[0] / len(seen)
    units = np.array([max(round((b - a) / step), 1) for a, b in pairwise(edges)])
    place = np.searchsorted(edges, unseen, side="right") - 1
    inside = (place >= 0) & (place < len(held))
    place = np.clip(place, 0, len(held) - 1)
    anywhere = step / (3 * max(float(edges[-1] - edges[0]), step))
    return (1 - _FREE) * np.where(inside, (held / units)[place], 0.0) + _FREE * anywhere
