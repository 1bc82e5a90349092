"""Rules that reach beyond the columns of a table's model: to its order, and to its parent's row.

    orders.shipped >= orders.ordered        the rows are ordered by `ordered`
    orders.shipped >= customers.joined
    orders.gross == orders.net * (1 + customers.vat)

A column that such a rule gives is learned as what the rule leaves open (`gcvae.rules.reduction`),
and written once the order and the parent's row are there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pandas as pd

from gcvae.rules.reduction import Reduction
from gcvae.rules.search import find_rules
from gcvae.schema.columns import TableSchema
from gcvae.schema.rules import Formula, Rule

_LEAST_SHARE = 0.95
"""Rules of fewer rows say little of a column."""


def outer_reduction(
    joined: pd.DataFrame, schema: TableSchema, outside: Collection[str]
) -> Reduction:
    """The reduction of a table by the rules that name a column outside of its model.

    Args:
        joined: Typed rows with the columns outside.
        schema: Of all of these.
        outside: Names of the columns that are given, and never rewritten.
    """
    if not outside:
        return Reduction(schema)
    findings = find_rules(joined, replace(schema, rules=None))
    chosen = []
    for finding in findings:
        rule = finding.rule
        share = 1.0 if rule.share is None else rule.share
        if not isinstance(rule.form, Formula) or rule.keep == "off" or share < _LEAST_SHARE:
            continue
        sides = [rule] if rule.turned is None else [rule, replace(rule, text=rule.turned)]
        chosen += [side for side in sides if _reaches_out(side, outside)][:1]
    return Reduction.of_table(joined, schema, chosen, (), schema.names)


def _reaches_out(rule: Rule, outside: Collection[str]) -> bool:
    """Whether a rule gives a column of the table's own from one outside."""
    return rule.column not in outside and any(name in outside for name in rule.parents)
