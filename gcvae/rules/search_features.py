"""Finds columns that a feature of another column determines, and looked-up factors.

    weekday == weekday(ordered)        quarter == name[quarter(ordered)]       parts by their names
    is_active == is_missing(left)      cold == (temperature < 2)               truth values
    age == years(born, "2025-06-30")   tenure == months(hired, left)           completed spans
    grade == name[bracket(points, 50, 75, 90)]                                 limits of a number
    bonus == rate[grade] * salary      price == extra[size] + base             factors and summands
    discount == rate[bracket(days, 7, 30)] * rent                              factors by limits
    due == ordered + extra[priority]                                           days of a level

The training half of the sample fits lookup tables such as `rate`, the validation half validates
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.cells.grid_units import grid_unit
from gcvae.expressions.terms import key_texts
from gcvae.numerics.outward import plainest
from gcvae.rules.plan import Plan
from gcvae.rules.row_sample import (
    LEAST_SHARE,
    MOST_LEVELS,
    Candidate,
    Half,
    RowSample,
    equality,
    validated,
)
from gcvae.rules.search_conditions import find_flags
from gcvae.rules.search_dates import counted_from, evaluated, has_part, numbers_of, share_equal
from gcvae.rules.search_functions import most_frequent_codes
from gcvae.schema.columns import Column, Level, TableSchema
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule

_LEAST_OF_LEVELS = 0.995
"""Minimum share of rows that satisfy a time span in a column of levels; others are unknown
levels."""
_SURE_SHARE = 0.995
"""Minimum share of rows that satisfy a lookup that is preferred to intervals of a number."""
_LEAST_OF_SIDES = 0.98
"""Minimum share of rows on the right side of a threshold."""
_MOST_BRACKETS, _LEAST_OF_BRACKET = 20, 3
"""Maximum number of levels with separate ranges of a number, and minimum number of distinct numbers
for each; with fewer, a functional dependency describes them as well."""
_NEIGHBOURS, _LEAST_OF_GAP = 10, 1e-4
"""Number of distinct numbers considered on either side of a gap, and probability below which a gap
between random numbers counts as one between clusters."""
_MOST_DIGITS = 4
"""Maximum number of digits of a factor between limits; more would fit any smooth curve."""
_MOST_COLUMNS = 40
_MOST_DATES = 12
_FEW_ROWS = 200
_SIEVE_ROWS = 400
_LEAST_OF_KEY = 2
"""Minimum number of training rows that contain a key of a lookup table."""
_LEAST_OF_VALUE = 4
_DAY = 86_400.0
_YEAR = 365.25 * _DAY
_PARTS = ("weekday", "month", "quarter", "year", "hour", "day")
_BACKWARD = 6
"""Penalty, in digits, for a column that is computed from columns to its right."""
Texts = npt.NDArray[Any]


def find_features(sample: RowSample, plan: Plan) -> Iterator[Candidate]:
    """Finds columns that a feature of another column determines, such as its weekday, a truth value
    or a looked-up factor; at most one rule for each column."""
    columns = sample.of_levels[:_MOST_COLUMNS]
    features = list(_features(sample))
    n_tried = max(len(columns) * len(features), 1)
    yield from _spans(sample, plan)
    # Brackets come after factors, which may have separate ranges too.
    unsure: list[tuple[Column, list[Candidate]]] = []
    for column in columns:
        found = list(_lookups(sample, column, features, n_tried))
        sure = [c for c in found if c.share >= _SURE_SHARE]
        best = _best([c for c in sure if "is_missing(" not in c.rule.text], plan)
        has_two = sample.training.codes[column.name].max() == 1
        if not best and not sure and has_two:
            best = _best([*found, *_thresholds(sample, column)], plan)
        if not best and has_two:  # a flag more likely determines what is missing
            best = _best(find_flags(sample, column), plan)
        if best or sure or has_two:
            yield from best or _best(sure, plan)
        else:
            unsure.append((column, found))
    yield from _factors(sample, plan)
    for column, found in unsure:
        yield from _best([*found, *_thresholds(sample, column)], plan)


def _best(candidates: Iterable[Candidate], plan: Plan) -> list[Candidate]:
    """Returns a list with the candidate that gains most of those that the plan allows; an empty
    list if the plan allows none."""
    found = [candidate for candidate in candidates if plan.allows(candidate.rule)]
    return sorted(found, key=lambda c: (-round(c.nats, 3), _digits(c.rule)))[:1]


def _digits(rule: Rule) -> int:
    """Returns the number of characters of all entries in a rule's lookup tables; of equally good
    rules, the one with the fewest is preferred."""
    entries = [entry for table in rule.tables.values() for entry in table.values()]
    return sum(len(str(entry)) for entry in entries)


def _most_digits(rule: Rule) -> int:
    """Returns the number of digits of the longest number in a rule's lookup tables, without zeros
    at its beginning and end."""
    entries = [entry for table in rule.tables.values() for entry in table.values()]
    return max(len(str(entry).replace(".", "").strip("0")) for entry in entries)


# Lookups


class _Feature(NamedTuple):
    """A value computed from one column, such as the weekday of a date: its expression, the column's
    name, and the value in each training row as a key of a lookup table. Shape: (n,)."""

    text: str
    name: str
    keys: Texts


def _features(sample: RowSample) -> Iterator[_Feature]:
    """Yields parts of dates, and whether cells are missing, as features."""
    frame = sample.training.frame
    texts = [
        (date.name, f"{part}({quoted_name(date.name)})")
        for date in sample.dates[:_MOST_DATES]
        for part in _PARTS
        if has_part(part, date)
    ]
    for column in sample.columns:
        if 0.005 < frame[column.name].isna().mean() < 0.995:
            texts.append((column.name, f"is_missing({quoted_name(column.name)})"))
    for name, text in texts:
        yield _Feature(text, name, _keys(text, frame, sample.schema))


def _keys(text: str, frame: pd.DataFrame, schema: TableSchema) -> Texts:
    kind, value = evaluated(text, frame, schema)
    return key_texts(value, kind)


def _lookups(
    sample: RowSample, column: Column, features: Sequence[_Feature], n_tried: int
) -> Iterator[Candidate]:
    """Yields validated rules that look up a column's level by one of the features."""
    cells, n_levels = sample.training.frame[column.name], sample.codes[column.name].max() + 1
    for feature in features:
        if feature.name == column.name:
            continue
        table = _table(feature.keys, cells)
        if not table:
            continue
        rule = _lookup(column, feature.text, table)
        is_reverse = feature.text.startswith("is_missing(") and len(set(table.values())) < n_levels
        least = _SURE_SHARE if is_reverse else LEAST_SHARE  # more likely, it determines the blanks
        for found in validated([rule], sample, n_tried, least):
            yield replace(found, nats=found.nats * float(pd.notna(feature.keys).mean()))


