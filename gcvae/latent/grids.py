"""Distribution of one column on a grid of latent vectors: quantiles, or level probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Grid = NDArray[Any]


QUANTILES = {"low": 0.1, "median": 0.5, "high": 0.9}


@dataclass(frozen=True)
class NumberGrid:
    """Quantiles of a column of numbers or dates given z, on a grid of two-dimensional z.

    Entry [i, k] of a grid belongs to the i-th grid value of z_2 and the k-th of z_1. Missing cells
    are excluded from the quantiles, which are None where all cells are missing.

    Attributes:
        name: Name of the column.
        low: 10 % quantiles. Shape: (S, S), for S grid values in each dimension.
        median: 50 % quantiles. Shape: (S, S).
        high: 90 % quantiles. Shape: (S, S).
        missing: Probability that the cell is missing. Shape: (S, S).
    """

    name: str
    low: Grid
    median: Grid
    high: Grid
    missing: Grid

    def to_json(self) -> dict[str, Any]:
        """Returns the attributes as a JSON-compatible dict, with dates as ISO 8601 strings."""
        grids = {name: _plain(getattr(self, name)) for name in QUANTILES}
        return {"name": self.name, **grids, "missing": self.missing.tolist()}


@dataclass(frozen=True)
class LevelGrid:
    """Level probabilities of a column given z, on an S x S grid of two-dimensional z.

    Attributes:
        name: Name of the column.
        levels: Label of each integer code: a level, "(missing)", or the names of rare levels that
            share the code.
        probability: Probability of each code; entry [i, k] belongs to the i-th grid value of z_2
            and the k-th of z_1. Shape: (S, S, number of codes).
    """

    name: str
    levels: tuple[str, ...]
    probability: Grid

    def to_json(self) -> dict[str, Any]:
        """Returns the attributes as a JSON-compatible dict."""
        return {
            "name": self.name,
            "levels": list(self.levels),
            "probability": self.probability.tolist(),
        }


def _plain(grid: Grid) -> list[list[Any]]:
    return [[_plain_cell(cell) for cell in row] for row in grid.tolist()]


def _plain_cell(cell: Any) -> Any:
    if isinstance(cell, pd.Timestamp):
        return cell.isoformat()
    return cell.item() if isinstance(cell, np.generic) else cell
