"""Functional dependencies as formulas with a lookup table.

    determines(room, season; price)     ->     price == value[room, season]

The decoder itself enforces a dependency between columns that it models as categories. A formula is
needed if a rule computes one of the columns, such as a season from a date, or if a column has too
many values for categories.
"""

from __future__ import annotations

import numpy as np

from gcvae.expressions.terms import column_values, joint_keys, key_texts, type_of
from gcvae.files.typed_columns import TypedTable, rows_at, value_codes
from gcvae.rules.search_functions import joint_codes
from gcvae.schema.columns import TableSchema
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule

_LEAST_SHARE = 0.98
"""Minimum share of rows that satisfy the dependency."""
_MOST_UNSEEN = 0.005
"""Maximum estimated probability of a combination of keys that the table lacks (Good 1953)."""


def lookup_rule(rule: Rule, table: TypedTable, schema: TableSchema, rare_rows: int) -> Rule | None:
    """Returns a functional dependency of a column y as the rule y == value[keys], where the table
    `value` contains the most frequent y for each combination of the determining cells (keys).

    Returns None in these cases: a determining column has no levels; y has dates; fewer than 98 % of
    the rows satisfy the dependency; the table would contain fewer than two values of y; or several
    columns determine y, and more than about 0.5 % of new rows would have a combination that the
    table lacks.

    Args:
        rare_rows: For privacy, a combination is left out of the lookup table if fewer rows than
            this contain it, and fewer rows than this contain its value of y.
    """
    column, parents = schema[rule.column], [schema[name] for name in rule.parents]
    if not all(parent.kind.has_levels for parent in parents) or column.has_times:
        return None
    if (rule.share or 0.0) < _LEAST_SHARE:
        return None
    keys = joint_codes([value_codes(table, name) for name in rule.parents])
    codes = value_codes(table, rule.column)
    known = np.flatnonzero((keys >= 0) & (codes >= 0))
    if not len(known):
        return None
    n_codes = int(codes.max()) + 1
    pairs, firsts, counts = np.unique(
        keys[known] * n_codes + codes[known], return_index=True, return_counts=True
    )
    n_rows, n_of_value = np.bincount(keys[known]), np.bincount(codes[known])
    if len(parents) > 1 and (n_rows == 1).sum() > _MOST_UNSEEN * len(known):
        return None
    at = np.argsort(counts, kind="stable")  # the last one of a key is the most frequent
    usual = {int(pairs[i] // n_codes): i for i in at}
    chosen = [
        i
        for key, i in usual.items()
        if max(n_rows[key], n_of_value[pairs[i] % n_codes]) >= rare_rows
    ]
    frame = rows_at(table, np.sort(known[firsts[chosen]]), list(rule.columns))
    texts = [key_texts(column_values(frame[p.name], p), type_of(p)) for p in parents]
    values = [x.item() if isinstance(x, np.generic) else x for x in frame[rule.column]]
    entries = dict(zip(joint_keys(texts).tolist(), values, strict=True))
    if len({*entries.values()}) < 2:
        return None
    asked = ", ".join(map(quoted_name, rule.parents))
    text = f"{quoted_name(rule.column)} == value[{asked}]"
    return Rule(text, rule.keep, rule.source, rule.share, {"value": entries})