def _table(keys: Texts, cells: pd.Series[Any]) -> dict[str, Level] | None:
    """Returns the lookup table {key: most frequent cell}; None if keys do not determine cells.
    Shape: (n,), (n,)."""
    known = pd.notna(keys) & cells.notna().to_numpy()
    if known.sum() < 2 * _LEAST_OF_VALUE:
        return None
    key_codes, key_names = pd.factorize(keys[known])
    codes, values = pd.factorize(cells.to_numpy(dtype=object)[known])
    counts = np.zeros((len(key_names), len(values)), dtype=np.int64)
    np.add.at(counts, (key_codes, codes), 1)
    if counts.max(axis=1).sum() < LEAST_SHARE * known.sum():
        return None
    usual = counts.argmax(axis=1)
    if len(set(usual.tolist())) < 2:
        return None
    return {
        str(key): _plain(values[usual[k]])
        for k, key in sorted(enumerate(key_names), key=lambda pair: _key_order(pair[1]))
        if counts[k].sum() >= _LEAST_OF_KEY
    }


def _key_order(key: str) -> tuple[float, str]:
    return (float(key), "") if key.isdecimal() else (np.inf, key)


def _plain(value: Any) -> Level:
    return value.item() if isinstance(value, np.generic) else value  # type: ignore[no-any-return]


def _lookup(column: Column, feature: str, table: Mapping[str, Level]) -> Rule:
    """Returns the rule y == name[feature]. If the table maps truth values to truth values, or each
    weekday to itself, the rule is y == feature or y == (not feature)."""
    if feature.startswith("weekday(") and all(value == key for key, value in table.items()):
        return equality(column, feature)
    if all(isinstance(value, bool) for value in table.values()) and {"true", "false"} >= {*table}:
        same = table.get("true", True) is True
        return equality(column, feature if same else f"(not {feature})")
    return equality(column, f"name[{feature}]", {"name": dict(table)})


