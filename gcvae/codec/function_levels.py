"""Decides which levels may share a code if the column has functional dependencies.

A level that shares a code is sampled by its share, independently of the rest of the row. Therefore
levels that determine another column may share a code only if they determine the same value. Levels
that other columns determine, or that determine a column only together with another column, need
their own codes.
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
    """Returns the functional dependencies whose columns all consist of levels, or of numbers with
    few distinct values, so that integer codes can encode them."""
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
    """Functional dependencies of one column, and conditions on it, which restrict the levels that
    may share a code.

    Attributes:
        need_own_codes: Whether every level needs its own code.
        determined: Columns that this column determines alone, not only together with others. Each
            entry has the cells of one such column in the table's n rows. Shape: (n,) each.
    """

    need_own_codes: bool = False
    determined: tuple[pd.Series[Any], ...] = ()

    @classmethod
    def of(cls, name: str, functions: Sequence[Rule], table: TypedTable) -> Self:
        """Returns the restrictions that functional dependencies and conditions (`functions`) impose
        on the codes of the column `name`."""
        need_own_codes = any(
            name in rule.columns
            if not rule.is_dependency
            else name == rule.column or (name in rule.parents and len(rule.parents) > 1)
            for rule in functions
        )
        determined = tuple(
            table[rule.column]
            for rule in functions
            if rule.is_dependency and rule.parents == (name,)
        )
        return cls(need_own_codes, determined)

    def nested_classes(self, levels: Codes, n_levels: int) -> list[Codes]:
        """Returns increasingly fine divisions of K levels into classes. In division i = 0, 1, 2,
        ..., the levels of a class determine the same cells in the first i columns of `determined`.
        A division is an array with the class number of each level. Shape: (K,) each.

        Args:
            levels: Index of the level in each of n rows, -1 for missing. Shape: (n,).
            n_levels: Number of levels K.
        """
        found = [np.zeros(n_levels, dtype=np.int64)]
        for series in self.determined:
            cells, distinct = pd.factorize(series)
            determined = _most_frequent(levels, cells, n_levels)
            finer = np.unique(found[-1] * (len(distinct) + 1) + determined, return_inverse=True)[1]
            found.append(finer)
        return found


def _most_frequent(levels: Codes, cells: Codes, n_levels: int) -> Codes:
    """Returns, for each level of a column, the most frequent cell of another column in the rows
    with this level, as its code plus 1; 0 if the other column is missing in all these rows. In
    `levels` and `cells`, -1 stands for missing. Shape: (n,), (n,) -> (n_levels,)."""
    known = (levels >= 0) & (cells >= 0)
    pairs, counts = np.unique(
        np.column_stack([levels[known], cells[known]]), axis=0, return_counts=True
    )
    most = np.zeros(n_levels, dtype=np.int64)
    rising = np.argsort(counts, kind="stable")
    most[pairs[rising, 0]] = pairs[rising, 1] + 1
    return most
