"""One column of a manifold: quantiles of numbers, or probabilities of levels, on a grid of z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Grid = NDArray[Any]


_QUANTILES = {"low": 0.1, "median": 0.5, "high": 0.9}


@dataclass(frozen=True)
class NumberGrid:
    """Quantiles of a number or date column, over its present cells.

    Shape: all (S, S), [i, k] at the i-th quantile of z_2 and the k-th of z_1.
    """

    name: str
    low: Grid
    median: Grid
    high: Grid
    missing: Grid
    """Probability that the cell is missing."""

    def to_json(self) -> dict[str, Any]:
        """Returns the grids by name; dates as text, null if every cell is missing."""
        grids = {name: _plain(getattr(self, name)) for name in _QUANTILES}
        return {"name": self.name, **grids, "missing": self.missing.tolist()}


@dataclass(frozen=True)
class LevelGrid:
    """Probabilities of the codes of a level column. Shape: (S, S, n_codes)."""

    name: str
    levels: tuple[str, ...]
    probability: Grid

    def to_json(self) -> dict[str, Any]:
        """Returns the names of the levels, and their probabilities in the same order."""
        return {
            "name": self.name,
            "levels": list(self.levels),
            "probability": self.probability.tolist(),
        }


def _plain(grid: Grid) -> list[list[Any]]:
    """Returns the cells as JSON values."""
    return [[_plain_cell(cell) for cell in row] for row in grid.tolist()]


def _plain_cell(cell: Any) -> Any:
    if isinstance(cell, pd.Timestamp):
        return cell.isoformat()
    return cell.item() if isinstance(cell, np.generic) else cell