# Thresholds


def _thresholds(sample: RowSample, column: Column) -> Iterator[Candidate]:
    """Yields rules for columns y whose levels have separate ranges of a number x.

    For two levels, the rule compares x with a limit, as in y == (x >= limit). For more levels, it
    is y == name[bracket(x, limits)].
    """
    n, codes = len(sample.training), sample.codes[column.name]
    levels = [_plain(level) for level in pd.unique(sample.training.frame[column.name].dropna())]
    k, n_tried = len(levels), max(len(sample.numeric), 1) * 4
    if not 2 <= k <= _MOST_BRACKETS:
        return
    for other in _ordering_columns(sample, codes, k):
        x = sample.numbers[other.name]
        found = _ranges(codes, x, k) or _ranges(codes[:n], x[:n], k)
        is_fine = k == 2 or len(np.unique(x[:n])) >= _LEAST_OF_BRACKET * k
        if found is None or not is_fine or other.name == column.name:
            continue
        order, limits = found
        ordered, number = [levels[code] for code in order], quoted_name(other.name)
        is_positive = k == 2 and float(np.nanmin(x)) == 0.0 and not (x[codes == order[0]] > 0).any()
        above, below = ("> 0", "== 0") if is_positive else (f">= {limits[0]}", f"< {limits[0]}")
        of = f"bracket({number}, {', '.join(limits)})" if k > 2 else f"{number} {above}"
        if isinstance(ordered[0], bool):
            text = f"{number} {above if ordered[1] else below}"
            rule = equality(column, f"({text})")
        else:
            keys = map(str, range(k)) if k > 2 else ("false", "true")
            table = dict(zip(keys, ordered, strict=True))
            rule = equality(column, f"name[{of}]", {"name": table})
        yield from validated([rule], sample, n_tried, _LEAST_OF_SIDES)


def _ordering_columns(sample: RowSample, codes: Codes, n_levels: int) -> Iterator[Column]:
    """Yields the numeric columns that may separate the levels of a column: in rows sorted by such a
    number, the level changes only n_levels - 1 times."""
    rows = np.flatnonzero(codes[: len(sample.training)] >= 0)[:_SIEVE_ROWS]
    for column in sample.numeric:
        x = sample.training.numbers[column.name][rows]
        known = ~np.isnan(x)
        of_level = codes[rows[known]][np.argsort(x[known], kind="stable")]
        if (of_level[1:] != of_level[:-1]).sum() < n_levels:
            yield column


def _ranges(codes: Codes, x: Numbers, n_levels: int) -> tuple[list[int], list[str]] | None:
    """Returns (levels in ascending order of a number, limits between them with the fewest digits);
    None if the numbers of two levels overlap. Shape: (n,), (n,)."""
    of_levels = [x[(codes == code) & ~np.isnan(x)] for code in range(n_levels)]
    if sorted(map(len, of_levels))[-2] < _LEAST_OF_VALUE or min(map(len, of_levels)) == 0:
        return None
    order = sorted(range(n_levels), key=lambda code: float(of_levels[code].min()))
    ends = [(of_levels[a].max(), of_levels[b].min()) for a, b in pairwise(order)]
    if any(high >= low for high, low in ends) or _are_clusters(x, ends):
        return None
    limits = [plainest(np.nextafter(high, low), low, slack=0.0) for high, low in ends]
    return order, [f"{limit:.12g}" for limit in limits]


def _are_clusters(x: Numbers, ends: Sequence[tuple[float, float]]) -> bool:
    """Returns whether numbers lie in separate clusters, such as the latitudes of cities: the number
    then follows from the level, not the level from the number.

    Each gap in `ends`, between two levels, is compared with the interval from the tenth distinct
    number below it to the tenth above it. It separates clusters if at most 1 of 10,000 random gaps
    would be as large a part of this interval.
    """
    values = np.unique(x[~np.isnan(x)])
    for high, low in ends:
        at = int(np.searchsorted(values, low))
        around = values[max(at - _NEIGHBOURS, 0) : at + _NEIGHBOURS]
        chance = (1 - (low - high) / (around[-1] - around[0])) ** (len(around) - 1)
        if chance < _LEAST_OF_GAP:
            return True
    return False


