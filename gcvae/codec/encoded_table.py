"""Encoded tables: a code and a value for each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

import torch
from torch import Tensor

from gcvae.codec.region import Drawn, WalkedColumn


class DependentCells(Protocol):
    """Constraint on the cells of one column that depends on columns generated before it."""

    def take(self, rows: Tensor | None) -> Self:
        """Returns the constraint of the rows with these indices."""
        ...

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """Returns cells that satisfy the constraint, and the log probability of the constraint.

        Shape: noise (N,), codes and values (N, D).
        """
        ...


@dataclass(frozen=True)
class EncodedTable:
    """The modelled columns of n rows as tensors.

    Shape: (n, D) unless stated otherwise.

    Attributes:
        codes: int32; -1 for an outcome that was not in the training table.
        values: float64, encoded by the column's codec; 0 for codes without a value.
        observed: bool; False for unknown cells, which are integrated out.
        intervals: float64 (n, D, 2), ends of the interval of values that a number stands for; NaN
            for exact numbers. None if all are exact.
        dependent: Constraints on unobserved cells of some columns that depend on earlier columns.
        context: Encoded context of a conditional model, (n, 2 C), see `ContextCodec`.
    """

    codes: Tensor
    values: Tensor
    observed: Tensor
    intervals: Tensor | None = None
    dependent: Mapping[int, DependentCells] = field(default_factory=dict)
    context: Tensor | None = None

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.codes)

    @property
    def device(self) -> torch.device:
        """Device of the rows."""
        return self.codes.device

    @property
    def held_out(self) -> None:
        """None: a random share of the rows is held out."""

    @property
    def code_counts(self) -> tuple[Tensor, ...]:
        """Number of rows with each code, for each column; -1 counts as 0. Shape: (K_j,) each."""
        return tuple(torch.bincount(codes) for codes in self.codes.T.clamp(min=0))

    def take(self, rows: Tensor) -> EncodedTable:
        """Returns the rows with these indices, in their order."""
        intervals = None if self.intervals is None else self.intervals[rows]
        parts = self.codes[rows], self.values[rows], self.observed[rows]
        dependent = {j: cells.take(rows) for j, cells in self.dependent.items()}
        context = None if self.context is None else self.context[rows]
        return EncodedTable(*parts, intervals, dependent, context)

    def first(self, n: int) -> EncodedTable:
        """Returns the first n rows. The table must have no dependent constraints."""
        assert self.intervals is None, "drawn rows stand for themselves"
        return EncodedTable(self.codes[:n], self.values[:n], self.observed[:n])

    def followed_by(self, other: EncodedTable) -> EncodedTable:
        """Returns the rows of both tables, concatenated. They must have no intervals."""
        pairs = zip(
            (self.codes, self.values, self.observed),
            (other.codes, other.values, other.observed),
            strict=True,
        )
        codes, values, observed = (torch.cat(pair) for pair in pairs)
        context = None
        if self.context is not None and other.context is not None:
            context = torch.cat([self.context, other.context])
        return EncodedTable(codes, values, observed, context=context)

    def with_rows(self, rows: Tensor, drawn: EncodedTable) -> EncodedTable:
        """Returns the table with the cells of the rows at these indices replaced."""
        parts = (self.codes, self.values, self.observed)
        found = (drawn.codes, drawn.values, drawn.observed)
        codes, values, observed = (
            part.index_copy(0, rows, other) for part, other in zip(parts, found, strict=True)
        )
        return EncodedTable(codes, values, observed)

    def to(self, device: torch.device | str) -> EncodedTable:
        """Returns the table on a device."""
        intervals = None if self.intervals is None else self.intervals.to(device)
        parts = self.codes.to(device), self.values.to(device), self.observed.to(device)
        context = None if self.context is None else self.context.to(device)
        return EncodedTable(*parts, intervals, self.dependent, context)

    @property
    def are_intervals(self) -> Tensor:
        """Returns the mask of the numbers that stand for an interval. Shape: (n, D), bool."""
        if self.intervals is None:
            return torch.zeros_like(self.observed)
        return ~torch.isnan(self.intervals[..., 0])
