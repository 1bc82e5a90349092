"""Encoded tables: an integer code and a real value for each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

import torch
from torch import Tensor

from gcvae.codec.region import Drawn, WalkedColumn


class DependentCells(Protocol):
    """Constraint on the cells of one column, given each row's cells in the columns generated before
    it."""

    def take(self, rows: Tensor | None) -> Self:
        """Returns the constraint for the rows at these indices; for all rows if None."""
        ...

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """Samples a cell of one column for each of N rows so that a constraint is satisfied;
        returns the cells with the log probability of the constraint.

        Args:
            column: Distribution of the column given the earlier columns.
            noise: Uniform random numbers. Shape: (N,).
            codes: Integer codes of the rows' D columns, of which the earlier ones are used. Shape:
                (N, D).
            values: Encoded values, like `codes`. Shape: (N, D).
        """
        ...


@dataclass(frozen=True)
class EncodedTable:
    """Encoded cells of n rows in the D modelled columns. Shape: (n, D) for each tensor unless
    another is given.

    Attributes:
        codes: Integer code of each cell, in int32; -1 for a value that was not in the training
            table.
        values: Values in float64, as the column's codec defines them; 0 for codes without a value.
        observed: Mask of the known cells; unknown cells are integrated out.
        intervals: For numbers known only to lie in an interval, its two ends as encoded values; NaN
            for exact numbers. None if all numbers are exact. Shape: (n, D, 2), float64.
        dependent: Constraints on unobserved cells, by index of the column; each depends on columns
            generated before that column.
        determined: Mask of the observed cells that follow from known ones; numbers among them count
            by their probability, not by its density. None if there are none.
        context: Codes, then values of C columns of the parent table, for a conditional model; None
            for any other model. Shape: (n, 2 C).
    """

    codes: Tensor
    values: Tensor
    observed: Tensor
    intervals: Tensor | None = None
    dependent: Mapping[int, DependentCells] = field(default_factory=dict)
    context: Tensor | None = None
    determined: Tensor | None = None

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.codes)

    @property
    def device(self) -> torch.device:
        """Device on which the tensors are stored."""
        return self.codes.device

    @property
    def held_out(self) -> None:
        """None: no rows are marked as held out, so that training holds out a random share."""

    @property
    def code_counts(self) -> tuple[Tensor, ...]:
        """Number of rows with each code from 0 to the largest, for each column; rows with code -1
        are counted under code 0. One tensor per column."""
        return tuple(torch.bincount(codes) for codes in self.codes.T.clamp(min=0))

    def take(self, rows: Tensor) -> EncodedTable:
        """Returns the rows at these indices, in the order of the indices."""
        intervals = None if self.intervals is None else self.intervals[rows]
        parts = self.codes[rows], self.values[rows], self.observed[rows]
        dependent = {j: cells.take(rows) for j, cells in self.dependent.items()}
        context = None if self.context is None else self.context[rows]
        determined = None if self.determined is None else self.determined[rows]
        return EncodedTable(*parts, intervals, dependent, context, determined)

    def first(self, n: int) -> EncodedTable:
        """Returns the first n rows of a table without intervals; constraints and context are left
        out."""
        assert self.intervals is None, "drawn rows stand for themselves"
        return EncodedTable(self.codes[:n], self.values[:n], self.observed[:n])

    def followed_by(self, other: EncodedTable) -> EncodedTable:
        """Returns the rows of this table followed by those of another; neither may contain
        intervals."""
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
        """Returns the table with the rows at these indices replaced by the rows of `drawn`."""
        parts = (self.codes, self.values, self.observed)
        found = (drawn.codes, drawn.values, drawn.observed)
        codes, values, observed = (
            part.index_copy(0, rows, other) for part, other in zip(parts, found, strict=True)
        )
        return EncodedTable(codes, values, observed)

    def to(self, device: torch.device | str) -> EncodedTable:
        """Copies the tensors to a device."""
        intervals = None if self.intervals is None else self.intervals.to(device)
        parts = self.codes.to(device), self.values.to(device), self.observed.to(device)
        context = None if self.context is None else self.context.to(device)
        return EncodedTable(*parts, intervals, self.dependent, context, self.determined)

    @property
    def are_intervals(self) -> Tensor:
        """Mask of the numbers that are known only to lie in an interval. Shape: (n, D) for n rows
        and D columns."""
        if self.intervals is None:
            return torch.zeros_like(self.observed)
        return ~torch.isnan(self.intervals[..., 0])
