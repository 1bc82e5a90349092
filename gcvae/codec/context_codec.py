"""Codec of context columns: columns of a parent table on which a conditional model's rows depend.

    missing          code 0
    other level      code 1
    frequent value   its own code; `code_scores` has the normal scores of numbers
    other number     the last code; the value is the normal score Phi^-1(F(x))

Values that were not seen in fitting are encoded as other numbers or levels: parents without
children may have values that parents with children lack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri
from torch import Tensor

from gcvae.arrays import DAY, TIMES, Codes, Numbers
from gcvae.artifact.documents import Document

_MOST_KNOTS = 129
_LEAST_GROUPS_OF_A_CODE = 10
"""Minimum number of groups (parents) with a number for the number to get its own code."""
_MOST_LEVELS = 400


@dataclass(frozen=True)
class ContextColumn(Document):
    """Codec of one context column, a column of a parent table on which the rows of another table
    depend. It maps a cell to an integer code and a real value.

    Attributes:
        is_number: Whether cells are numbers or dates (encoded in days) instead of levels
            (categories).
        frequent: Numbers or levels with their own codes.
        knots: k quantiles of the numbers, ascending; empty for levels. Shape: (k,).
        scores: Normal score Phi^-1(F(x)) of each quantile x, with F the column's CDF. Shape: (k,).
    """

    name: str
    is_number: bool
    frequent: tuple[Any, ...]
    knots: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()

    @classmethod
    def fit(cls, cells: pd.Series[Any], groups: Codes, rare_groups: int) -> Self:
        """Fits the codec to the n parsed cells of one column.

        Args:
            cells: Parsed cells. Shape: (n,).
            groups: Index of each cell's parent row; equal cells of one parent count once. Shape:
                (n,).
            rare_groups: A value gets its own code only if at least this many parents have it.
        """
        name = str(cells.name)
        numbers = as_numbers(cells)
        cells = cells.reset_index(drop=True)
        once = ~pd.DataFrame({"cell": cells, "group": groups}).duplicated().to_numpy()
        if numbers is None:
            n_groups = cells[once].dropna().astype(str).value_counts()
            common = n_groups[n_groups >= rare_groups].index[:_MOST_LEVELS]
            return cls(name, False, tuple(sorted(common)))
        values, counts = np.unique(numbers[~np.isnan(numbers) & once], return_counts=True)
        if not len(values):
            return cls(name, True, ())
        least = max(rare_groups, _LEAST_GROUPS_OF_A_CODE, np.sort(counts)[::-1][:_MOST_LEVELS][-1])
        below = counts.cumsum() - 0.5 * counts
        steps = np.linspace(0.0, counts.sum(), min(len(values), _MOST_KNOTS))
        at = np.unique(np.searchsorted(below, steps).clip(0, len(values) - 1))
        scores = ndtri(below[at] / counts.sum())
        frequent = values[counts >= least]
        return cls(
            name, True, *(tuple(map(float, each)) for each in (frequent, values[at], scores))
        )

    @property
    def n_codes(self) -> int:
        """Number of codes: missing cells, each frequent value, and all other values."""
        return 2 + len(self.frequent)

    @property
    def code_scores(self) -> tuple[float, ...] | None:
        """Normal score of the frequent number of each code, 0 for other codes; None for levels."""
        if not self.is_number:
            return None
        return (0.0, *self._score(np.array(self.frequent)).tolist(), 0.0)

    def encode(self, cells: pd.Series[Any]) -> tuple[Numbers, Numbers]:
        """Returns (integer codes, values) of n parsed cells. The value is the normal score of a
        number without its own code, and 0 for all other cells. Shape: (n,) -> (n,), (n,)."""
        if cells.isna().all():
            return np.zeros(len(cells)), np.zeros(len(cells))
        if not self.is_number:
            known = {level: float(i) for i, level in enumerate(self.frequent, 2)}
            found, distinct = pd.factorize(cells)
            of_levels = [known.get(str(level), 1.0) for level in distinct]
            return np.array([*of_levels, 0.0])[found], np.zeros(len(cells))
        numbers = as_numbers(cells)
        if numbers is None:
            raise TypeError(f"context column {self.name} has no numbers")
        at = np.searchsorted(self.frequent, numbers).clip(max=max(len(self.frequent) - 1, 0))
        is_frequent = np.zeros(len(numbers), dtype=bool)
        if self.frequent:
            is_frequent = np.array(self.frequent)[at] == numbers
        codes = np.where(is_frequent, 1.0 + at, 1.0 + len(self.frequent))
        values = np.where(is_frequent, 0.0, self._score(numbers))
        is_missing = np.isnan(numbers)
        return np.where(is_missing, 0.0, codes), np.where(is_missing, 0.0, values)

    def _score(self, numbers: Numbers) -> Numbers:
        if not self.knots:
            return np.zeros(len(numbers))
        return np.interp(numbers, self.knots, self.scores)


@dataclass(frozen=True)
class ContextCodec:
    """Codec of all context columns: the parent table's columns on which a child table depends."""

    columns: tuple[ContextColumn, ...]

    @classmethod
    def fit(cls, context: pd.DataFrame, groups: Codes | None = None, rare_groups: int = 1) -> Self:
        """Fits the codec to the context columns of n parsed rows.

        Args:
            groups: Index of each row's parent, so that rows of one parent count once; None if every
                row counts. Shape: (n,).
            rare_groups: A value gets its own code only if at least this many parents have it.
        """
        groups = np.arange(len(context)) if groups is None else groups
        columns = [ContextColumn.fit(context[c], groups, rare_groups) for c in context.columns]
        return cls(tuple(columns))

    def encode(self, context: pd.DataFrame) -> Tensor:
        """Returns the codes of all C columns, then their values, as float32. Shape: (n, 2 C)."""
        encoded = [column.encode(context[column.name]) for column in self.columns]
        parts = [codes for codes, _ in encoded] + [values for _, values in encoded]
        if not parts:
            return torch.zeros(len(context), 0)
        return torch.from_numpy(np.stack(parts, axis=1)).float()

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the codec as a JSON document, which `from_json` reads."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, document: Sequence[Mapping[str, Any]]) -> Self:
        """Restores the codec from the JSON document that `to_json` returned."""
        return cls(tuple(ContextColumn.from_json(each) for each in document))


def as_numbers(cells: pd.Series[Any]) -> Numbers | None:
    """Converts parsed cells to float64, dates to days since 1970; None for a column of levels."""
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        days = cells.astype(TIMES).astype("int64").to_numpy() / DAY
        return np.where(cells.isna(), np.nan, days)
    is_truth = pd.api.types.is_bool_dtype(cells.dtype)
    if pd.api.types.is_numeric_dtype(cells.dtype) and not is_truth:
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return None
