"""Blanked tables, and how near what was filled in comes to what stood there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gcvae import parse_table
from gcvae.arrays import Mask
from gcvae.schema.columns import TableSchema


@dataclass(frozen=True)
class BlankedTable:
    """A table with known cells taken away.

    Attributes:
        train: Typed rows to learn from.
        truth: Typed rows to be filled, as they were.
        blanked: The same as text cells, blank where a cell was taken away.
        taken: Which cells are judged: taken away, and not missing before. Shape: (n, D).
        schema: Of the table; numbers are its integers and continuous columns.
    """

    train: pd.DataFrame
    truth: pd.DataFrame
    blanked: pd.DataFrame
    taken: Mask
    schema: TableSchema

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return [column.name for column in self.schema if column.kind.is_real]

    @property
    def levels(self) -> list[str]:
        """The columns of levels."""
        return [column.name for column in self.schema if column.kind.has_levels]

    def cells_of(self, name: str) -> Mask:
        """The cells of a column that are judged. Shape: (n,)."""
        taken: Mask = self.taken[:, list(self.truth.columns).index(name)]
        return taken


def blank(
    train: pd.DataFrame, test: pd.DataFrame, schema: TableSchema, share: float, seed: int
) -> BlankedTable:
    """The test table with this share of its cells blanked, each by itself."""
    taken = np.random.default_rng(seed).random(test.shape) < share
    truth = parse_table(test, schema)[list(test.columns)]
    return BlankedTable(
        parse_table(train, schema)[list(test.columns)],
        truth,
        test.mask(taken, ""),
        taken & truth.notna().to_numpy(),
        schema,
    )


def judge(table: BlankedTable, filled: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Accuracy of each column of levels, normalised errors of each column of numbers.

    `error` is the root mean squared error, `absolute_error` the mean absolute error, both over the
    standard deviation of the column in training: 1 is what the training mean would have.

    Args:
        table: With the truth.
        filled: One estimate for each cell, typed; `name` and, for the absolute error, `name median`
            where an estimator has another value for it.
    """
    result: dict[str, dict[str, float]] = {}
    for name in table.levels:
        cells = table.cells_of(name)
        own, other = (f[name][cells].astype(str).to_numpy() for f in (table.truth, filled))
        result[name] = {"accuracy": float(np.mean(own == other))}
    for name in table.numbers:
        cells = table.cells_of(name)
        scale = float(table.train[name].astype(float).std())
        own = table.truth[name][cells].astype(float).to_numpy()
        middle = filled.get(f"{name} median", filled[name])[cells].to_numpy(dtype=float)
        distance = filled[name][cells].to_numpy(dtype=float) - own
        result[name] = {
            "error": float(np.sqrt(np.mean(distance**2))) / scale,
            "absolute_error": float(np.mean(np.abs(middle - own))) / scale,
        }
    return result


def mean_of(figures: dict[str, dict[str, float]], measure: str) -> float:
    """The mean of a measure over the columns that have it."""
    return float(np.mean([part[measure] for part in figures.values() if measure in part]))


def point_estimate(draws: pd.DataFrame, n_draws: int, schema: TableSchema) -> pd.DataFrame:
    """Of several draws of each row the most frequent level, the mean and the median number.

    Args:
        draws: Typed, a row's draws one after the other.
        n_draws: Of each row.
        schema: Of the table.
    """
    columns: dict[str, Any] = {}
    for column in schema:
        if column.kind.is_real:
            numbers = draws[column.name].to_numpy(dtype=float).reshape(-1, n_draws)
            columns[column.name] = numbers.mean(axis=1)
            columns[f"{column.name} median"] = np.median(numbers, axis=1)
        elif column.kind.has_levels:
            codes, found = pd.factorize(draws[column.name])
            counts = np.zeros((len(codes) // n_draws, len(found)), dtype=np.int64)
            np.add.at(counts, (np.arange(len(codes)) // n_draws, codes), 1)
            columns[column.name] = np.asarray(found)[counts.argmax(axis=1)]
    return pd.DataFrame(columns)