# Completed spans


def _spans(sample: RowSample, plan: Plan) -> Iterator[Candidate]:
    """Yields rules for columns that count the completed years, months or days from a date to
    another date or to a fixed day."""
    dates = sample.dates[:_MOST_DATES]
    whole = [c for c in sample.numeric if _is_count(sample.training.numbers[c.name])]
    whole = whole[:_MOST_COLUMNS]
    if not dates or not whole:
        return
    n_tried = 3 * len(whole) * len(dates) ** 2
    few = sample.training.frame[:_FEW_ROWS]
    predicted = {
        text: numbers_of(text, few, sample.schema)
        for first, last in permutations(dates, 2)
        for part in ("years", "months", "days")
        for text in [f"{part}({quoted_name(first.name)}, {quoted_name(last.name)})"]
    }
    for column in whole:
        y = sample.training.numbers[column.name][:_FEW_ROWS]
        texts = [text for text, span in predicted.items() if share_equal(y, span) >= LEAST_SHARE]
        texts += _ages(sample, column, dates)
        least = _LEAST_OF_LEVELS if column.kind.has_levels else LEAST_SHARE
        rules = [equality(column, text) for text in texts]
        yield from _best(validated(rules, sample, n_tried, least), plan)


def _ages(sample: RowSample, column: Column, dates: Sequence[Column]) -> list[str]:
    texts = []
    for date in dates:
        day = _reference_day(sample.numbers[date.name], sample.numbers[column.name])
        if day is not None:
            texts.append(f'years({quoted_name(date.name)}, "{day}")')
    return texts


def _is_count(values: Numbers) -> bool:
    known = values[~np.isnan(values)]
    return bool(len(known) and known.min() >= 0 and (known == np.floor(known)).all())


def _reference_day(born: Numbers, years: Numbers) -> str | None:
    """Returns a day on which most rows have the given ages in completed years, with dates of birth
    in seconds since 1970; None if there is none. Shape: (n,), (n,).

    An age restricts the day to the year from one birthday to the next. Among the days that fit most
    rows, the end of a month is preferred, else the last day.
    """
    known = ~(np.isnan(born) | np.isnan(years)) & (years < 200)
    if known.sum() < 2 * _LEAST_OF_VALUE or len(np.unique(years[known])) < 3:
        return None
    days = pd.DatetimeIndex(born[known].astype("datetime64[s]")).normalize()
    age = years[known].astype(int)
    middle = np.median(born[known] + years[known] * _YEAR).astype("datetime64[s]")
    if not np.datetime64("1700") < middle < np.datetime64("2250"):
        return None
    first = _birthdays(days, age)
    last = _birthdays(days, age + 1)
    edges = np.unique(np.concatenate([first, last]))
    inside = np.searchsorted(np.sort(first), edges, side="right")
    inside -= np.searchsorted(np.sort(last), edges, side="right")
    best = int(inside.argmax())
    if inside[best] < 0.95 * known.sum():
        return None
    end = edges[min(best + 1, len(edges) - 1)]
    days_left = np.arange(edges[best], max(end, edges[best] + np.timedelta64(1, "D")))
    next_days = days_left + np.timedelta64(1, "D")
    is_end = next_days == next_days.astype("datetime64[M]").astype("datetime64[D]")
    return str(days_left[is_end][-1] if is_end.any() else days_left[-1])


def _birthdays(days: pd.DatetimeIndex, ages: npt.NDArray[Any]) -> npt.NDArray[np.datetime64]:
    """Returns the day on which somebody who was born on a given day has a given age; 1 March for a
    leap day. Shape: (n,)."""
    months = (days.year.to_numpy() + ages - 1970) * 12 + days.month.to_numpy() - 1
    first = months.astype("datetime64[M]").astype("datetime64[D]")
    return np.asarray(first + (days.day.to_numpy() - 1).astype("timedelta64[D]"))


# Factors


