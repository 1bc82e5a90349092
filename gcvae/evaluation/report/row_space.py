"""Embeds rows as points in a space where similar rows are near; nearest neighbours and coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Numbers
from gcvae.evaluation.columns import is_number, measured_columns, numbers_of
from gcvae.evaluation.features import Features, fit_features
from gcvae.schema.columns import TableSchema

Points = npt.NDArray[np.float32]

MOST_AXES = 1_000
"""Maximum number of axes for level columns; with many columns, fewer levels get their own axis."""
_MOST_LEVELS = 30
_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True)
class Space:
    """Embedding of rows as points in A dimensions, called axes.

        numbers     one axis for asinh((x - median) / spread), one that is 1 for a missing cell
        levels      one axis for each of the most frequent levels, one for all other levels and one
                    for missing cells; a row has the coordinate sqrt(1/2) on the axis of its level
                    and 0 on the others, so that two rows with different levels have distance 1

    Attributes:
        features: Encoder of rows as a matrix.
        scales: Median and spread of each number column, by its index in `features.columns`.
        slices: Axes of each column, in the order of `features.columns`.
        n_levels: Number of levels with an axis of their own in each level column.
    """

    features: Features
    scales: dict[int, tuple[float, float]]
    slices: tuple[slice, ...]
    n_levels: int

    def embed(self, frame: pd.DataFrame) -> Points:
        """Returns n rows as points in the space of A dimensions. Shape: (n, A)."""
        cells = self.features.matrix(frame)
        found = np.zeros((len(cells), self.slices[-1].stop if self.slices else 0), np.float32)
        for j, axes in enumerate(self.slices):
            is_blank = np.isnan(cells[:, j])
            if j in self.scales:
                middle, spread = self.scales[j]
                scaled = np.arcsinh((cells[:, j] - middle) / spread)
                found[:, axes.start] = np.where(is_blank, 0.0, scaled)
                found[:, axes.start + 1] = is_blank
            else:
                code = np.where(
                    is_blank, self.n_levels + 1, np.minimum(cells[:, j], self.n_levels)
                ).astype(int)
                found[np.arange(len(cells)), axes.start + code] = np.sqrt(0.5)
        return found


def fit_space(frame: pd.DataFrame, schema: TableSchema) -> Space:
    """Returns the embedding of rows, with scales and levels taken from `frame`."""
    columns = measured_columns(schema)
    features = fit_features(frame, columns)
    n_level_columns = sum(features.are_levels)
    n_levels = max(2, min(_MOST_LEVELS, MOST_AXES // max(n_level_columns, 1) - 2))
    scales, slices, at = {}, [], 0
    for j, column in enumerate(columns):
        width = n_levels + 2
        if is_number(column):
            scales[j] = _scale(numbers_of(frame, column))
            width = 2
        slices.append(slice(at, at + width))
        at += width
    return Space(features, scales, tuple(slices), n_levels)


def axes_of(space: Space, columns: Sequence[int]) -> npt.NDArray[np.int64]:
    """Returns the indices of the dimensions of the space that belong to columns, given by index."""
    listed = [np.arange(space.slices[j].start, space.slices[j].stop) for j in columns]
    return np.concatenate([np.zeros(0, np.int64), *listed])


def nearest(rows: Points, others: Points, k: int = 1) -> tuple[Points, npt.NDArray[np.int64]]:
    """Returns (distances, indices) of the k points in `others` that are nearest to each row.

    They are sorted by distance. Shape: rows (n, A), others (m, A), results (n, min(k, m)), with A
    dimensions.
    """
    k = min(k, len(others))
    squares = (others * others).sum(axis=1)
    distances, numbers = [], []
    n_rows = max(1, _CHUNK_CELLS // len(others))
    for i in range(0, len(rows), n_rows):
        part = rows[i : i + n_rows]
        gaps = squares[None, :] - 2.0 * (part @ others.T)
        found = (
            gaps.argmin(axis=1)[:, None] if k == 1 else np.argpartition(gaps, k - 1, axis=1)[:, :k]
        )
        exact = np.sqrt(((part[:, None, :] - others[found]) ** 2).sum(axis=2))
        order = np.argsort(exact, axis=1, kind="stable")
        distances.append(np.take_along_axis(exact, order, axis=1))
        numbers.append(np.take_along_axis(found, order, axis=1))
    return np.concatenate(distances), np.concatenate(numbers)


def _scale(numbers: Numbers) -> tuple[float, float]:
    """Returns (median, spread) of the numbers that are not NaN. The spread is the interquartile
    range divided by 1.349, its value for a standard normal distribution. If this is 0, the spread
    is the standard deviation; if both are 0, it is 1."""
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return 0.0, 1.0
    low, middle, high = np.quantile(present, [0.25, 0.5, 0.75])
    spread = float(high - low) / 1.349
    spread = spread if spread > 0 else float(present.std())
    return float(middle), spread if spread > 0 and np.isfinite(spread) else 1.0


_LEVELS = np.linspace(0.0, 1.0, 31)
_NEIGHBOURS = 5


def coverage(real: pd.DataFrame, drawn: pd.DataFrame, schema: TableSchema) -> tuple[float, float]:
    """Returns the integrated (alpha-precision, beta-recall) of two tables of equal size.

        P(alpha)  share of synthetic rows whose distance to the centre of the real rows is at most
                  the alpha-quantile of the real rows' distances to this centre
        R(beta)   share of real rows for which two things hold: their nearest synthetic row is at
                  most as far as their fifth nearest real row, and it is among the share beta of
                  synthetic rows that are closest to the centre of the synthetic rows

    The integrated alpha-precision is 1 - 2 * integral |P(alpha) - alpha| d alpha, and beta-recall
    is integrated in the same way; 1 is best.

    Source: Alaa et al., How faithful is your synthetic data? (2022), without a learned embedding:
    in this space, with the mean as centre.
    """
    space = fit_space(real, schema)
    points = space.embed(real), space.embed(drawn)
    return _precision(*points), _recall(*points)


def _precision(real: Points, drawn: Points) -> float:
    centre = real.mean(axis=0)
    of_real, of_drawn = (_distances_to_centre(points, centre) for points in (real, drawn))
    radii = np.quantile(of_real, _LEVELS)
    return _integrated(np.array([(of_drawn <= radius).mean() for radius in radii]))


def _recall(real: Points, drawn: Points) -> float:
    own = nearest(real, real, _NEIGHBOURS + 1)[0][:, -1]
    to_drawn, numbers = nearest(real, drawn)
    from_centre = _distances_to_centre(drawn, drawn.mean(axis=0))
    radii = np.quantile(from_centre, _LEVELS)
    is_near = to_drawn[:, 0] <= own
    shares = [(is_near & (from_centre[numbers[:, 0]] <= radius)).mean() for radius in radii]
    return _integrated(np.array(shares))


def _distances_to_centre(points: Points, centre: npt.NDArray[np.float32]) -> Numbers:
    found: Numbers = np.sqrt(((points - centre) ** 2).sum(axis=1)).astype(float)
    return found


def _integrated(shares: Numbers) -> float:
    gaps = np.abs(shares - _LEVELS)
    return float(1.0 - 2.0 * np.trapezoid(gaps, _LEVELS))
