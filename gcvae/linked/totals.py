"""Finds columns that are sums over child rows: `orders.total == sum(lines.price * lines.quantity)`.

The model learns such a column together with its row, so that the children depend on it. After
generation the column is recomputed from the children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers

LEAST_EQUAL = 0.99  # minimum share of rows with children in which the column equals the sum
_LEAST_PARENTS = 10
_MOST_COLUMNS = 12
SLACK = 0.0051
"""Largest difference between the column and the sum that counts as rounding."""


@dataclass(frozen=True)
class Total:
    """A column that equals a sum over the child rows of each row.

    Attributes:
        column: Name of the column.
        child: Name of the child table.
        factors: Columns of the child table whose product is summed; empty for the number of rows.
        decimals: Number of decimals to which the sum is rounded.
    """

    column: str
    child: str
    factors: tuple[str, ...]
    decimals: int

    def __str__(self) -> str:
        """Returns the total as an expression, such as `total == sum(lines.price)`."""
        if not self.factors:
            return f"{self.column} == count({self.child})"
        product = " * ".join(f"{self.child}.{name}" for name in self.factors)
        return f"{self.column} == sum({product})"

    def of_children(self, children: pd.DataFrame, parents: Codes, n: int) -> pd.Series[Any]:
        """Returns the sum for each of n parents.

        Args:
            children: Rows of the child table. Shape: m rows.
            parents: Parent index of each child row. Shape: (m,).
            n: Number of parents.
        """
        sums = np.bincount(parents, _product(children, self.factors), n)
        return pd.Series(np.round(sums, self.decimals))


def _product(children: pd.DataFrame, factors: tuple[str, ...]) -> Numbers:
    found = np.ones(len(children))
    for name in factors:
        found = found * children[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def find_totals(
    table: pd.DataFrame, children: Mapping[str, tuple[pd.DataFrame, Codes]]
) -> tuple[Total, ...]:
    """Returns the columns of a table that are sums over child rows.

    Args:
        table: Rows of the parents, with cells of the columns' dtypes.
        children: By name of a child table, its rows and the parent index of each row.
    """
    found = []
    for column in _numbers(table):
        target = table[column].to_numpy(dtype=np.float64, na_value=np.nan)
        if pd.Series(target).nunique() < 3:
            continue
        for child, (rows, parents) in children.items():
            has_rows = np.bincount(parents, minlength=len(table)) > 0
            if has_rows.sum() < _LEAST_PARENTS:
                continue
            total = next(_fitting(target, column, child, rows, parents, has_rows), None)
            if total is not None:
                found.append(total)
                break
    return tuple(found)


def _fitting(
    target: Numbers, column: str, child: str, rows: pd.DataFrame, parents: Codes, has_rows: Any
) -> Iterator[Total]:
    """Yields the sums over child rows that equal `target`, the numbers of column `column`, for
    nearly all parents with child rows (mask `has_rows`): first the number of child rows, then sums
    of one column, then sums of products of two columns."""
    numbers = _numbers(rows)[:_MOST_COLUMNS]
    for factors in ((), *((n,) for n in numbers), *combinations(numbers, 2)):
        sums = np.bincount(parents, _product(rows, factors), len(target))
        are_equal = np.abs(sums - target)[has_rows] <= SLACK
        if np.nanmean(are_equal) >= LEAST_EQUAL:
            values = target[~np.isnan(target)]
            decimals = next(d for d in range(9) if d == 8 or np.allclose(values, values.round(d)))
            yield Total(column, child, factors, decimals)


def _numbers(frame: pd.DataFrame) -> list[str]:
    return [str(c) for c in frame.columns if is_number(frame[c].dtype)]


def is_number(dtype: Any) -> bool:
    """Returns whether a dtype is numeric; the dtype of booleans is not."""
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
