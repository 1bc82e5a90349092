"""Finds columns that follow from dates or times of day: parts of a date, time spans between two
dates, beginnings of a date's month or other period, and dates or times some time after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import TIMES, Numbers
from gcvae.cells.grid_units import grid_unit
from gcvae.expressions.functions import NO_DATE, STARTS, Type, check_part
from gcvae.expressions.terms import Rows, column_values, compile_term, key_texts, type_of
from gcvae.rules.grids import Grid
from gcvae.rules.row_sample import (
    LEAST_ROWS,
    LEAST_SHARE,
    Candidate,
    RowSample,
    column_medians,
    equality,
    most_frequent,
    validated,
)
from gcvae.rules.solutions import MINUTES, minutes_of
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.expressions import names_in, parse_expression, quoted_name
from gcvae.schema.rules import Rule, Tables, sum_text
from gcvae.spelling.date_text import has_offset

ZONES = (
    "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles",
    "America/Phoenix", "America/Anchorage", "Pacific/Honolulu", "America/Halifax",
    "America/St_Johns", "America/Sao_Paulo", "America/Argentina/Buenos_Aires", "America/Bogota",
    "America/Santiago", "America/Mexico_City", "America/Caracas", "Europe/London",
    "Europe/Berlin", "Europe/Athens", "Europe/Istanbul", "Europe/Moscow", "Africa/Lagos",
    "Africa/Johannesburg", "Africa/Cairo", "Asia/Jerusalem", "Asia/Tehran", "Asia/Dubai",
    "Asia/Karachi", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Dhaka", "Asia/Bangkok",
    "Asia/Shanghai", "Asia/Tokyo", "Australia/Perth", "Australia/Adelaide", "Australia/Darwin",
    "Australia/Sydney", "Australia/Brisbane", "Pacific/Auckland",
)  # fmt: skip
"""Time zones that are searched, one for each widely used clock; rules may also use others.

Source: the IANA time zone database.
"""
_WEEKDAYS = ("{}", "{} + 1", "({} + 1) % 7", "({} + 1) % 7 + 1")
"""Expressions of a weekday's number, given `day_of_week`: from 0 or 1 on Monday, or on Sunday."""
_RANGES: dict[str, tuple[int, int]] = {
    "year": (1600, 2300),
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "weekday": (0, 7),
    "day_of_year": (1, 366),
    "week": (1, 53),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
_DAY = 86_400
_UNITS = (1, 60, 3600, _DAY, 604_800)
"""Number of seconds in a second, a minute, an hour, a day and a week."""
_ZONE_PARTS = ("hour", "day", "month", "day_of_year")
_ZONE_ROWS = 200
_SIEVE_ROWS = 64
_MOST_COLUMNS = 20


def find_date_parts(sample: RowSample) -> list[Candidate]:
    """Finds numeric columns that are a part of a date in another column, such as its month; those
    with the largest gain in log-likelihood first."""
    found = []
    numbers = sample.training.numbers
    likely = {c.name: parts for c in sample.numeric if (parts := _likely(numbers[c.name]))}
    n_tried = max(len(sample.dates) * sum(map(len, likely.values())), 1)
    for date in sample.dates[:_MOST_COLUMNS] if likely else ():
        zone = _zone(sample, date, likely)
        for of_zone in dict.fromkeys((zone, None)):
            for rule, share in _matching(sample, date.name, likely, of_zone):
                for candidate in validated([rule], sample, n_tried):
                    found.append((-share - candidate.share, candidate))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])]


def _likely(values: Numbers) -> tuple[str, ...]:
    low, high = np.nanmin(values), np.nanmax(values)
    if not (values[~np.isnan(values)] % 1 == 0).all():
        return ()
    return tuple(part for part, (least, most) in _RANGES.items() if least <= low <= high <= most)


