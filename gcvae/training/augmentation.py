"""Augments a small table with rows sampled from a Gaussian copula that is fitted to the table.

A network that is trained on a few hundred rows memorises them before it has learned how columns
depend on each other. Augmentation rows act as a prior: their total weight in the loss is that of a
fixed number of rows, so their influence falls as the table grows.

# PAPER-DIFF: the paper trains on the table alone. With augmentation a small table's dependence is
# learned for longer before the held-out bound falls.

Source: Huang, Stein, Rubin and Kou 2020 (catalytic prior distributions).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gcvae.arrays import Numbers
from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.networks import ColumnShape
from gcvae.numerics.generators import generator_for, normal
from gcvae.numerics.kendall import normal_scores
from gcvae.numerics.normal import normal_cdf

_SHRINKAGE = 0.02
"""Fraction by which correlations are reduced, so that the matrix is positive definite even if two
columns are equal."""
_CORRECTIONS = 3
_ROWS_PER_CORRECTION = 5_000
"""Number of rows sampled per correction. On the table UCI Auto, correlations of sampled rows
differed from the target by at most 0.02 after three corrections."""
_LEAST_EIGENVALUE = 1e-3


class AugmentationSampler:
    """Samples rows from a Gaussian copula fitted to a table: x_j = F_j^-1(Phi(q_j)), q ~ N(0, R).

    F_j is the empirical distribution of column j, interpolated between neighbouring numbers. R is
    corrected until the normal scores of sampled rows have the table's correlations; without the
    correction, columns of few levels would be too weakly correlated.
    """

    def __init__(
        self,
        rows: EncodedTable,
        columns: Sequence[ColumnShape],
        context: Sequence[ColumnShape] = (),
    ) -> None:
        """Fits marginals and correlations to rows with these columns and, if any, context
        columns."""
        self._n_own, columns = len(columns), [*columns, *context]
        rows = _with_context(rows)
        self._device = rows.codes.device
        codes, values = rows.codes.cpu(), rows.values.cpu()
        axis_values = _axis_values(codes, values, columns)
        order = axis_values.argsort(dim=0, stable=True)
        self._codes, self._values = codes.gather(0, order), values.gather(0, order)
        points = [-1 if c.point_code is None else c.point_code for c in columns]
        self._point_codes = torch.tensor(points)
        self._root = _cholesky_factor(self._latent_correlation(_correlation(axis_values), columns))

    def _latent_correlation(self, target: Numbers, columns: Sequence[ColumnShape]) -> Numbers:
        """Returns the correlation matrix R of the copula. R begins as `target`, the correlations of
        the table's normal scores. Each round adds the difference between `target` and the
        correlations of rows sampled with R. The final shrinkage keeps R positive definite even if
        two columns are equal."""
        latent = target
        for i in range(_CORRECTIONS):
            self._root = _cholesky_factor(latent)
            drawn = _with_context(
                self.draw(_ROWS_PER_CORRECTION, generator_for(0, "correlation", i))
            )
            sampled = _correlation(_axis_values(drawn.codes.cpu(), drawn.values.cpu(), columns))
            latent = _nearest_positive_definite(latent + target - sampled)
        return (1.0 - _SHRINKAGE) * latent + _SHRINKAGE * np.eye(len(latent))

    def draw(self, n: int, generator: torch.Generator) -> EncodedTable:
        """Returns n sampled rows on the device of the table; the generator must be on the CPU."""
        n_rows, d = self._codes.shape
        u = normal_cdf(normal((n, d), generator).double() @ self._root.T)
        at = (u * n_rows).long().clamp(max=n_rows - 1)
        codes = self._codes.gather(0, at)
        values = self._between_neighbours(u * n_rows - 0.5, self._values.gather(0, at))
        observed = torch.ones_like(codes, dtype=torch.bool)
        own, context = slice(None, self._n_own), None
        if d > self._n_own:
            given = slice(self._n_own, None)
            context = torch.cat([codes[:, given].double(), values[:, given]], dim=1).float()
        drawn = EncodedTable(codes[:, own], values[:, own], observed[:, own], context=context)
        return drawn.to(self._device)

    def _between_neighbours(self, at: Tensor, nearest: Tensor) -> Tensor:
        """Returns cells of the sorted columns, interpolated linearly at the positions `at`, which
        are row indices with fractions. If the cell above or below a position is a level, missing or
        a frequent value, the result is the cell in `nearest` instead. Shape: (n, D) each."""
        low = at.floor().long().clamp(0, len(self._codes) - 1)
        high = (low + 1).clamp(max=len(self._codes) - 1)
        are_numbers = [self._codes.gather(0, i) == self._point_codes for i in (low, high)]
        start, end = (self._values.gather(0, i) for i in (low, high))
        between = torch.lerp(start, end, (at - low).clamp(0.0, 1.0))
        return torch.where(are_numbers[0] & are_numbers[1], between, nearest)


def _with_context(rows: EncodedTable) -> EncodedTable:
    """Returns the rows with their context as C additional columns. Shape: (n, D) -> (n, D + C)."""
    if rows.context is None:
        return rows
    codes, values = rows.context.chunk(2, dim=-1)
    rows = EncodedTable(
        torch.cat([rows.codes, codes.to(rows.codes)], dim=1),
        torch.cat([rows.values, values.to(rows.values)], dim=1),
        torch.ones(len(rows), rows.codes.shape[1] + codes.shape[1], dtype=torch.bool),
    )
    return rows


def _axis_values(codes: Tensor, values: Tensor, columns: Sequence[ColumnShape]) -> Tensor:
    """Returns for each cell a number by which its column can be sorted: the integer code of a
    level, -inf for a missing cell, and otherwise the number in the cell. Shape: (n, D)."""
    axis_values = codes.double()
    for j, column in enumerate(columns):
        if column.point_code is not None:
            of_code = torch.tensor((*column.code_values, 0.0)).double()[codes[:, j].long()]
            is_number = codes[:, j] == column.point_code
            axis_values[:, j] = torch.where(is_number, values[:, j], of_code)
    return axis_values


def _correlation(axis_values: Tensor) -> Numbers:
    """Returns the correlations between the normal scores of columns, given the numbers by which
    the columns are sorted; 0 for a constant column. Shape: (n, D) -> (D, D)."""
    scores = normal_scores(axis_values)
    scores -= scores.mean(0)
    length = np.linalg.norm(scores, axis=0)
    scores /= np.where(length > 0.0, length, 1.0)
    correlation: Numbers = scores.T @ scores
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _nearest_positive_definite(correlation: Numbers) -> Numbers:
    eigenvalues, vectors = np.linalg.eigh(correlation)
    covariance = (vectors * eigenvalues.clip(min=_LEAST_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diag(covariance))
    corrected: Numbers = covariance / np.outer(scale, scale)
    return corrected


def _cholesky_factor(correlation: Numbers) -> Tensor:
    return torch.from_numpy(np.linalg.cholesky(_nearest_positive_definite(correlation)))
