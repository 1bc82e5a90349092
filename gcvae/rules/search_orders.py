"""Finds inequalities and equalities between pairs of columns of numbers or dates.

    end >= start                        isolated values of y may be exempt
    day <= days_in_month(year, month)   three columns of numbers
    payment == bill                     equalities, for example in one row of seven

An inequality y >= x is useful if the gap y - x is easier to learn than y: its held-out
log-likelihood is larger, where both are predicted from groups of rows with similar x. Columns whose
ranges hardly overlap, or that only rise together, satisfy inequalities without information.

A violated order of dates or whole numbers is conspicuous. An inequality between such columns is
therefore also useful if it excludes some values that y alone would have. Isolated values of y, such
as 0 or 2099-12-31, may be exempt.

For equalities, rows in which both columns have their most frequent value, such as 0, are ignored.
In the remaining rows the columns have to be equal far more often than by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np

from gcvae.arrays import TIMES, Numbers
from gcvae.cells.grid_units import grid_unit, microseconds
from gcvae.numerics.isolated_values import isolated_frequent_values
from gcvae.rules.grids import Grid
from gcvae.rules.plan import is_sparse_bound
from gcvae.rules.predictions import Prediction, quantities
from gcvae.rules.row_sample import (
    LEAST_ROWS,
    Agreement,
    Candidate,
    RowSample,
    agreement_of,
    equality,
    least_nats,
    most_frequent,
)
from gcvae.schema.columns import Column
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Formula, Rule
from gcvae.spelling.date_text import write_dates

LEAST_SHARE = 0.98
"""Minimum share of rows in which an inequality holds."""
_MOST_CHANCE = 0.95  # maximum share of rows in which it would hold for independent columns
_LEAST_NATS = 0.4
"""Minimum gain of an inequality in nats per row. Histograms are coarser than a network: with a
smaller gain, a network learns the column as easily as the gap."""
_LEAST_PLAIN_SHARE = 0.995
_LEAST_RULED_OUT = 0.004
"""Minimum gain in nats per row, from excluded values, of an order of dates whose gap gains too
little."""
_MOST_LOST = 0.1
"""Maximum loss of such an order in nats per row if the gap is learned instead of the column."""
_LEAST_OF_NUMBERS = 0.02
"""Minimum gain of an order of whole numbers in nats per row, by the gap and by excluded numbers."""
_SIEVE_ROWS = 400
_LEAST_SIEVED = 8
_BEHIND = 1e-3  # factor of the gain of an inequality whose gap was not judged
_FEW_ROWS = 1_000
"""Number of rows of dates below which histograms are too coarse."""
_DAYS, _MONTHS, _YEARS = (1, 31), (1, 12), (1000, 9999)
_FEWEST_DAYS = 28  # of a month
_N_GROUPS, _N_BINS = 8, 16
_FREE = 0.02  # share of a histogram's mass that is uniform
_LEAST_EQUAL_SHARE, _LEAST_EQUAL = 0.02, 8
"""Minimum share and number of equal numbers among rows without the column's most frequent value."""
_MOST_EQUAL_BY_CHANCE = 0.2
"""Maximum ratio of the share of equal numbers by chance to the observed share."""
_MOST_COLUMNS = 100


def find_orders(sample: RowSample) -> list[Candidate]:
    """Finds inequalities, such as "end >= start", between numeric columns and between date columns,
    those with the largest gain in log-likelihood first."""
    found = []
    for columns in (sample.numeric, sample.dates):
        n_tried = max(len(columns) * (len(columns) - 1), 1)
        for low, high in _sieved(sample, columns):
            found += _validated(sample, low, high, n_tried)
    return sorted([*found, *_calendars(sample)], key=lambda candidate: -candidate.nats)


