"""Finds rules between a table's columns and its time column or its parent's row.

    orders.shipped >= orders.ordered        the rows are ordered by `ordered`
    orders.shipped >= customers.joined
    orders.gross == orders.net * (1 + customers.vat)

The model learns a residual instead of the column that such a rule determines
(`gcvae.rules.reduction`). The column is computed after the time column and the parent row have been
generated.
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
"""Minimum share of the rows that satisfy a rule."""


def outer_reduction(
    joined: pd.DataFrame, schema: TableSchema, outside: Collection[str]
) -> Reduction:
    """Finds rules y = f(x) that compute a column y of a table from outside columns x; the model
    then learns the residual y - f(x) instead of y.

    Args:
        joined: Rows of the table with the outside columns, cells of the columns' dtypes.
        schema: Schema of all columns of `joined`.
        outside: Names of the columns that the table's model does not learn: those of the parent
            row, and the time column. No residual replaces them.
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
        chosen += [side for side in rule.sides if _reaches_out(side, outside)][:1]
    return Reduction.of_table(joined, schema, chosen, (), schema.names)


def _reaches_out(rule: Rule, outside: Collection[str]) -> bool:
    """Returns whether a rule computes a column of the table from an outside column."""
    return rule.column not in outside and any(name in outside for name in rule.parents)