def _matching(
    sample: RowSample, of: str, likely: Mapping[str, Sequence[str]], zone: str | None
) -> Iterator[tuple[Rule, float]]:
    """Yields (rule, share of training rows that satisfy it) for columns that equal a part of the
    date `of`, such as its month, in enough training rows. `likely` contains the parts to try, by
    column name. Parts refer to the time zone `zone`, or to the zone of the date if None."""
    half = sample.training
    column = sample.schema[of]
    predicted: dict[str, Numbers] = {}
    for name, parts in likely.items():
        for part in parts:
            for text in part_texts(column, part, zone):
                if text not in predicted:
                    predicted[text] = numbers_of(text, half.frame, sample.schema)
                share = share_equal(half.numbers[name], predicted[text])
                if share >= LEAST_SHARE:
                    yield equality(sample.schema[name], text), share


def part_texts(date: Column, part: str, zone: str | None = None) -> list[str]:
    """Returns expressions of a part of a date, such as "month(ordered)"; empty if the dates lack
    the part. A weekday has four, as it may count from 0 or 1, and from Monday or Sunday."""
    of = quoted_name(date.name) + (f', "{zone}"' if zone else "")
    if not has_part(part, date):
        return []
    if part != "weekday":
        return [f"{part}({of})"]
    return [text.format(f"day_of_week({of})") for text in _WEEKDAYS]


def has_part(part: str, date: Column) -> bool:
    """Returns whether the dates of a column have a part such as "hour"."""
    try:
        check_part(part, date)
    except ValueError:
        return False
    return True


def numbers_of(text: str, frame: pd.DataFrame, schema: TableSchema) -> Numbers:
    """Evaluates an expression of numbers or dates (in seconds since 1970) in each of n parsed rows;
    NaN where it has no value. Shape: (n,)."""
    kind, value = evaluated(text, frame, schema)
    if kind is Type.DATE:
        return np.where(value == NO_DATE, np.nan, value / 1e6)
    return np.where(value.known, value.values, np.nan)


def evaluated(text: str, frame: pd.DataFrame, schema: TableSchema) -> tuple[Type, Any]:
    """Returns (type of an expression, its value in each of n parsed rows): an `Amount` for numbers,
    microseconds since 1970 for dates, else strings or truth values."""
    tree = parse_expression(text)
    term = compile_term(tree, schema, {})
    rows = Rows({name: column_values(frame[name], schema[name]) for name in names_in(tree)})
    return term.type, term.evaluate(rows)


def share_equal(values: Numbers, predicted: Numbers) -> float:
    """Returns the share of equal numbers among rows in which both are known. Shape: (n,), (n,)."""
    known = ~(np.isnan(values) | np.isnan(predicted))
    return float((values[known] == predicted[known]).mean()) if known.any() else 0.0


def _zone(sample: RowSample, date: Column, likely: Mapping[str, Sequence[str]]) -> str | None:
    """Returns the time zone of `ZONES` in which numeric columns agree best with parts of a date,
    such as its hour. Returns None if they agree at least as well in UTC, or if the date is not
    written with an offset from UTC. `likely` contains the parts to compare, by column name."""
    if not has_offset(date.date_format):
        return None
    half = sample.training
    times = half.frame[date.name][:_ZONE_ROWS]
    best, best_score = None, 0.0
    for zone in (None, *ZONES):
        score = 0.0
        for part in _ZONE_PARTS:
            names = [name for name, parts in likely.items() if part in parts]
            texts = part_texts(date, part, zone)
            if not names or not texts:
                continue
            predicted = numbers_of(texts[0], times.to_frame(), sample.schema)
            for name in names:
                share = share_equal(half.numbers[name][:_ZONE_ROWS], predicted)
                score += share if share >= LEAST_SHARE / 2 else 0.0
        if score > best_score + 1e-9:
            best, best_score = zone, score
    return best


