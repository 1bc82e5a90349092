"""Constraints of functional dependencies on the codes of a column's levels.

A level that shares a code with others is drawn by their shares, whatever the rest of the row is. So
levels that fix another column may share one only if they fix it alike; a level that others fix, and
one that fixes another only together with a second column, has a code of its own; and so have all
numbers of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from gcvae.arrays import Codes
from gcvae.codec.quantile_codec import MOST_ATOMS
from gcvae.files.typed_columns import TypedTable
from gcvae.schema.columns import TableSchema
from gcvae.schema.rules import Rule


def coded_functions(
    table: TypedTable, schema: TableSchema, functions: Sequence[Rule]
) -> list[Rule]:
    """Returns the functions whose columns can all be of codes: of levels, or of few distinct
    numbers."""
    names = {name for rule in functions for name in rule.columns}
    coded = {
        name
        for name in names
        if schema[name].is_modelled
        and (not schema[name].kind.is_real or table[name].nunique() <= MOST_ATOMS)
    }
    return [rule for rule in functions if coded.issuperset(rule.columns)]


@dataclass(frozen=True)
class FunctionLevels:
    """Functional dependencies that involve one column.

    Attributes:
        are_own: No level is too rare for a code of its own.
        fixed: The cells of the columns that it fixes alone. Shape: (n,) each.
    """

    are_own: bool = False
    fixed: tuple[pd.Series[Any], ...] = ()

    @classmethod
    def of(cls, name: str, functions: Sequence[Rule], table: TypedTable) -> Self:
        """Returns the dependencies that involve the column of that name."""
        are_own = any(
            name == rule.column or (name in rule.parents and len(rule.parents) > 1)
            for rule in functions
        )
        fixed = tuple(table[rule.column] for rule in functions if rule.parents == (name,))
        return cls(are_own, fixed)

    def classes_of(self, levels: Codes, n_levels: int) -> Codes:
        """Returns a number for each level; levels of one number go with the same cells of what they
        fix.

        Args:
            levels: Levels of each row, -1 where it is missing. Shape: (n,).
            n_levels: How many there are.
        """
        return self.nested_classes(levels, n_levels)[-1]

    def nested_classes(self, levels: Codes, n_levels: int) -> list[Codes]:
        """`classes_of` by none of the columns in `fixed`, by the first, by the first two, ..."""
        found = [np.zeros(n_levels, dtype=np.int64)]
        for series in self.fixed:
            cells, distinct = pd.factorize(series)
            fixed = _most_frequent(levels, cells, n_levels)
            finer = np.unique(found[-1] * (len(distinct) + 1) + fixed, return_inverse=True)[1]
            found.append(finer)
        return found


def _most_frequent(levels: Codes, cells: Codes, n_levels: int) -> Codes:
    """Returns the cell that comes most often with each level, plus one; 0 where none does. Shape:
    (K,)."""
    known = (levels >= 0) & (cells >= 0)
    pairs, counts = np.unique(
        np.column_stack([levels[known], cells[known]]), axis=0, return_counts=True
    )
    most = np.zeros(n_levels, dtype=np.int64)
    rising = np.argsort(counts, kind="stable")
    most[pairs[rising, 0]] = pairs[rising, 1] + 1
    return most
