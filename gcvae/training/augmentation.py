"""Rows of a plain Gaussian copula of a small table, which are trained on beside its own.

A network that learns from a few hundred rows remembers them before it has learned how columns
depend. Rows of a simple model of the same table, with the weight of a fixed number of rows, hold it
near that model where the table's own rows say little; the more rows there are, the less they count.

# PAPER-DIFF: the paper trains on the table alone. With imagined rows a small table's dependence is
# learned for longer before the held-out bound falls.

Source: Huang, Stein, Rubin and Kou 2020 (catalytic prior distributions).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.networks import ColumnShape
from gcvae.numerics.generators import generator_for, normal
from gcvae.numerics.kendall import Matrix, normal_scores
from gcvae.numerics.normal import normal_cdf

_SHRINKAGE = 0.02
"""How far correlations shrink, so that tied columns still have a Cholesky root."""
_MOVES = 3
_ROWS_TO_MOVE_BY = 5_000
"""Drawn for each move: on UCI Auto the third left 0.02 at most between wanted and found."""
_LEAST_EIGENVALUE = 1e-3


class ImaginedRows:
    """x_j = F_j^-1(Phi(q_j)), q ~ N(0, R).

    F_j is the column's own distribution: codes come as often as in the table, and a number lies
    between two that are next to each other there. R is such that the normal scores of drawn rows
    are correlated as those of the table: of columns with few levels, R is the further from zero,
    for many q have one level.

    Shape: root (D, D) lower triangular; codes and values (n, D), every column sorted by itself.
    """

    def __init__(
        self,
        rows: EncodedTable,
        columns: Sequence[ColumnShape],
        context: Sequence[ColumnShape] = (),
    ) -> None:
        """Correlates and sorts the columns of whole rows, those of their context among them."""
        self._n_own, columns = len(columns), [*columns, *context]
        rows = _with_context(rows)
        self._device = rows.codes.device
        codes, values = rows.codes.cpu(), rows.values.cpu()
        places = _places(codes, values, columns)
        order = places.argsort(dim=0, stable=True)
        self._codes, self._values = codes.gather(0, order), values.gather(0, order)
        self._point_codes = torch.tensor([_point_code(column) for column in columns])
        self._root = _root_of(self._latent_correlation(_correlation(places), columns))

    def _latent_correlation(self, wanted: Matrix, columns: Sequence[ColumnShape]) -> Matrix:
        """R, moved by as much as rows drawn with it miss the correlations that are wanted."""
        latent = wanted
        for move in range(_MOVES):
            self._root = _root_of(latent)
            drawn = _with_context(
                self.draw(_ROWS_TO_MOVE_BY, generator_for(0, "correlation", move))
            )
            found = _correlation(_places(drawn.codes.cpu(), drawn.values.cpu(), columns))
            latent = _possible(latent + wanted - found)
        return (1.0 - _SHRINKAGE) * latent + _SHRINKAGE * np.eye(len(latent))

    def draw(self, n: int, generator: torch.Generator) -> EncodedTable:
        """n rows; the generator is on the CPU, the rows are where the table's are."""
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
        """Returns the values at fractional places of the sorted columns. Shape: (n, D) twice -> (n,
        D).

        Only between two numbers: beside an atom or a blank it is the nearest cell's own.
        """
        low = at.floor().long().clamp(0, len(self._codes) - 1)
        high = (low + 1).clamp(max=len(self._codes) - 1)
        are_numbers = [self._codes.gather(0, i) == self._point_codes for i in (low, high)]
        start, end = (self._values.gather(0, i) for i in (low, high))
        between = torch.lerp(start, end, (at - low).clamp(0.0, 1.0))
        return torch.where(are_numbers[0] & are_numbers[1], between, nearest)


def _with_context(rows: EncodedTable) -> EncodedTable:
    """Returns rows with their context as further columns. Shape: (n, D), (n, 2 C) -> (n, D + C)."""
    if rows.context is None:
        return rows
    codes, values = rows.context.chunk(2, dim=-1)
    rows = EncodedTable(
        torch.cat([rows.codes, codes.to(rows.codes)], dim=1),
        torch.cat([rows.values, values.to(rows.values)], dim=1),
        torch.ones(len(rows), rows.codes.shape[1] + codes.shape[1], dtype=torch.bool),
    )
    return rows


def _places(codes: Tensor, values: Tensor, columns: Sequence[ColumnShape]) -> Tensor:
    """Where each cell lies in its column's order: levels by their codes. Shape: (n, D)."""
    places = codes.double()
    for j, column in enumerate(columns):
        if column.point_code is not None:
            of_code = torch.tensor((*column.places, 0.0)).double()[codes[:, j].long()]
            is_number = codes[:, j] == column.point_code
            places[:, j] = torch.where(is_number, values[:, j], of_code)
    return places


def _correlation(places: Tensor) -> Matrix:
    """Correlations of normal scores; a column of ties alone has none. Shape: (n, D) -> (D, D)."""
    scores = normal_scores(places)
    scores -= scores.mean(0)
    length = np.linalg.norm(scores, axis=0)
    scores /= np.where(length > 0.0, length, 1.0)
    correlation: Matrix = scores.T @ scores
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _possible(correlation: Matrix) -> Matrix:
    """Returns the positive definite correlations next to these, by their eigenvalues."""
    eigenvalues, vectors = np.linalg.eigh(correlation)
    covariance = (vectors * eigenvalues.clip(min=_LEAST_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diag(covariance))
    possible: Matrix = covariance / np.outer(scale, scale)
    return possible


def _root_of(correlation: Matrix) -> Tensor:
    """Lower triangular, of the nearest correlations that are possible. Shape: (D, D) twice."""
    return torch.from_numpy(np.linalg.cholesky(_possible(correlation)))


def _point_code(column: ColumnShape) -> int:
    return -1 if column.point_code is None else column.point_code