def _factors(sample: RowSample, plan: Plan) -> Iterator[Candidate]:
    """Yields rules y == rate[level] * x and y == x + extra[level], in which a column of levels
    determines a factor or summand of another column x. Intervals of a number may also determine a
    factor. Dates have summands in days."""
    numbers, codes = sample.training.numbers, sample.training.codes
    levels = sample.of_levels[:_MOST_COLUMNS]
    numeric, dates = sample.numeric[:_MOST_COLUMNS], sample.dates[:_MOST_DATES]
    n_tried = max(2 * len(levels) * (len(numeric) ** 2 + len(dates) ** 2), 1)
    relations: dict[frozenset[str], list[Candidate]] = {}
    for y, x in (*permutations(numeric, 2), *permutations(dates, 2)):
        unit = grid_unit(y)
        if unit is None or np.nanstd(numbers[y.name]) < 4 * unit:
            continue
        if y.has_times and any({y.name, x.name} <= {*rule.columns} for rule in plan.rules):
            continue  # another rule relates the dates
        for form in ("summand",) if y.has_times else ("factor", "summand"):
            if not _are_few(form, _in_days(sample.training, y), _base(sample, x, y)[1]):
                continue
            if not plan.allows(Rule(f"{quoted_name(y.name)} == {quoted_name(x.name)}")):
                break
            own = [(quoted_name(c.name), codes[c.name]) for c in levels if c not in (y, x)]
            found = [c for level in own for c in _with_levels(sample, y, x, level, form, n_tried)]
            for limits in _brackets(sample, y, x) if form == "factor" else ():
                of_limits = _with_levels(sample, y, x, limits, form, n_tried)
                found += [c for c in of_limits if _most_digits(c.rule) <= _MOST_DIGITS]
            relations.setdefault(frozenset({y.name, x.name}), []).extend(found)
    positions = {name: i for i, name in enumerate(sample.schema.names)}

    def key(candidate: Candidate) -> tuple[float, int]:
        rule = candidate.rule
        is_backward = any(positions[name] > positions[rule.column] for name in rule.parents)
        return -round(candidate.share, 2), _digits(rule) + _BACKWARD * is_backward

    for candidates in relations.values():
        yield from [c for c in sorted(candidates, key=key) if plan.allows(c.rule)][:1]