def _calendars(sample: RowSample) -> Iterator[Candidate]:
    """Yields rules `day <= days_in_month(year, month)` for three columns of whole numbers."""
    ends = {}
    for column in sample.numeric:
        cells = sample.numbers[column.name]
        if grid_unit(column) == 1.0:
            ends[column.name] = (np.nanmin(cells), np.nanmax(cells))
    days, months, years = (
        [name for name, (low, high) in ends.items() if first <= low and high <= last]
        for first, last in (_DAYS, _MONTHS, _YEARS)
    )
    days = [name for name in days if ends[name][1] > _FEWEST_DAYS]
    n_tried = len(days) * len(months) * len(years)
    for day, month, year in product(days, months, years):
        limit = f"days_in_month({quoted_name(year)}, {quoted_name(month)})"
        rule = Rule(f"{quoted_name(day)} <= {limit}", source="found")
        yield from _kept_by_all(rule, sample, n_tried)


def _sieved(sample: RowSample, columns: Sequence[Column]) -> Iterator[tuple[Column, Column]]:
    """Yields pairs (low, high) of columns for which low <= high in nearly all of the first training
    rows, although it would hold less often by chance."""
    if len(columns) < 2:
        return
    numbers = sample.training.numbers
    lows = np.stack([numbers[column.name][:_SIEVE_ROWS] for column in columns], axis=1)
    isolated = [isolated_frequent_values(numbers[column.name]) for column in columns]
    values = np.where([~np.isin(lows[:, j], x) for j, x in enumerate(isolated)], lows.T, np.nan).T
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


def _validated(sample: RowSample, low: Column, high: Column, n_tried: int) -> list[Candidate]:
    """Returns the inequality low <= high in a list, if nearly all rows satisfy it and it raises
    their log-likelihood enough; else an empty list."""
    isolated = isolated_frequent_values(sample.training.numbers[high.name])
    exempt = tuple(as_written(value, high) for value in isolated.tolist())
    rule = inequality(low.name, high.name, exempt)
    unit = grid_unit(high)
    halves, n_low, n_high = [], 0, 0
    for half in sample.halves:
        predicted = quantities(Prediction.of(rule, sample.schema).predicted(half.frame))
        values = half.numbers[high.name]
        known = ~(np.isnan(predicted) | np.isnan(values) | np.isin(values, isolated))
        halves.append((predicted[known], values[known]))
        n_low += int((~np.isnan(predicted)).sum())
        n_high += int((~np.isnan(values) & ~np.isin(values, isolated)).sum())
    n_known = [len(predicted) for predicted, _ in halves]
    if sum(n_known) < 2 * LEAST_ROWS or min(n_known) < _LEAST_SIEVED:
        return []
    step = unit if unit is not None else max(float(np.ptp(halves[0][1])), 1e-300) * 1e-6
    share = min(float((values >= predicted).mean()) for predicted, values in halves)
    if share < LEAST_SHARE:
        return []
    gaps = [(predicted, values - predicted) for predicted, values in halves]
    gained = _log_masses(gaps, step) - _log_masses(halves, step)
    nats = float(gained.mean())
    error = float(gained.std()) / math.sqrt(len(gained))
    least = max(_LEAST_NATS, 3 * error, least_nats(n_tried) / len(gained))
    is_whole = all(grid_unit(column) == 1.0 for column in (low, high))
    may_be_plain = (low.has_times or is_whole) and share >= _LEAST_PLAIN_SHARE
    most_lost = -_MOST_LOST if low.has_times else _LEAST_OF_NUMBERS
    is_plain = nats < least and may_be_plain and nats + 2 * error >= most_lost
    if is_plain:
        nats = _ruled_out(*halves)
        ruled_out = _LEAST_RULED_OUT if low.has_times else _LEAST_OF_NUMBERS
        least = max(ruled_out, least_nats(n_tried) / len(gained))
    # Weighted by coverage: of two inequalities of a column, one that applies to more rows wins.
    of_high, of_low = (sum(n_known) / n for n in (n_high, n_low))
    if nats >= least:
        is_reversible = not is_sparse_bound(of_low, of_high)
        return [Candidate(rule, nats * of_high, share, is_reversible=is_reversible)]
    is_few = sum(n_known) < _FEW_ROWS
    is_sure = low.has_times and (is_few or is_plain)
    return _kept_by_all(rule, sample, n_tried) if is_sure else []