def find_clocks(sample: RowSample) -> list[Candidate]:
    """Finds columns of times of day, written as 517 for 05:17, that lie a number of minutes after a
    time of day in another column. A third column contains the number of minutes."""
    half = sample.training
    clocks = [c for c in sample.numeric if _is_clock(half.numbers[c.name])][:_MOST_COLUMNS]
    found = []
    n_tried = max(len(clocks) ** 2 * len(sample.numeric), 1)
    if len(clocks) < 2:
        return []
    gone = np.stack([half.numbers[c.name] % MINUTES for c in sample.numeric], axis=1)
    for y, start in permutations(clocks, 2):
        between = minutes_of(half.numbers[y.name]) - minutes_of(half.numbers[start.name])
        between %= MINUTES
        off = gone[:_SIEVE_ROWS] - between[:_SIEVE_ROWS, None]
        least = np.maximum((LEAST_SHARE - 0.2) * (~np.isnan(off)).sum(0), 1)
        for place in np.flatnonzero((off == 0).sum(0) >= least):
            column = sample.numeric[int(place)]
            if column in (y, start) or share_equal(gone[:, place], between) < LEAST_SHARE:
                continue
            of = f"{quoted_name(start.name)}, {quoted_name(column.name)}"
            of += ", 2400" if y.maximum == 2400 else ""
            found.append(equality(y, f"clock({of})"))
    return list(validated(found, sample, n_tried))


def find_spans(sample: RowSample) -> list[Candidate]:
    """Finds numeric columns that are the time between two date columns, in a unit from seconds to
    weeks, perhaps plus a constant number of days. Also finds dates that lie a constant number of
    days after another date."""
    numbers = sample.training.numbers
    dates = sample.dates[:_MOST_COLUMNS]
    n_tried = max(len(dates) ** 2 * max(len(sample.numeric), 1) * len(_UNITS), 1)
    found = []
    none = np.empty((min(len(sample.training), _SIEVE_ROWS), 0))
    columns = [numbers[c.name][:_SIEVE_ROWS, None] for c in sample.numeric]
    values = np.concatenate([none, *columns], axis=1)
    near = np.array([(grid_unit(column) or 1e-6) / 2 for column in sample.numeric])
    for start, end in permutations(dates, 2):
        first, seconds = counted_from(sample, start, end)
        between = (numbers[end.name] - seconds)[:_SIEVE_ROWS]
        least = (LEAST_SHARE - 0.2) * max((~np.isnan(between)).sum(), 2)
        days = np.floor(np.nanmedian(between) / _DAY) if (~np.isnan(between)).any() else 0
        if days >= 1 and (between == days * _DAY).sum() >= least:
            found.append(equality(end, f"{first} + {days:.0f}"))
        for unit in _UNITS:
            off = values - between[:, None] / unit
            more = np.zeros(len(near))
            if unit == _DAY and len(off):
                more = np.nan_to_num(np.rint(column_medians(off)))
            is_near = np.abs(off - more) <= near
            least_of_y = np.maximum((LEAST_SHARE - 0.2) * (~np.isnan(off)).sum(0), 1)
            span = f"{quoted_name(end.name)} - {first}"
            span = span if unit == _DAY else sum_text([(_DAY / unit, f"({span})")])
            for place in np.flatnonzero(is_near.sum(0) >= least_of_y):
                text = sum_text([(1, span)], float(more[place]))
                found.append(equality(sample.numeric[int(place)], text))
    return list(validated(found, sample, n_tried))


def counted_from(sample: RowSample, start: Column, end: Column) -> tuple[str, Numbers]:
    """Returns the moment from which the days until the date `end` are counted.

    This is the date `start`, or its midnight if only `start` has times of day. It is returned as
    (expression, seconds since 1970 in each of n training rows). Shape: (n,).
    """
    of_start, of_end = (sample.training.numbers[column.name] for column in (start, end))
    has_clock, ends_with_clock = (
        bool((values[~np.isnan(values)] % _DAY != 0).any()) for values in (of_start, of_end)
    )
    is_whole = not has_clock or not has_part("date", start) or has_offset(start.date_format)
    if is_whole or ends_with_clock:
        return quoted_name(start.name), of_start
    return f"date({quoted_name(start.name)})", of_start // _DAY * _DAY


