"""Finds conditions on two columns, which exclude pairs of levels or of missing and present cells.

    is_missing(left) == (status == 'active')       missing where another column has certain levels
    not is_missing(phone) if is_missing(mail)      at least one of two cells has a value
    origin != destination                          columns of the same levels that never agree

No row of the sample has an excluded pair, although many would if the columns were independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Mask
from gcvae.rules.plan import Plan
from gcvae.rules.row_sample import Candidate, RowSample
from gcvae.schema.columns import Level
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Missingness, Rule

_LEAST_EXCLUDED = 12.0
"""Minimum number of validation rows that would have an excluded pair if the columns were
independent, less the log of the number of conditions tried: none has one with chance exp(-12)."""
MOST_LEVELS = 60
_LEAST_NAMED = 12
"""Minimum number of sampled rows that contain a level that a rule names."""
_LEAST_SHARED = 3  # levels of columns that never agree


def find_conditions(sample: RowSample, plan: Plan) -> Iterator[Candidate]:
    """Yields conditions on pairs of columns: for each column with missing cells, those on the one
    other column whose levels say most."""
    n, whole = len(sample.training), pd.concat([half.frame for half in sample.halves])
    blank = {c.name: whole[c.name].isna().to_numpy() for c in sample.columns}
    names = [name for name, mask in blank.items() if mask[:n].any() and not mask[n:].all()]
    few: dict[str, tuple[Codes, list[Level]]] = {}
    for column in sample.columns:
        codes, levels = pd.factorize(whole[column.name])
        if column.kind.has_levels and 2 <= len(levels) <= MOST_LEVELS:
            few[column.name] = codes, levels.tolist()
    least = _LEAST_EXCLUDED + math.log(2 * (len(names) + len(few)) ** 2 + 1)

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
    """Yields (expected number of excluded validation rows, rule) for the rules by which column y is
    missing, or has a value, where column x has certain levels.

    Args:
        codes: Index in `levels` of the cells of x in n training rows, followed by those in
            validation rows; -1 for missing.
        blank: Mask of the missing cells of y.
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
    of_blank, of_known = (one_of(x, levels, named) for named in (are_blank, are_known))
    if is_same[0] and not (is_same[1] and are_known.sum() < are_blank.sum()):
        yield m_blank + m_known, f"{of_y} == ({of_blank})"
    elif is_same[1]:
        yield m_blank + m_known, f"{of_y} != ({of_known})"
    else:
        yield m_blank, f"{of_y} if {of_blank}"
        yield m_known, f"not {of_y} if {of_known}"


def one_of(x: str, levels: Sequence[Level], named: Mask, *, is_negative: bool = False) -> str:
    """Returns the expression of column x having one of the named levels, or none of them."""
    found = [level for level, is_named in zip(levels, named, strict=True) if is_named]
    of_x = quoted_name(x)
    if len(found) != 1:
        return f"{of_x} {'not in' if is_negative else 'in'} ({', '.join(map(repr, found))})"
    if isinstance(found[0], bool):
        return of_x if found[0] != is_negative else f"not {of_x}"
    return f"{of_x} {'!=' if is_negative else '=='} {found[0]!r}"
