"""Encoded tables: an integer code and a real value for each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from gcvae.codec.region import ConditionalColumn, Drawn


class DependentCells(Protocol):
    """Constraint on the cells of one column, given each row's cells in earlier columns."""

    def take(self, rows: Tensor | None) -> Self:
        """Returns the constraint for the rows at these indices; for all rows if None."""
        ...

    def draw(
        self, column: ConditionalColumn, noise: Tensor, codes: Tensor, values: Tensor
    ) -> Drawn:
        """Samples for each of N rows a cell of one column that satisfies the constraint; returns
        the cells with the log probability of satisfying it.

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
        determined: Mask of the cells that were not given but computed from given cells; they count
            as observed. A number among them contributes its probability (density times rounding
            step) to the likelihood, not its density. None if there are no such cells.
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
        """Mask of the rows held out from training. It is always None here, so that training holds
        out a random share."""

    @property
    def code_counts(self) -> tuple[Tensor, ...]:
        """Number of rows with each code, for each column. Code -1 (a value that was not in the
        training table) counts as code 0, because counts have no negative index."""
        return tuple(torch.bincount(codes) for codes in self.codes.T.clamp(min=0))

    def take(self, rows: Tensor) -> EncodedTable:
        """Returns the rows at these indices, in the order of the indices."""
        dependent = {j: cells.take(rows) for j, cells in self.dependent.items()}
        return replace(self._mapped(lambda part: part[rows]), dependent=dependent)

    def first(self, n: int) -> EncodedTable:
        """Returns the first n rows, without constraints and context. All numbers must be exact, as
        in generated rows (`intervals` is None)."""
        assert self.intervals is None, "drawn rows stand for themselves"
        return EncodedTable(self.codes[:n], self.values[:n], self.observed[:n])

    def followed_by(self, other: EncodedTable) -> EncodedTable:
        """Returns the rows of two tables without intervals, one after the other."""
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
        return self._mapped(lambda part: part.to(device))

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> EncodedTable:
        changed: dict[str, Any] = {}
        for name in (each.name for each in fields(self)):
            part = getattr(self, name)
            changed[name] = change(part) if isinstance(part, Tensor) else part
        return replace(self, **changed)

    @property
    def are_intervals(self) -> Tensor:
        """Mask of the numbers known only to lie in an interval. Shape: (n, D)."""
        if self.intervals is None:
            return torch.zeros_like(self.observed)
        return ~torch.isnan(self.intervals[..., 0])