def _are_few(form: str, y: Numbers, x: Numbers) -> bool:
    """Returns whether y / x (form "factor") or y - x (form "summand") has few distinct values,
    after rounding to three significant digits. Shape: (n,) twice."""
    known = ~(np.isnan(y) | np.isnan(x)) & (x != 0)
    has_zeros = form == "factor" and bool((y[known] == 0).any())
    known &= y != 0
    n_largest, y, x = max(len(y) // 2, 20), y[known], x[known]
    for n, most in ((_SIEVE_ROWS, 0.5), (len(y), 0.2)):  # some rows suffice to refute
        if form == "factor":
            largest = np.argsort(-np.abs(y[:n]))[: min(n_largest, max(n // 2, 20))]
            ratios = y[:n][largest] / x[:n][largest]
        else:
            ratios = y[:n] - x[:n]
        ratios = ratios[np.isfinite(ratios)]
        size = 10.0 ** np.floor(np.log10(np.maximum(np.abs(ratios), 1e-300)))
        found, counts = np.unique(np.round(ratios / size, 2) * size, return_counts=True)
        n_usual = np.sort(counts)[-MOST_LEVELS:].sum()
        if not 2 <= len(found) + has_zeros < most * len(ratios) or n_usual < 0.9 * len(ratios):
            return False
    return len(y) >= 20


def _in_days(half: Half, column: Column) -> Numbers:
    return half.numbers[column.name] / (_DAY if column.has_times else 1.0)


def _base(sample: RowSample, x: Column, y: Column) -> tuple[str, Numbers]:
    """Returns (expression, numbers in n training rows, dates in days) of the column x to which a
    factor or summand of y refers. Shape: (n,)."""
    if not y.has_times:
        return quoted_name(x.name), sample.training.numbers[x.name]
    text, seconds = counted_from(sample, x, y)
    return text, seconds / _DAY


def _brackets(sample: RowSample, y: Column, x: Column) -> Iterator[tuple[str, Codes]]:
    """Yields expressions that divide a number z into intervals within which y / x is constant, such
    as z >= 7 or bracket(z, 7, 30). They serve as keys of lookup tables.

    Each is yielded as (expression, index of the interval in each of n training rows; -1 for
    missing). Shape: (n,).
    """
    numeric, near = sample.numeric[:_MOST_COLUMNS], (0.5 + 1e-6) * (grid_unit(y) or 0.0)
    values = sample.numbers
    target, other = values[y.name], np.where(values[x.name] == 0, np.nan, values[x.name])
    ends = np.sort(np.stack([target - near, target + near]) / other, axis=0)
    for column in numeric:
        z = values[column.name]
        rows = np.flatnonzero(~(np.isnan(ends[0]) | np.isnan(z)))
        rows = rows[np.argsort(z[rows], kind="stable")]
        few = rows[:: max(len(rows) // _SIEVE_ROWS, 1)]
        if column.name == y.name or _group_sizes(ends[:, few]) is None:
            continue
        forth, back = (_group_sizes(ends[:, order]) for order in (rows, rows[::-1]))
        if forth is None or back is None or not 2 <= len(forth) == len(back):
            continue
        firsts, lasts = len(rows) - np.cumsum(back[:-1])[::-1], np.cumsum(forth[:-1])
        lows, highs = z[rows][np.minimum(firsts, lasts) - 1], z[rows][np.maximum(firsts, lasts)]
        if min(*forth, *back) < _LEAST_OF_VALUE or (lows >= highs).any():
            continue
        between = zip(lows.tolist(), highs.tolist(), strict=True)
        limits = [plainest(np.nextafter(low, high), high, slack=0.0) for low, high in between]
        of_z, texts = quoted_name(column.name), [f"{limit:.12g}" for limit in limits]
        own = z[: len(sample.training)]
        codes = np.where(np.isnan(own), -1, np.searchsorted(limits, own, side="right"))
        is_one = len(limits) == 1
        yield f"{of_z} >= {texts[0]}" if is_one else f"bracket({of_z}, {', '.join(texts)})", codes


def _group_sizes(ends: Numbers) -> list[int] | None:
    """Divides n intervals into few consecutive groups, so that all intervals of a group contain a
    common number, and returns the sizes of the groups; None if there are too many groups. `ends`
    are the lower and the upper ends of the intervals. Shape: (2, n)."""
    sizes, low, high = [0], -np.inf, np.inf
    for first, last in ends.T.tolist():
        low, high = max(low, first), min(high, last)
        if low > high:
            low, high = first, last
            sizes.append(0)
        sizes[-1] += 1
        if len(sizes) > _MOST_BRACKETS:
            return None
    return sizes


def _with_levels(
    sample: RowSample, y: Column, x: Column, key: tuple[str, Codes], form: str, n_tried: int
) -> list[Candidate]:
    """Returns, in a list, the rule in which each level has its own factor or summand: the number
    with the fewest digits that fits all rows of the level. The list is empty if the rule is not
    valid.

    `key` is (expression of the level, index of the level in each training row). The rule is y ==
    rate[level] * x for the form "factor", y == x + extra[level] for "summand".
    """
    half = sample.training
    near = (0.5 + 1e-6) * (grid_unit(y) or 0.0) / (_DAY if y.has_times else 1.0)
    target, (of_x, other) = _in_days(half, y), _base(sample, x, y)
    level, codes = key
    rows = np.flatnonzero(~np.isnan(target) & ~np.isnan(other) & (codes >= 0) & (other != 0))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    if not len(rows):
        return []
    ends = np.stack([target - near, target + near])[:, rows]
    ends = ends / other[rows] if form == "factor" else ends - other[rows]
    firsts = np.flatnonzero(np.diff(codes[rows], prepend=-1))
    n_rows = np.diff(firsts, append=len(rows))
    values = pd.factorize(target[rows])[0]
    usual = most_frequent_codes(codes[rows], values)[codes[rows]]
    if (values == usual).mean() >= LEAST_SHARE:
        return []  # the level alone determines the column
    lows = np.maximum.reduceat(ends.min(axis=0), firsts)
    highs = np.minimum.reduceat(ends.max(axis=0), firsts)
    is_one = lows <= highs
    if n_rows[is_one].sum() < 0.95 * len(rows):
        return []
    keys = _keys(level, half.frame.iloc[rows[firsts]], sample.schema)
    within = sorted(zip(keys[is_one], lows[is_one], highs[is_one], strict=True))
    table: dict[str, Level] = {key: plainest(low, high) for key, low, high in within}
    if len(set(table.values())) < 2:
        return []
    name = "rate" if form == "factor" else "extra"
    text = f"rate[{level}] * {of_x}" if form == "factor" else f"{of_x} + extra[{level}]"
    return list(validated([equality(y, text, {name: table})], sample, n_tried))
