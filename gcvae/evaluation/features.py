"""Encodes rows as an input matrix for scikit-learn's histogram gradient boosting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.evaluation.columns import is_number, numbers_of
from gcvae.schema.columns import Column

MOST_CATEGORIES = 254
"""Maximum number of levels with a category of their own. Boosting allows 255 categories; the last
one stands for all rarer levels."""


@dataclass(frozen=True)
class Features:
    """Encoder of rows as a matrix with one column for each column of the table.

    Attributes:
        columns: Columns in the order of the matrix.
        categories: For each column of levels, the integer category of each frequent level; rarer
            levels share the next category.
    """

    columns: tuple[Column, ...]
    categories: Mapping[str, Mapping[Any, int]]

    @property
    def are_levels(self) -> list[bool]:
        """For each column of the matrix, whether it is categorical."""
        return [column.name in self.categories for column in self.columns]

    def matrix(self, frame: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Returns the encoded rows; NaN is missing. Shape: (n, number of columns)."""
        cells = np.empty((len(frame), len(self.columns)))
        for j, column in enumerate(self.columns):
            known = self.categories.get(column.name)
            if known is None:
                cells[:, j] = numbers_of(frame, column)
            else:
                codes, found = pd.factorize(frame[column.name].astype(object))
                categories = [known.get(level, len(known)) for level in found]
                cells[:, j] = np.array([*categories, np.nan])[codes]
        return cells


def fit_features(frame: pd.DataFrame, columns: tuple[Column, ...]) -> Features:
    """Returns the encoder of `columns`, with the most frequent levels of `frame` as categories."""
    categories = {}
    for column in columns:
        if not is_number(column):
            levels = frame[column.name].astype(object).value_counts().index[:MOST_CATEGORIES]
            categories[column.name] = {level: i for i, level in enumerate(levels)}
    return Features(columns, categories)
