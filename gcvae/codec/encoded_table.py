"""Tables as the model has them: a code and a value for each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

import torch
from torch import Tensor

from gcvae.codec.region import Drawn, WalkedColumn


class DependentCells(Protocol):
    """Constraint on the cells of one column, given the columns drawn before it."""

    def take(self, rows: Tensor | None) -> Self:
        """The same of these rows."""
        ...

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """Returns cells that agree with what is known, and the log of its probability.

        Shape: noise (N,), codes and values (N, D).
        """
        ...


@dataclass(frozen=True)
class EncodedTable:
    """The modelled columns of n rows as tensors.

    Shape: all (n, D).

    Attributes:
        codes: int32; -1 is an outcome that training did not have.
        values: float64, as the column's codec has them; 0 where the code has no value.
        observed: bool; False where the cell is not known and is to be integrated out.
        intervals: float64 (n, D, 2): lower and upper end of the values that a number stands for,
            NaN where it stands for itself alone; None if all do.
        dependent: For some columns what is known of their cells once those before are drawn, where
            they are not observed.
        context: What a conditional model is given beside z, (n, 2 C), see `ContextCodec`.
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
        """Which rows are held out: a random share."""

    @property
    def code_counts(self) -> tuple[Tensor, ...]:
        """For each column how often each code comes up, those of -1 as 0. Shape: (K_j,) each."""
        return tuple(torch.bincount(codes) for codes in self.codes.T.clamp(min=0))

    def take(self, rows: Tensor) -> EncodedTable:
        """Returns the rows of these numbers, in their order."""
        intervals = None if self.intervals is None else self.intervals[rows]
        parts = self.codes[rows], self.values[rows], self.observed[rows]
        dependent = {j: cells.take(rows) for j, cells in self.dependent.items()}
        context = None if self.context is None else self.context[rows]
        return EncodedTable(*parts, intervals, dependent, context)

    def first(self, n: int) -> EncodedTable:
        """Returns the first n rows, which nothing else is known of."""
        assert self.intervals is None, "drawn rows stand for themselves"
        return EncodedTable(self.codes[:n], self.values[:n], self.observed[:n])

    def followed_by(self, other: EncodedTable) -> EncodedTable:
        """Returns the rows of both tables, which have no intervals."""
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
        """The same with these cells in the rows of these numbers."""
        parts = (self.codes, self.values, self.observed)
        found = (drawn.codes, drawn.values, drawn.observed)
        codes, values, observed = (
            part.index_copy(0, rows, other) for part, other in zip(parts, found, strict=True)
        )
        return EncodedTable(codes, values, observed)

    def to(self, device: torch.device | str) -> EncodedTable:
        """This table on a device."""
        intervals = None if self.intervals is None else self.intervals.to(device)
        parts = self.codes.to(device), self.values.to(device), self.observed.to(device)
        context = None if self.context is None else self.context.to(device)
        return EncodedTable(*parts, intervals, self.dependent, context)

    @property
    def are_intervals(self) -> Tensor:
        """Mask of the numbers that stand for an interval. Shape: (n, D), bool."""
        if self.intervals is None:
            return torch.zeros_like(self.observed)
        return ~torch.isnan(self.intervals[..., 0])
