"""Finds columns of two levels that compare two columns, or say whether two conditions hold.

    is_late == (delivered > promised)              is_slow == (wait > 60 * hours)
    is_vip == (spend >= 1000 and orders >= 5)      refused == (score < 50 or absent > 12)

All rows of one level satisfy the conditions, and all rows of the other level violate one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from gcvae.arrays import Mask, Numbers
from gcvae.numerics.outward import plainest
from gcvae.rules.row_sample import Candidate, RowSample, validated
from gcvae.rules.search_conditions import MOST_LEVELS, one_of
from gcvae.rules.search_orders import as_written
from gcvae.schema.columns import Column, Level
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule

_LEAST_ROWS = 20
"""Minimum number of training rows of each level."""
_LEAST_OWN = 5
"""Minimum number of training rows that a condition excludes, and that only it excludes."""
_LEAST_SHARE = 0.995
_MOST_COLUMNS, _MOST_NAMED, _MOST_TRIED = 20, 6, 3
_MOST_DIGITS = 2
"""Maximum number of digits of a factor between two columns."""


class _Test(NamedTuple):
    """A condition v >= limit.

    Attributes:
        size: Complexity.
        values: Number v in each of n rows; NaN where it is unknown. Shape: (n,).
        text: Expression of the condition, with {} for a limit that follows from the rows.
        negated: Expression of its negation.
        limit: The limit, if it does not follow from the rows.
        sign: -1 if the limit in the expression is that of -v, else 1.
        dates: Column of the limit if it is a date.
        is_of_two: Whether the condition compares two columns.
    """

    size: float
    values: Numbers
    text: str
    negated: str
    limit: float | None = None
    sign: int = 1
    dates: Column | None = None
    is_of_two: bool = False


def find_flags(sample: RowSample, column: Column) -> Iterator[Candidate]:
    """Yields rules by which a column of two levels compares two columns, or says whether two
    conditions hold; the simplest first."""
    codes, n, n_tried = sample.codes[column.name], len(sample.training), 1
    cells = pd.concat([half.frame[column.name] for half in sample.halves])
    levels, found = pd.unique(cells.dropna()).tolist(), list[tuple[float, Rule]]()
    for code in (0, 1):
        is_own, is_other = codes == code, codes == 1 - code
        if min(is_own[:n].sum(), is_other[:n].sum()) < _LEAST_ROWS:
            return
        tests, left = list[_Test](), list[Mask]()
        for test in _tests(sample, column.name, is_own[:n]):
            least = test.values[:n][is_own[:n]].min()
            if np.isnan(least) or (test.limit is not None and least < test.limit):
                continue
            is_left = ~(test.values < (least if test.limit is None else test.limit))
            if (~is_left[:n] & is_other[:n]).sum() >= _LEAST_OWN:
                tests.append(test)
                left.append(is_left & is_other)
        n_tried += len(tests) ** 2
        if any(not t.is_of_two and not rest[:n].any() for t, rest in zip(tests, left, strict=True)):
            return  # one column alone says it
        if not tests:
            continue
        seen = np.stack(left)[:, :n].astype(np.float32)
        pairs = np.argwhere(np.triu(seen @ seen.T == 0, 1)).tolist()
        chosen = [[i] for i, test in enumerate(tests) if test.is_of_two and not left[i][:n].any()]
        chosen += [pair for pair in pairs if min(seen[pair].sum(axis=1)) >= _LEAST_OWN]
        for places in chosen:
            limits = [
                limit
                for i in places
                for rest in [is_other if len(places) == 1 else left[sum(places) - i]]
                if (limit := _limit(tests[i], is_own, rest, n)) is not None
            ]
            if len(limits) == len(places):
                size = sum(
                    tests[i].size + 0.1 * len(limit)
                    for i, limit in zip(places, limits, strict=True)
                )
                rule = _rule(column.name, [tests[i] for i in places], limits, code, levels)
                found.append((size, rule))
    found.sort(key=lambda one: one[0])
    yield from validated([rule for _, rule in found[:_MOST_TRIED]], sample, n_tried, _LEAST_SHARE)


def _tests(sample: RowSample, y: str, is_own: Mask) -> Iterator[_Test]:
    """Yields conditions on columns other than y. `is_own` is the mask of the training rows of a
    level, among which levels of other columns are sought."""
    halves, others = sample.halves, [c for c in sample.columns if c.name != y]
    frame = pd.concat([half.frame for half in halves])
    for columns in (sample.numeric[:_MOST_COLUMNS], sample.dates[:_MOST_COLUMNS]):
        values = {
            c.name: np.concatenate([half.numbers[c.name] for half in halves])
            for c in columns
            if c.name != y
        }
        for column in columns:
            if column.name in values:
                x, v, date = quoted_name(column.name), values[column.name], None
                date = column if column.has_times else None
                yield _Test(1.0, v, f"{x} >= {{}}", f"{x} < {{}}", dates=date)
                yield _Test(1.0, -v, f"{x} <= {{}}", f"{x} > {{}}", sign=-1, dates=date)
        for a, b in permutations(values, 2):
            x, z, v = quoted_name(a), quoted_name(b), values[a] - values[b]
            yield _Test(1.2, np.sign(v), f"{x} >= {z}", f"{x} < {z}", 0.0, is_of_two=True)
            yield _Test(1.2, np.sign(v), f"{x} > {z}", f"{x} <= {z}", 1.0, is_of_two=True)
            if columns is not sample.dates and np.nanmin(values[b]) > 0:
                v = values[a] / values[b]
                least, most = f"{x} >= {{}} * {z}", f"{x} <= {{}} * {z}"
                yield _Test(1.6, v, least, f"{x} < {{}} * {z}", is_of_two=True)
                yield _Test(1.6, -v, most, f"{x} > {{}} * {z}", sign=-1, is_of_two=True)
    for column in others:
        blank, x = frame[column.name].isna().to_numpy(), quoted_name(column.name)
        if blank.any():
            of_x = f"is_missing({x})"
            yield _Test(0.8, np.where(blank, 0.0, 1.0), f"not {of_x}", of_x, 1.0)
            yield _Test(0.8, np.where(blank, 1.0, 0.0), of_x, f"not {of_x}", 1.0)
        levels = pd.unique(frame[column.name].dropna()).tolist()
        if column.kind.has_levels and 2 <= len(levels) <= MOST_LEVELS:
            codes = sample.codes[column.name]
            there = np.isin(np.arange(len(levels)), codes[: len(is_own)][is_own])
            is_negative = there.sum() > len(levels) / 2
            named = ~there if is_negative else there
            if 0 < named.sum() <= _MOST_NAMED:
                text, negated = (
                    one_of(column.name, levels, named, is_negative=is_it)
                    for is_it in (is_negative, not is_negative)
                )
                v = np.where(codes < 0, np.nan, there[codes].astype(np.float64))
                yield _Test(1.0 + 0.1 * named.sum(), v, text, negated, 1.0)


def _limit(test: _Test, is_own: Mask, needed: Mask, n: int) -> str | None:
    """Returns the limit in a condition's expression, with the fewest digits of those that separate
    the rows of a level from those that the condition has to exclude; None if it has too many.

    Args:
        is_own: Mask of the rows of the level; the first n are training rows.
        needed: Mask of the rows to exclude.
    """
    if test.limit is not None:
        return ""
    v = test.values
    for rows in (slice(None), slice(n)):
        low, high = np.nanmax(v[rows][needed[rows]], initial=-np.inf), v[rows][is_own[rows]].min()
        if low < high:
            break
    else:
        return None
    if test.dates is not None:
        return repr(as_written(test.sign * high, test.dates))
    limit = f"{test.sign * plainest(np.nextafter(low, high), high, slack=0.0):.12g}"
    is_plain = len(limit.replace(".", "").strip("0")) <= _MOST_DIGITS
    return limit if is_plain or not test.is_of_two else None


def _rule(y: str, tests: list[_Test], limits: list[str], code: int, levels: list[Level]) -> Rule:
    """Returns the rule that column y has the level with index `code` where all conditions hold."""
    is_false = levels[code] is False
    texts = [
        (test.negated if is_false else test.text).replace("{}", limit)
        for test, limit in zip(tests, limits, strict=True)
    ]
    text = (" or " if is_false else " and ").join(texts)
    if isinstance(levels[code], bool):
        return Rule(f"{quoted_name(y)} == ({text})", source="found")
    table = {"false": levels[1 - code], "true": levels[code]}
    return Rule(f"{quoted_name(y)} == name[{text}]", source="found", tables={"name": table})