def _kept_by_all(rule: Rule, sample: RowSample, n_tried: int) -> list[Candidate]:
    """Returns an inequality in a list, if every row satisfies it and chance cannot explain this;
    else an empty list. It ranks behind inequalities whose gap y - x was found to be easier to learn
    than y, because that is not tested here."""
    found = agreement_of(rule, sample.frame, sample.schema)
    if found.share < 1.0 or found.rows < 2 * LEAST_ROWS or not found.is_significant(n_tried):
        return []
    return [Candidate(rule, _BEHIND * found.nats, 1.0)]


def inequality(low: str, high: str, exempt: Iterable[float | str]) -> Rule:
    """Returns the rule that column `high` is at least column `low`, or has one of the values
    `exempt`, to which the inequality does not apply."""
    y = quoted_name(high)
    isolated = [f"{y} == {value!r}" for value in exempt]
    return Rule(" or ".join([f"{y} >= {quoted_name(low)}", *isolated]), source="found")


def with_exempt_values(rule: Rule, column: Column, numbers: Numbers) -> Rule:
    """Returns an inequality of the schema, extended by exempt values: isolated values of its
    column, such as 2099-12-31, to which it does not apply.

    If every row must satisfy the inequality ("hard"), only isolated values that satisfy it are
    exempted, because they would make the difference of the columns too large. Values that violate
    it are not exempted, and remain violations.

    Args:
        numbers: Cells of the column as float64, dates as seconds since 1970. Shape: (n,).
    """
    isolated = isolated_frequent_values(numbers)
    is_lower = isinstance(rule.form, Formula) and rule.form.relation == "<="
    if rule.keep == "hard" and len(isolated):
        median = np.nanmedian(numbers)
        isolated = isolated[(isolated < median) if is_lower else (isolated > median)]
    if not len(isolated):
        return rule
    y = quoted_name(rule.column)
    values = [f"{y} == {as_written(value, column)!r}" for value in isolated.tolist()]
    return replace(rule, text=" or ".join([rule.text, *values]))


def as_written(value: float, column: Column) -> float | str:
    """Converts a number, or a date in seconds since 1970, to a literal in the column's format."""
    if not column.has_times:
        return int(value) if value == int(value) else value
    grid = Grid.of(column)
    step = microseconds(column)
    index = np.array([round(value * 1e6 / step)])
    # Clipped to the column's limits, because seconds of distant dates are rounded in float64.
    times = (index * step).astype(TIMES) if grid is None else grid.values(index)
    return str(write_dates(times, column.date_format, column.decimals)[0])


