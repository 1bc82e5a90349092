"""Proposes unknown columns of a rule near the values for which the rule holds.

Unconstrained draws hardly ever satisfy a precise rule. The particles (weighted draws of a row)
therefore draw an unknown column of the rule in three ways, and their weights correct for this:

    80 %    among the solutions of the rule
    10 %    as a missing cell, if the column has missing cells, because the rule does not apply then
    rest    freely, from the model

A solution is a value with which the rule can hold. If another column of the rule is unknown and
drawn later, it is sufficient that the rule holds for some value of that column. If the model
represents the unknown column by a residual, the residual is drawn so that the column is a solution.

Source: sequential importance sampling with a defensive mixture; Hesterberg 1995.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.codec.region import ConditionalColumn, Drawn
from gcvae.rules.grids import Grid
from gcvae.rules.residuals import Residual
from gcvae.rules.solutions import clock_of
from gcvae.sampling.deductions import filled
from gcvae.sampling.target_intervals import (
    Indices,
    TargetIntervals,
    blanks_region,
    indices_of_rows,
    lies_in,
    region_of_intervals,
    rows_of,
    rows_of_particles,
)

if TYPE_CHECKING:
    from gcvae.codec.table_codec import TableCodec
    from gcvae.rules.rewritings import Rewriting

_PROPOSED = 0.8
"""Share of the particles that draw a column among its solutions."""
_LEFT_BLANK = 0.1
"""Share of the particles that leave the column missing, if it may be; 0.5 without a solution."""
_NEGLIGIBLE_NATS = 20.0
"""Nats by which a solution may be less likely than a missing cell. Less likely solutions lie beyond
all values of the column, and are ignored."""
_LEAST_LOG_MASS = -600.0
_LARGEST_NOISE = 1.0 - 1e-15


@dataclass(frozen=True)
class ParentConstraint:
    """Restriction of an unknown column x by a rule that computes a known or restricted y from it.

    Attributes:
        codec: Codec of the table.
        name: Name of the computed column y.
        parent: Name of the restricted column x.
        target: Possible values of y.
        known: Known cells of the rule's columns, with their dtypes. It has n rows, or a single
            row that applies to all rows.
        guessed: The same rows, completed with cells that follow from known ones.
        later: Columns of the rule that are drawn after `parent`.
    """

    codec: TableCodec
    name: str
    parent: str
    target: TargetIntervals | ParentConstraint
    known: pd.DataFrame
    guessed: pd.DataFrame
    later: tuple[str, ...]

    def __len__(self) -> int:
        """Returns the number of rows; 1 if all rows share the restriction."""
        return len(self.known)

    @property
    def is_restricted(self) -> Mask:
        """Mask of the rows in which the column is restricted. Shape: (n,), or (1,) for all."""
        return np.logical_and(self.target.is_restricted, ~self._is_open_cyclic())

    def _is_open_cyclic(self) -> Mask:
        """Returns a mask of the rows in which a rule on times of day restricts nothing: if another
        column is unknown and drawn later, any time solves the rule, because times start again at
        midnight. Shape: (n,), or (1,) for all rows alike."""
        rewriting = self.codec.reduction.rewritten[self.name]
        is_round = (
            isinstance(rewriting, Residual) and clock_of(rewriting.prediction.form) is not None
        )
        is_unknown = self.guessed[list(self.later)].isna().to_numpy()
        found: Mask = np.logical_or.reduce(is_unknown, axis=1) & is_round
        return found

    def take(self, rows: npt.NDArray[np.int64]) -> ParentConstraint:
        """Returns the restriction for the rows with the given indices."""
        known, guessed = rows_of(self.known, rows), rows_of(self.guessed, rows)
        return replace(self, target=self.target.take(rows), known=known, guessed=guessed)

    def of_particles(self, codes: Tensor, values: Tensor) -> TargetIntervals:
        """Returns the values of the restricted column that are possible for each of N particles
        (weighted draws of a row), given the earlier columns.

        Shape: codes and values of D columns (N, D).
        """
        if len(self) < len(codes):  # all rows share the constraint
            return self.take(np.zeros(len(codes), dtype=np.int64)).of_particles(codes, values)
        target = self.target.of_particles(codes, values)
        rewriting = self.codec.reduction.rewritten[self.name]
        names = [name for name in rewriting.parents if name != self.parent]
        drawn = self.codec.written(names, codes, values)
        others = {
            name: self.guessed[name]
            if name in self.later
            else filled(self.known[name], drawn[name])
            for name in names
        }
        low, high = self._solutions(rewriting, others, target)
        is_known = target.is_known & ~self._is_open_cyclic()
        return TargetIntervals(low, high, is_known, np.zeros_like(is_known))

    def _solutions(
        self,
        rewriting: Rewriting,
        others: Mapping[str, pd.Series[Any]],
        target: TargetIntervals,
    ) -> tuple[Indices, Indices]:
        """Returns the (first, last) value of the column with which the rule can hold, if columns
        drawn later have any value between their limits. Only their limits are tried, because the
        rule is monotone in each column."""
        column, ends = self.codec.schema[self.parent], []
        unknown = [name for name in self.later if others[name].isna().any()]
        for corner in product(("low", "high"), repeat=len(unknown)):
            limits = {
                name: filled(others[name], self._limit(name, end, len(target.low)))
                for name, end in zip(unknown, corner, strict=True)
            }
            frame = pd.DataFrame({**others, **limits}, index=self.known.index)
            ends.append(rewriting.solutions(column, frame, target.low, target.high))
        lows, highs = zip(*ends, strict=True)
        return np.minimum.reduce(lows), np.maximum.reduce(highs)

    def _limit(self, name: str, end: str, n: int) -> pd.Series[Any]:
        """Returns the lowest or highest value of a column (`end` is "low" or "high"), n times."""
        grid = Grid.of(self.codec.schema[name])
        assert grid is not None, "it is proposed, so it has one"
        return pd.Series(grid.values(np.full(n, getattr(grid, end))))


def _of_rows(mask: Mask, at: npt.NDArray[np.int64]) -> Mask:
    """Returns a mask for the rows `at`; a mask of length 1, which covers all rows, is unchanged."""
    return mask if len(mask) == 1 else mask[at]


@dataclass(frozen=True)
class ProposalRegion:
    """Proposes an unknown column among the solutions of a rule.

    Draws from the model alone would hardly ever satisfy the rule.

    Attributes:
        codec: Codec of the table.
        parent: Name of the unknown column of the table.
        constraint: Restriction of the column: intervals that are the same for all weighted draws of
            a row, or a rule that also has other unknown columns.
        model_column: Name of the model's column that is proposed; a column of the table may have
            several.
        is_open: True for rows in which the column is proposed. Shape: (n,), or (1,) for all rows.
        may_be_missing: Whether the cell may be a missing value.
        others: Further restrictions of the column, each with a mask like `is_open`. The column is
            proposed among the values that satisfy all restrictions, if there are any.
        beyond: Known cells of each column that has a known cell beyond the training table's range.
            They are kept here, because the codec cannot encode such a cell. None if there are no
            such columns. n rows.
    """

    codec: TableCodec
    parent: str
    constraint: ParentConstraint | TargetIntervals
    model_column: str
    is_open: Mask
    may_be_missing: bool = True
    others: tuple[tuple[ParentConstraint | TargetIntervals, Mask], ...] = ()
    beyond: pd.DataFrame | None = None

    @property
    def has_density(self) -> bool:
        """Whether the only possible cell is a number with a density: always False, because the
        region excludes no cell."""
        return False

    @property
    def is_restricted(self) -> Mask:
        """Mask of the rows in which the column is proposed. Shape: (n,), or (1,) for all."""
        return self.is_open & self.constraint.is_restricted

    def take(self, rows: Tensor | None) -> ProposalRegion:
        """Returns the region for the rows with the given indices; None stands for all rows."""
        if rows is None:
            return self
        at = indices_of_rows(rows, len(self.constraint))
        others = tuple((other.take(at), _of_rows(mask, at)) for other, mask in self.others)
        is_open = _of_rows(self.is_open, at)
        found = replace(self, constraint=self.constraint.take(at), is_open=is_open, others=others)
        return found if self.beyond is None else replace(found, beyond=rows_of(self.beyond, at))

    def fixed_codes(self) -> Tensor | None:
        """Returns for n rows the mask of the column's K integer codes that solve the rule; None if
        the solutions differ between particles (weighted draws) of a row. Shape: (n, K)."""
        target = self.constraint
        if isinstance(target, ParentConstraint) or self.parent in self.codec.reduction.rewritten:
            return None
        region = region_of_intervals(self.codec.column_codec(self.model_column), target)
        return ~torch.isneginf(region.log_share)

    def draw(
        self, column: ConditionalColumn, noise: Tensor, codes: Tensor, values: Tensor
    ) -> Drawn:
        """Draws a cell from a proposal q for each of N particles (weighted draws of a row), with
        the log weight log p - log q.

        `column` is the column's distribution p given the earlier columns. Shape: uniform noise
        (N,); codes and values (N, D), of which the columns drawn so far are set.
        """
        codec, parent = self.codec, self.parent
        is_open = np.broadcast_to(self.is_open, len(noise))
        solved = self.constraint.of_particles(codes, values)
        for other, mask in self.others if (solved.low < solved.high).any() else ():
            among = np.broadcast_to(mask & other.is_restricted, len(noise))
            if among.any():
                solved = solved.within(other.of_particles(codes, values), among)
        low, high, own = solved.low, solved.high, codec.column_codec(self.model_column)
        if parent in codec.reduction.rewritten:
            split = codec.reduction.rewritten[parent]
            beyond = rows_of_particles(self.beyond, len(noise))
            earlier = codec.earlier(split, self.model_column, codes, values, beyond)
            low, high = split.part_intervals(self.model_column, earlier, low, high)
        everywhere = np.ones(len(noise), dtype=bool)
        region = region_of_intervals(own, TargetIntervals(low, high, everywhere, ~everywhere))
        near = region.draw_by_size(column, (noise / _PROPOSED).clamp(max=_LARGEST_NOISE))
        blank = column.draw_within(blanks_region(own, alone=True), noise)
        is_asked = torch.from_numpy(is_open & solved.is_known)
        can_leave = is_asked & (blank.log_prob > _LEAST_LOG_MASS) & self.may_be_missing
        least = torch.where(can_leave, blank.log_prob - _NEGLIGIBLE_NATS, _LEAST_LOG_MASS)
        can_solve = is_asked & (near.log_prob > least.clamp(min=_LEAST_LOG_MASS))
        share = torch.where(can_solve, _PROPOSED, 0.0).double()
        left = torch.where(can_leave, torch.where(can_solve, _LEFT_BLANK, 0.5), 0.0).double()
        is_near, is_left = noise < share, (noise >= share) & (noise < share + left)
        rest = (noise - share - left) / (1.0 - share - left)
        everything = None if self.may_be_missing else blanks_region(own, alone=False)
        free = column.draw_within(everything, rest.clamp(1.0 - _LARGEST_NOISE, _LARGEST_NOISE))
        drawn_codes = torch.where(is_near, near.codes, torch.where(is_left, 0, free.codes))
        drawn_values = torch.where(is_near, near.values, torch.where(is_left, 0.0, free.values))
        is_inside = is_near | lies_in(region, drawn_codes, drawn_values)
        is_blank = can_leave & (drawn_codes == 0)
        log_near = torch.where(is_inside, torch.log(share) - near.log_prob, -torch.inf)
        log_left = torch.where(is_blank, torch.log(left) - blank.log_prob, -torch.inf)
        log_free = torch.log1p(-share - left) - free.log_prob
        log_proposal = torch.stack([log_near, log_left, log_free]).logsumexp(0)
        return Drawn(-log_proposal, drawn_codes, drawn_values)
