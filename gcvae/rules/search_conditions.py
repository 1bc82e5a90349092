"""Finds conditions on rows that decide a column's level, or whether its cell is missing.

    missing cells of `end` are those of `start`     missing where another cell is missing, or is not
    is_missing(left) == (status == 'active')        missing where another column has certain levels
    not is_missing(phone) if is_missing(mail)       at least one of two cells has a value
    origin != destination                           columns of the same levels that never agree
    is_late == (delivered > promised)               a flag compares two columns
    is_vip == (spend >= 1000 and orders >= 5)       a flag says whether two conditions hold

Rules like the first example may have exceptions. Rules like the next three examples hold in all
rows of the sample, although many rows would violate them if the columns were independent. A flag,
as in the last two examples, is a column of two levels: all rows of one level satisfy the
conditions, and all rows of the other level violate at least one condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.numerics.outward import plainest
from gcvae.rules.plan import Plan
from gcvae.rules.row_sample import (
    Agreement,
    Candidate,
    RowSample,
    equality,
    least_nats,
    validated,
)
from gcvae.rules.search_orders import as_written
from gcvae.schema.columns import Column, Level
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Missingness, Rule, missingness

_LEAST_IMPLIED, _LEAST_IMPLYING = 0.98, 5
"""Of the rows in which a rule on missing cells says that a cell is missing: minimum share in which
it is, and minimum number in each half of the sample."""
_LEAST_NAMED = 12
"""Minimum number of sampled rows that contain a level that a condition names."""
_LEAST_SHARED = 3  # minimum number of common levels of two columns that are never equal
_LEAST_ROWS = 20
"""Minimum number of training rows of each level of a flag."""
_LEAST_OWN = 5
"""Minimum number of training rows that a condition excludes, and that only it excludes."""
_LEAST_SHARE = 0.995
_MOST_COLUMNS, _MOST_NAMED, _MOST_TRIED = 20, 6, 3
_MOST_DIGITS = 2
"""Maximum number of digits of a factor between two columns."""


# Missing cells


def find_missingness(sample: RowSample) -> list[Candidate]:
    """Returns rules on missing cells, at most one for each column y: y is missing where another
    column x is missing, or where x has a value.

    If several columns x are possible, one for which the converse holds too is preferred. If two
    columns are missing together, or always exactly one of them is, only the later one in the table
    is y.
    """
    names = [c.name for c in sample.columns if sample.training.frame[c.name].isna().any()]
    seen, unseen = (half.frame[names].isna().to_numpy() for half in sample.halves)
    is_likely = {}
    for is_inverse in (False, True):
        there = (seen != is_inverse).astype(np.float64)
        is_likely[is_inverse] = there.T @ seen >= _LEAST_IMPLIED * there.sum(axis=0)[:, None]
    found, same = list[Candidate](), set[int]()
    for j, name in enumerate(names):
        candidates = []
        for i, is_inverse in product(range(len(names)), (False, True)):
            if i in same or not is_likely[is_inverse][i, j]:
                continue
            pairs = [(half[:, i] != is_inverse, half[:, j]) for half in (seen, unseen)]
            n_there, n_here = (
                [int(mask.sum()) for mask in own] for own in zip(*pairs, strict=True)
            )
            n_both = [int((there & here).sum()) for there, here in pairs]
            forth, back = (
                min(both / max(n, 1) for both, n in zip(n_both, own, strict=True))
                for own in (n_there, n_here)
            )
            together = min(forth, back) >= _LEAST_IMPLIED
            is_second = i >= j if together or is_inverse else i == j
            if is_second or forth < _LEAST_IMPLIED or min(n_there) < _LEAST_IMPLYING:
                continue
            there, here = pairs[1]
            n_rows = int((there | here).sum()) if together else n_there[1]
            agreement = Agreement(n_both[1] / max(n_rows, 1), float(here.mean()), 1, n_rows)
            if agreement.is_significant(2 * len(names) ** 2):
                text = missingness(names[i], name, is_same=together, is_inverse=is_inverse)
                nats = agreement.nats * n_rows / len(here)
                candidate = Candidate(Rule(text, source="found"), nats, agreement.share)
                candidates.append((together, not is_inverse, n_there[0], candidate))
            if together and not is_inverse:
                same.add(j)
        if candidates:
            found.append(max(candidates, key=lambda c: c[:3])[3])
    return found


def find_conditions(sample: RowSample, plan: Plan) -> Iterator[Candidate]:
    """Yields conditions on pairs of columns that all sampled rows satisfy.

    There are three kinds. One column is missing, or has a value, where the other column has certain
    levels. Two columns are never both missing. Two columns are never equal.

    Conditions of the first kind relate a column with missing cells to only one other column: the
    one whose levels decide most cells.
    """
    n, whole = len(sample.training), sample.frame
    blank = {c.name: whole[c.name].isna().to_numpy() for c in sample.columns}
    names = [name for name, mask in blank.items() if mask[:n].any() and not mask[n:].all()]
    few: dict[str, tuple[Codes, list[Level]]] = {
        c.name: (sample.codes[c.name], pd.unique(whole[c.name].dropna()).tolist())
        for c in sample.of_levels
    }
    # If `least` violations are expected by chance, none occurs with probability exp(-least).
    least = least_nats(2 * (len(names) + len(few)) ** 2 + 1)

    def candidate(excluded: float, text: str) -> Candidate:
        return Candidate(Rule(text, source="found"), excluded / (len(whole) - n), 1.0)

    forms = [rule.form for rule in plan.rules if isinstance(rule.form, Missingness)]
    tied = {(form.column, *form.parents) for form in forms}
    explained = {form.column for form in forms if form.is_same}
    implied = {form.column for form in forms if not form.is_same}
    looked_up = {r.columns for r in plan.rules if "is_missing(" in r.text}
    for y in names:
        of_columns = [
            [
                (m, text)
                for m, text in _of_levels(y, x, *few[x], blank[y], n)
                if m >= least and not (y in implied and ") if " in text)
            ]
            for x in few
            if y not in explained and x != y and (x, y) not in looked_up
        ]
        best = max(of_columns, key=lambda found: sum(m for m, _ in found), default=[])
        yield from (candidate(m, text) for m, text in best)
        explained |= {y} if best or y in implied else set()
    for a, b in combinations(names, 2):
        excluded = blank[a][n:].sum() * blank[b][n:].mean()
        is_news = (a not in explained or b not in explained) and not {(a, b), (b, a)} & tied
        if is_news and excluded >= least and not (blank[a] & blank[b]).any():
            of_b = f"not is_missing({quoted_name(b)})"
            yield candidate(excluded, f"{of_b} if is_missing({quoted_name(a)})")
    for a, b in combinations(few, 2):
        if len({*few[a][1]} & {*few[b][1]}) >= _LEAST_SHARED:
            codes = pd.factorize(pd.concat([whole[a], whole[b]]))[0].reshape(2, -1)
            k = codes.max() + 1
            shares = [np.bincount(own[n:][own[n:] >= 0], minlength=k) for own in codes]
            excluded = float(shares[0] @ shares[1]) / (len(whole) - n)
            if excluded >= least and not ((codes[0] == codes[1]) & (codes[0] >= 0)).any():
                yield candidate(excluded, f"{quoted_name(a)} != {quoted_name(b)}")


def _of_levels(
    y: str, x: str, codes: Codes, levels: Sequence[Level], blank: Mask, n: int
) -> Iterator[tuple[float, str]]:
    """Yields (excluded, rule) for each rule by which column y is missing, or has a value, where
    column x has certain levels. `excluded` is the number of validation rows that would violate the
    rule if the columns were independent.

    `codes` are the indices in `levels` of the cells of x, -1 for missing. The first n rows are the
    training rows, the others the validation rows.
    """
    is_seen, known = np.arange(len(codes)) < n, codes >= 0
    n_rows = np.bincount(codes[known], minlength=len(levels))
    n_unseen = np.bincount(codes[known & ~is_seen], minlength=len(levels))
    sides = []
    for is_there in (blank, ~blank):
        broken = known & ~is_there
        n_broken, n_seen_broken = (
            np.bincount(codes[rows], minlength=len(levels)) for rows in (broken, broken & is_seen)
        )
        named = (n_rows >= _LEAST_NAMED) & (n_rows > n_unseen) & (n_seen_broken == 0)
        excluded = n_unseen[named].sum() * broken[n:].mean()
        sides.append((excluded if not n_broken[named].any() else 0.0, named, n_broken))
    (m_blank, are_blank, _), (m_known, are_known, _) = sides
    of_y = f"is_missing({quoted_name(y)})"
    is_same = [
        m > 0 and not other[2][~named].any()
        for (m, named, _), other in zip(sides, sides[::-1], strict=True)
    ]
    of_blank, of_known = (_one_of(x, levels, named) for named in (are_blank, are_known))
    if is_same[0] and not (is_same[1] and are_known.sum() < are_blank.sum()):
        yield m_blank + m_known, f"{of_y} == ({of_blank})"
    elif is_same[1]:
        yield m_blank + m_known, f"{of_y} != ({of_known})"
    else:
        yield m_blank, f"{of_y} if {of_blank}"
        yield m_known, f"not {of_y} if {of_known}"


def _one_of(x: str, levels: Sequence[Level], named: Mask, *, is_negative: bool = False) -> str:
    """Returns the expression by which column x has one of the levels in the mask `named`, or, if
    `is_negative`, none of them."""
    found = [level for level, is_named in zip(levels, named, strict=True) if is_named]
    of_x = quoted_name(x)
    if len(found) != 1:
        return f"{of_x} {'not in' if is_negative else 'in'} ({', '.join(map(repr, found))})"
    if isinstance(found[0], bool):
        return of_x if found[0] != is_negative else f"not {of_x}"
    return f"{of_x} {'!=' if is_negative else '=='} {found[0]!r}"


# Flags


class _Test(NamedTuple):
    """A condition v >= limit, a building block of the rules for flags (columns of two levels).

    Attributes:
        size: Complexity of the condition.
        values: Number v in each of n rows; NaN where it is unknown. Shape: (n,).
        text: Expression of the condition, with {} in place of a limit that is not fixed.
        negated: Expression of the opposite condition, likewise with {}.
        limit: The limit, if it is fixed; None if it has to be found in the rows (`_limit`).
        sign: -1 if v is the negative of the number that the expression compares, as for `x <= {}`;
            else 1.
        dates: Column of dates that the expression compares with a limit; None if the limit is no
            date.
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
    """Yields rules by which a column of two levels says whether a comparison of two columns holds,
    or whether two conditions both hold; the simplest first."""
    codes, n, n_tried = sample.codes[column.name], len(sample.training), 1
    levels = pd.unique(sample.frame[column.name].dropna()).tolist()
    found = list[tuple[float, Rule]]()
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
            return  # a condition on one column suffices
        if not tests:
            continue
        seen = np.stack(left)[:, :n].astype(np.float32)
        pairs = np.argwhere(np.triu(seen @ seen.T == 0, 1)).tolist()
        chosen = [[i] for i, test in enumerate(tests) if test.is_of_two and not left[i][:n].any()]
        chosen += [pair for pair in pairs if min(seen[pair].sum(axis=1)) >= _LEAST_OWN]
        for indices in chosen:
            limits = [
                limit
                for i in indices
                for rest in [is_other if len(indices) == 1 else left[sum(indices) - i]]
                if (limit := _limit(tests[i], is_own, rest, n)) is not None
            ]
            if len(limits) == len(indices):
                size = sum(
                    tests[i].size + 0.1 * len(limit)
                    for i, limit in zip(indices, limits, strict=True)
                )
                rule = _rule(column, [tests[i] for i in indices], limits, code, levels)
                found.append((size, rule))
    found.sort(key=lambda one: one[0])
    yield from validated([rule for _, rule in found[:_MOST_TRIED]], sample, n_tried, _LEAST_SHARE)