def find_months(sample: RowSample) -> Iterator[Candidate]:
    """Yields rules by which a date is n months after another date, or one day earlier than that.

    The number n is a constant, the number in a column of months or years, or a number that a column
    of levels determines.
    """
    dates, half = sample.dates[:_MOST_COLUMNS], sample.training
    n_tried = max(2 * len(sample.columns) * len(dates) ** 2, 1)
    for (start, end), days in product(permutations(dates, 2), (0, 1)):
        first = pd.DatetimeIndex(half.frame[start.name])
        ends = half.frame[end.name].to_numpy(dtype=TIMES)
        last = pd.DatetimeIndex(ends + np.timedelta64(days, "D"))
        months = np.asarray(12.0 * (last.year - first.year) + last.month - first.month)
        known = ~np.isnan(months)
        is_due = (last.day == first.day) | ((last.day < first.day) & last.is_month_end)
        if known.sum() < LEAST_ROWS or is_due[known].mean() < LEAST_SHARE:
            continue
        usual, terms = most_frequent(months[known]), list[tuple[str, Tables]]()
        if usual > 0 and (months[known] == usual).mean() >= LEAST_SHARE:
            terms.append((f"{usual:.0f}", {}))
        for column in sample.numeric:
            for factor, text in ((1, ""), (12, "12 * ")):
                if share_equal(months, factor * half.numbers[column.name]) >= LEAST_SHARE:
                    terms.append((f"{text}{quoted_name(column.name)}", {}))
        for column in sample.of_levels if not terms else ():
            cells = half.frame[column.name][known]
            if column.has_numbers or cells.nunique() < 2:
                continue
            of_levels = pd.Series(months[known]).groupby(cells.to_numpy()).agg(most_frequent)
            if (cells.map(of_levels) == months[known]).mean() >= LEAST_SHARE:
                keys = key_texts(
                    column_values(of_levels.index.to_series(), column), type_of(column)
                )
                table = dict(zip(keys.tolist(), of_levels.astype(int).tolist(), strict=True))
                terms.append((f"months[{quoted_name(column.name)}]", {"months": table}))
        later = " - 1" if days else ""
        rules = [
            equality(end, f"add_months({quoted_name(start.name)}, {text}){later}", tables)
            for text, tables in terms
        ]
        yield from list(validated(rules, sample, n_tried))[:1]


def find_starts(sample: RowSample) -> Iterator[Candidate]:
    """Yields rules by which a date is the beginning of the day, week, month, quarter or year of
    another date, such as `day == date(sent, "Europe/Berlin")`."""
    dates, half = sample.dates[:_MOST_COLUMNS], sample.training
    n_tried = max(len(STARTS) * len(dates) ** 2, 1)
    for time, start in permutations(dates, 2):
        values = half.numbers[start.name]
        gaps = half.numbers[time.name] - values
        if Grid.of(start) is None or not (values[~np.isnan(values)] % _DAY == 0).all():
            continue  # months and years have different lengths
        if not _are_within_a_year(gaps):
            continue
        zones = (None, *ZONES) if has_offset(time.date_format) else (None,)
        texts = [
            f"{function}({quoted_name(time.name)}" + (f', "{zone}")' if zone else ")")
            for zone in zones
            for function in STARTS
            if has_part(function, time)
        ]
        for rows in (_ZONE_ROWS, len(half)):
            frame = half.frame[:rows]
            shares = {
                text: share_equal(values[:rows], numbers_of(text, frame, sample.schema))
                for text in texts
            }
            texts = [text for text in texts if shares[text] >= LEAST_SHARE]
        if texts:
            best = max(texts, key=shares.__getitem__)
            yield from validated([equality(start, best)], sample, n_tried)


def _are_within_a_year(gaps: Numbers) -> bool:
    """Returns whether most gaps between two dates, in seconds, are at most a year, and not all the
    same. A time zone may make a gap negative, by a day at most."""
    known = gaps[~np.isnan(gaps)]
    inside = (known >= -_DAY) & (known < 367 * _DAY)
    return bool(len(known) and inside.mean() >= LEAST_SHARE and np.ptp(known) > 0)


def _is_clock(values: Numbers) -> bool:
    known = values[~np.isnan(values)]
    if not len(known) or known.min() < 0 or known.max() > 2400 or known.max() < 100:
        return False
    minutes = known % 100
    return bool((minutes < 60).all() and (minutes > 0).any() and (known == np.floor(known)).all())