def _ruled_out(seen: tuple[Numbers, Numbers], unseen: tuple[Numbers, Numbers]) -> float:
    """Returns the mean of -log P(y >= x) over unseen rows, in nats: the gain of an inequality from
    the excluded values y < x. P is estimated from seen rows (x, y) with similar x."""
    rows = np.linspace(0, len(unseen[0]) - 1, min(len(unseen[0]), _SIEVE_ROWS)).astype(np.int64)
    order = np.argsort(seen[0])
    others, values = seen[0][order], seen[1][order]
    reach = max(len(values) // (2 * _N_GROUPS), 1)
    at = np.clip(np.searchsorted(others, unseen[0][rows]), reach, max(len(values) - reach, reach))
    near = np.minimum(at[:, None] + np.arange(-reach, reach), len(values) - 1)
    shares = (values[near] >= unseen[0][rows][:, None]).mean(axis=1)
    return float(-np.log(np.maximum(shares, 1 / near.shape[1])).mean())


def _log_masses(halves: Sequence[tuple[Numbers, Numbers]], step: float) -> Numbers:
    """Returns the log probability per interval of width `step` at each of m unseen numbers, by
    histograms of the seen numbers, one for each group of rows with similar x. `halves` are the seen
    and the unseen rows, each as (cells x of another column, numbers). Shape: (m,)."""
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
    """Returns the probability per interval of width `step` at each unseen number, by a histogram of
    the seen ones with equally frequent bins, and a bin for each frequent number.

    A small share of the probability is uniform. Shape: (n,), (m,) -> (m,).
    """
    values, counts = np.unique(seen, return_counts=True)
    atoms = values[counts * _N_BINS > len(seen)]
    quantiles = np.quantile(seen, np.arange(_N_BINS + 1) / _N_BINS, method="lower")
    edges = np.unique([*quantiles, *atoms, *(atoms + step), values[-1] + step])
    edges = edges[np.append(True, np.diff(edges) > step / 2)]
    held = np.histogram(seen, edges)[0] / len(seen)
    units = np.array([max(round((b - a) / step), 1) for a, b in pairwise(edges)])
    bin_index = np.searchsorted(edges, unseen, side="right") - 1
    inside = (bin_index >= 0) & (bin_index < len(held))
    bin_index = np.clip(bin_index, 0, len(held) - 1)
    anywhere = step / (3 * max(float(edges[-1] - edges[0]), step))
    return (1 - _FREE) * np.where(inside, (held / units)[bin_index], 0.0) + _FREE * anywhere


# Equalities


def find_equalities(sample: RowSample) -> list[Candidate]:
    """Finds pairs of numeric or date columns that are equal in far more rows than by chance, those
    with the largest gain in log-likelihood first."""
    found = []
    for columns in (sample.numeric[:_MOST_COLUMNS], sample.dates[:_MOST_COLUMNS]):
        for a, b in combinations(columns, 2):
            pairs = [(half.numbers[a.name], half.numbers[b.name]) for half in sample.halves]
            seen = [each for x, y in pairs if b.kind.is_real and (each := _equal(x, y))]
            if len(seen) < len(pairs):
                continue
            share, chance, rows = (float(np.mean(part)) for part in zip(*seen, strict=True))
            both = Agreement(share, max(chance, 0.5 / rows), 1.0, round(rows))
            if chance <= _MOST_EQUAL_BY_CHANCE * share and both.is_significant(len(columns) ** 2):
                found.append(Candidate(equality(b, quoted_name(a.name)), both.nats, share))
    return sorted(found, key=lambda candidate: -candidate.nats)


def _equal(x: Numbers, y: Numbers) -> tuple[float, float, int] | None:
    """Returns (share of rows in which x equals y, share expected by chance, number of rows); None
    if too few rows have equal numbers. Shape: (n,), (n,).

    Rows in which y is its most frequent number are ignored. Rows in which x is its most frequent
    number count as unequal. The share expected by chance is measured by comparing the y of each
    row with the x of other rows whose x is similar.
    """
    known = ~(np.isnan(x) | np.isnan(y))
    order = np.flatnonzero(known)[np.argsort(x[known], kind="stable")]
    x, y = x[order], y[order]
    if len(x) < 4 * _LEAST_EQUAL:
        return None
    is_unusual = y != most_frequent(y)
    is_news = is_unusual & (x != most_frequent(x))
    n_equal, n = int(((x == y) & is_news).sum()), int(is_unusual.sum())
    if n_equal < max(_LEAST_EQUAL, _LEAST_EQUAL_SHARE * n):
        return None
    shifts = (1, 2, 3, 5, 8)
    by_chance = [((x[s:] == y[:-s]) & is_news[s:] & is_news[:-s]).sum() for s in shifts]
    return n_equal / n, float(np.mean(by_chance)) / n, n
