"""A baseline: every column by itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.quality.cell_marginals import Marginal, fit_marginal
from gcvae.cells.values import parse_table
from gcvae.evaluation.columns import measured_columns
from gcvae.schema.columns import TableSchema


class IndependentColumns:
    """P(row) = Π_j P_j(cell), with the smoothed marginals of the cells."""

    def __init__(self, seed: int) -> None:
        """Takes the seed that models have; there is nothing random in the fit."""

    def fit(self, train: pd.DataFrame, schema: TableSchema) -> None:
        """Counts the cells."""
        typed = parse_table(train, schema)
        self._schema = schema
        self._marginals: dict[str, Marginal] = {
            column.name: fit_marginal(typed, column) for column in measured_columns(schema)
        }

    def sample(self, n_rows: int, seed: int) -> pd.DataFrame:
        """Rows whose cells know nothing of each other."""
        random = np.random.default_rng(seed)
        cells = {}
        for name, marginal in self._marginals.items():
            series = marginal.quantile(random.random(n_rows))
            is_missing = random.random(n_rows) < marginal.missing_share
            cells[name] = series.mask(is_missing) if is_missing.any() else series
        return pd.DataFrame(cells)

    def log_masses(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """log P(row), exactly."""
        typed = parse_table(rows, self._schema)
        total = np.zeros(len(rows))
        for marginal in self._marginals.values():
            masses = marginal.intervals(typed)[1]
            total += np.log(np.where(np.isnan(masses), 1.0, masses))  # missing is integrated out
        return total
