"""Columns that add up columns of children: `orders.total == sum(lines.price * lines.quantity)`.

Such a column is learned with its row, so that the children go with it, and computed from them at
the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers

LEAST_EQUAL = 0.99
_LEAST_PARENTS = 10
_MOST_COLUMNS = 12
SLACK = 0.0051
"""Sums of rounded numbers differ by so much from a rounded sum."""


@dataclass(frozen=True)
class Total:
    """column = sum over the rows of `child` of the product of `factors`; their number without any.

    Attributes:
        decimals: To which the sum is rounded.
    """

    column: str
    child: str
    factors: tuple[str, ...]
    decimals: int

    def __str__(self) -> str:
        """The rule, as expressions are written."""
        if not self.factors:
            return f"{self.column} == count({self.child})"
        product = " * ".join(f"{self.child}.{name}" for name in self.factors)
        return f"{self.column} == sum({product})"

    def of_children(self, children: pd.DataFrame, parents: Codes, n: int) -> pd.Series[Any]:
        """The total of each parent. Shape: (m,), (m,) -> (n,)."""
        sums = np.bincount(parents, _product(children, self.factors), n)
        return pd.Series(np.round(sums, self.decimals))

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs."""
        return asdict(self) | {"factors": list(self.factors)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The total of a document that `to_json` wrote."""
        factors = tuple(document["factors"])
        return cls(document["column"], document["child"], factors, document["decimals"])


def _product(children: pd.DataFrame, factors: tuple[str, ...]) -> Numbers:
    found = np.ones(len(children))
    for name in factors:
        found = found * children[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def find_totals(
    table: pd.DataFrame, children: Mapping[str, tuple[pd.DataFrame, Codes]]
) -> tuple[Total, ...]:
    """The totals among the columns of a typed table.

    Args:
        table: The parents.
        children: By table the typed rows, and the number of each one's parent.
    """
    found = []
    for column in _numbers(table):
        wanted = table[column].to_numpy(dtype=np.float64, na_value=np.nan)
        if pd.Series(wanted).nunique() < 3:
            continue
        for child, (rows, parents) in children.items():
            has_rows = np.bincount(parents, minlength=len(table)) > 0
            if has_rows.sum() < _LEAST_PARENTS:
                continue
            total = next(_fitting(wanted, column, child, rows, parents, has_rows), None)
            if total is not None:
                found.append(total)
                break
    return tuple(found)


def _fitting(
    wanted: Numbers, column: str, child: str, rows: pd.DataFrame, parents: Codes, has_rows: Any
) -> Iterator[Total]:
    """The sums that equal a column, one factor before two."""
    numbers = _numbers(rows)[:_MOST_COLUMNS]
    for factors in ((), *((n,) for n in numbers), *combinations(numbers, 2)):
        sums = np.bincount(parents, _product(rows, factors), len(wanted))
        are_equal = np.abs(sums - wanted)[has_rows] <= SLACK
        if np.nanmean(are_equal) >= LEAST_EQUAL:
            values = wanted[~np.isnan(wanted)]
            decimals = next(d for d in range(9) if d == 8 or np.allclose(values, values.round(d)))
            yield Total(column, child, factors, decimals)


def _numbers(frame: pd.DataFrame) -> list[str]:
    return [
        str(c)
        for c in frame.columns
        if pd.api.types.is_numeric_dtype(frame[c].dtype)
        and not pd.api.types.is_bool_dtype(frame[c].dtype)
    ]