def _tests(sample: RowSample, y: str, is_own: Mask) -> Iterator[_Test]:
    """Yields conditions on columns other than the flag y. A condition on levels names those that
    occur in `is_own`: the training rows in which y has a certain level."""
    frame = sample.frame
    for columns in (sample.numeric[:_MOST_COLUMNS], sample.dates[:_MOST_COLUMNS]):
        others = [column for column in columns if column.name != y]
        for column in others:
            x, v = quoted_name(column.name), sample.numbers[column.name]
            date = column if column.has_times else None
            yield _Test(1.0, v, f"{x} >= {{}}", f"{x} < {{}}", dates=date)
            yield _Test(1.0, -v, f"{x} <= {{}}", f"{x} > {{}}", sign=-1, dates=date)
        for a, b in permutations([column.name for column in others], 2):
            of_a, of_b = sample.numbers[a], sample.numbers[b]
            x, z, v = quoted_name(a), quoted_name(b), of_a - of_b
            yield _Test(1.2, np.sign(v), f"{x} >= {z}", f"{x} < {z}", 0.0, is_of_two=True)
            yield _Test(1.2, np.sign(v), f"{x} > {z}", f"{x} <= {z}", 1.0, is_of_two=True)
            if columns is not sample.dates and np.nanmin(of_b) > 0:
                v = of_a / of_b
                least, most = f"{x} >= {{}} * {z}", f"{x} <= {{}} * {z}"
                yield _Test(1.6, v, least, f"{x} < {{}} * {z}", is_of_two=True)
                yield _Test(1.6, -v, most, f"{x} > {{}} * {z}", sign=-1, is_of_two=True)
    for column in sample.columns:
        if column.name == y:
            continue
        blank, x = frame[column.name].isna().to_numpy(), quoted_name(column.name)
        if blank.any():
            of_x = f"is_missing({x})"
            yield _Test(0.8, np.where(blank, 0.0, 1.0), f"not {of_x}", of_x, 1.0)
            yield _Test(0.8, np.where(blank, 1.0, 0.0), of_x, f"not {of_x}", 1.0)
        if column in sample.of_levels:
            codes = sample.codes[column.name]
            levels = pd.unique(frame[column.name].dropna()).tolist()
            there = np.isin(np.arange(len(levels)), codes[: len(is_own)][is_own])
            is_negative = there.sum() > len(levels) / 2
            named = ~there if is_negative else there
            if 0 < named.sum() <= _MOST_NAMED:
                text, negated = (
                    _one_of(column.name, levels, named, is_negative=is_it)
                    for is_it in (is_negative, not is_negative)
                )
                v = np.where(codes < 0, np.nan, there[codes].astype(np.float64))
                yield _Test(1.0 + 0.1 * named.sum(), v, text, negated, 1.0)


def _limit(test: _Test, is_own: Mask, needed: Mask, n: int) -> str | None:
    """Returns the text of the limit of a condition: a date, or a number with few digits.

    With this limit, all rows `is_own` satisfy the condition, and no row `needed` does. If no number
    separates all rows, only the first n rows, the training rows, are separated.

    Returns "" if the expression of the condition already contains the limit. Returns None if no
    number separates the training rows, or if the limit is a factor between two columns and has too
    many digits.
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


def _rule(y: Column, tests: list[_Test], limits: list[str], code: int, levels: list[Level]) -> Rule:
    """Returns the rule that column y has the level with index `code` where all conditions `tests`
    hold, and the other level elsewhere. `limits` are the texts of the conditions' limits."""
    is_false = levels[code] is False
    texts = [
        (test.negated if is_false else test.text).replace("{}", limit)
        for test, limit in zip(tests, limits, strict=True)
    ]
    text = (" or " if is_false else " and ").join(texts)
    if isinstance(levels[code], bool):
        return equality(y, f"({text})")
    return equality(y, f"name[{text}]", {"name": {"false": levels[1 - code], "true": levels[code]}})
