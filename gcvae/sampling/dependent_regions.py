"""Regions of possible cells that depend on earlier columns of the row.

    y = f(x) + e with y in [a, b]   becomes   e in [a - f(x), b - f(x)]

The model represents a column y that a formula f computes from columns x by its residual e, so a
restriction of y becomes one of e given x, different for each particle (weighted draw of a row).
Unknown x are drawn preferably near the solutions of the formula for y
(`gcvae.sampling.solved_regions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.codec.region import ConditionalColumn, Drawn, Region
from gcvae.rules.grids import Grid, grid_of
from gcvae.rules.residuals import Residual
from gcvae.rules.rewritings import Rewriting
from gcvae.sampling.date_constraints import date_constraints
from gcvae.sampling.deductions import deduced
from gcvae.sampling.joint_regions import JointRegion, joint_regions
from gcvae.sampling.solved_regions import ParentConstraint, ProposalRegion
from gcvae.sampling.target_intervals import (
    TargetIntervals,
    indices_of_rows,
    region_of_intervals,
    rows_of,
    rows_of_particles,
)

if TYPE_CHECKING:
    from gcvae.codec.table_codec import TableCodec
    from gcvae.sampling.lookahead import LookaheadRegion

_MOST_LATER = 2
"""Maximum number of unknown columns of a formula that are drawn after a proposed one; each doubles
the number of solutions to compute."""
_LONGEST_CHAIN = 3
"""Maximum number of rules between a known column and a proposed one."""


@dataclass(frozen=True)
class DependentRegion:
    """Possible cells of a column of the model, such as a residual (the difference between a column
    and the formula that computes it), in each row.

    The column represents a column of the table whose values are restricted. Its possible cells
    follow from the restriction and from the cells that were generated before.

    Attributes:
        codec: Codec (encoder) of the table.
        name: Name of the table's column that is restricted.
        model_column: Name of the model's column that represents it.
        target: Possible values of the restricted column.
        is_scored: Whether the probability of a cell is divided by the resolution of its column.
            Scores use this density per unit.
        beyond: Known cells of each column that has a known cell beyond the training table's range.
            They are kept here, because the codec cannot encode such a cell. None if there are no
            such columns. n rows.
    """

    codec: TableCodec
    name: str
    model_column: str
    target: TargetIntervals
    is_scored: bool = False
    beyond: pd.DataFrame | None = None

    @property
    def has_density(self) -> bool:
        """Whether the possible cells have a density: always False. They are multiples of a
        resolution, so each has a probability."""
        return False

    @property
    def is_restricted(self) -> Mask:
        """Mask of the rows in which the column is restricted. Shape: (n,), or (1,) for all."""
        return self.target.is_known

    def take(self, rows: Tensor | None) -> DependentRegion:
        """Returns the region for the rows with the given indices; None stands for all rows."""
        if rows is None:
            return self
        at = indices_of_rows(rows, len(self.target.low))
        found = replace(self, target=self.target.take(at))
        return found if self.beyond is None else replace(found, beyond=rows_of(self.beyond, at))

    def draw(
        self, column: ConditionalColumn, noise: Tensor, codes: Tensor, values: Tensor
    ) -> Drawn:
        """Draws one of the possible cells for each of N particles (weighted draws of a row), and
        computes the log probability of all possible cells.

        `column` is the column's distribution given the earlier columns. Shape: uniform noise (N,);
        codes and values (N, D), of which the columns drawn so far are set.
        """
        target = self.target.of_particles(codes, values)
        rewriting = self.codec.reduction.rewritten[self.name]
        beyond = rows_of_particles(self.beyond, len(noise))
        earlier = self.codec.earlier(rewriting, self.model_column, codes, values, beyond)
        low, high = rewriting.part_intervals(self.model_column, earlier, target.low, target.high)
        own = self.codec.column_codec(self.model_column)
        drawn = column.draw_within(
            region_of_intervals(own, replace(target, low=low, high=high)), noise
        )
        if not self.is_scored:
            return drawn
        has_unit = drawn.codes >= own.has_missing
        is_priced = has_unit & torch.from_numpy(target.is_known.copy())
        log_unit = torch.where(is_priced, rewriting.log_unit(self.model_column), 0.0)
        return replace(drawn, log_prob=drawn.log_prob - log_unit)


@dataclass(frozen=True)
class RegionsByRow:
    """Alternative regions of possible cells of a column; each row uses the first that restricts it.

    Attributes:
        regions: Regions that rules imply, most restrictive first.
        default_region: Region of the rows that no rule restricts; None if all cells are possible.
    """

    regions: tuple[DependentRegion | JointRegion | ProposalRegion, ...]
    default_region: Region | LookaheadRegion | None = None

    @property
    def has_density(self) -> bool:
        """Whether the regions' probability is a density.

        It is a density if, in rows that no rule restricts, the only possible cell is a number that
        has a density.
        """
        return isinstance(self.default_region, Region) and self.default_region.has_density

    def take(self, rows: Tensor | None) -> RegionsByRow:
        """Returns the regions for the rows with the given indices; None stands for all rows."""
        default_region = None if self.default_region is None else self.default_region.take(rows)
        return RegionsByRow(tuple(region.take(rows) for region in self.regions), default_region)

    def draw(
        self, column: ConditionalColumn, noise: Tensor, codes: Tensor, values: Tensor
    ) -> Drawn:
        """Draws a cell for each of N particles (weighted draws of a row) from its row's region.

        `column` is the column's distribution given the earlier columns. Shape: uniform noise (N,);
        codes and values (N, D), of which the columns drawn so far are set.
        """
        n = len(noise)
        drawn = Drawn.to_fill(noise)
        is_open = np.ones(n, dtype=bool)
        for region in self.regions:
            is_own = is_open & region.is_restricted
            is_open &= ~is_own
            if is_own.all():
                return region.draw(column, noise, codes, values)
            if is_own.any():
                at = torch.from_numpy(np.flatnonzero(is_own))
                of_rows = column.take(at), noise[at], codes[at], values[at]
                drawn.put(at, region.take(at).draw(*of_rows))
        at = torch.from_numpy(np.flatnonzero(is_open))
        if len(at):
            default_region = None if self.default_region is None else self.default_region.take(at)
            if default_region is None or isinstance(default_region, Region):
                drawn.put(at, column.take(at).draw_within(default_region, noise[at]))
            else:
                drawn.put(
                    at, default_region.draw(column.take(at), noise[at], codes[at], values[at])
                )
        return drawn


DependentRegions = dict[int, RegionsByRow]
"""Regions by index of the column in the codec."""


def rule_regions(
    codec: TableCodec,
    frame: pd.DataFrame,
    targets: Mapping[str, TargetIntervals],
    order: Sequence[int],
    *,
    may_be_missing: bool,
    are_scored: bool = False,
) -> DependentRegions:
    """Returns the sets of possible cells (regions) of model columns, given restricted columns of
    the table.

    The model's columns can differ from the table's: it represents a computed column by its
    residual, the difference between the column and its formula. If a rule computes a restricted
    column from unknown columns, the unknown columns are drawn preferably among the solutions of the
    rule. If another rule computes one of them, the same holds for the columns of that rule.

    Args:
        frame: Cells of the columns' dtypes; missing cells are unknown. It has n rows, or a single
            row that applies to all rows.
        targets: Possible values in each row of `frame`, by name of the restricted column.
        order: Order in which the decoder generates the columns.
        may_be_missing: Whether an unknown cell may be a missing value.
        are_scored: Whether probabilities are divided by the resolution of the column. Scores use
            these densities per unit.
    """
    proposer = _ParentProposals(codec, frame, order, may_be_missing=may_be_missing)
    own: list[tuple[int, DependentRegion]] = []
    proposals = [*proposer.of_deductions(), *proposer.of_dates(targets)]
    for name in sorted(targets, key=lambda name: evaluation_rank(codec, name)):
        rewriting, target = codec.reduction.rewritten[name], targets[name]
        own += [
            (
                codec.places[part.name],
                DependentRegion(codec, name, part.name, target, are_scored, proposer.beyond),
            )
            for part in rewriting.parts
            if part.name in codec.places
        ]
        proposals += proposer.of(rewriting, _always(target), target.is_known)
    return _by_column(own, proposals, joint_regions(codec, frame, targets, order))


def regions_of_rows(
    codec: TableCodec,
    frame: pd.DataFrame,
    order: Sequence[int],
    *,
    may_be_missing: bool,
    are_scored: bool = False,
) -> DependentRegions:
    """Returns the possible cells (regions) of unknown columns in rows in which a computed column is
    known, but not every column of its formula.

    Args:
        frame: Rows with cells of the columns' dtypes; missing cells are unknown.
        order: Order in which the decoder generates the columns.
        may_be_missing: Whether an unknown cell may be a missing value.
        are_scored: Whether probabilities are divided by the resolution of the column. Scores use
            these densities per unit.
    """
    frame = frame.reset_index(drop=True)
    targets: dict[str, TargetIntervals] = {}
    for rewriting in codec.reduction.rewritings:
        name = rewriting.column
        is_unknown = frame[[*rewriting.parents]].isna().any(axis=1)
        cells = frame[name].where(is_unknown)
        if cells.notna().any():
            grid = grid_of(codec.schema[name])
            targets[name] = TargetIntervals.of_cells(grid, cells, may_be_missing=may_be_missing)
    options = {"may_be_missing": may_be_missing, "are_scored": are_scored}
    return rule_regions(codec, frame, targets, order, **options)


_Rank = tuple[int, int, int]
"""Sort key of a proposal, the most restrictive first: (number of rules between the known column and
the proposed one, rank of the rule, number of unknown columns drawn later).
"""
_DEDUCED: _Rank = (0, 0, 0)
"""Rank of a value that follows from known cells: the most restrictive proposal."""
_OF_DATES: _Rank = (1, 1, 1)
"""Rank of the restriction of a date by its parts: less restrictive than a formula without other
unknown columns, and more than an inequality."""
_Proposal = tuple[_Rank, int, ProposalRegion]
"""(rank, index of the column in the codec, region)."""


def _by_column(
    own: Iterable[tuple[int, DependentRegion]],
    constraint: Iterable[_Proposal],
    joint: Mapping[int, JointRegion],
) -> DependentRegions:
    """Collects the alternative regions of each model column, by the column's index. Regions of
    columns drawn jointly (`joint`) come first, then regions of restricted columns (`own`), then
    proposals (`constraint`), the smallest rank first."""
    regions: dict[int, list[DependentRegion | JointRegion | ProposalRegion]] = {
        j: [region] for j, region in joint.items()
    }
    for j, known in own:
        regions.setdefault(j, []).append(known)
    solved: dict[int, list[ProposalRegion]] = {}
    for _, j, region in sorted(constraint, key=lambda each: each[0]):
        solved.setdefault(j, []).append(region)
    for j, proposals in solved.items():
        for i, region in enumerate(proposals):
            others = tuple((other.constraint, other.is_open) for other in proposals[i + 1 :])
            regions.setdefault(j, []).append(replace(region, others=others))
    return {j: RegionsByRow(tuple(found)) for j, found in regions.items()}


ConstraintAt = Callable[[int], TargetIntervals | ParentConstraint | None]
"""Function from a position in the decoder's order to the restriction of a column when the column at
that position is drawn; None without a restriction."""


def _always(target: TargetIntervals) -> ConstraintAt:
    return lambda _: target


@dataclass(frozen=True)
class _ParentProposals:
    """Makes proposals, which draw unknown columns of a rule preferably among its solutions.

    Attributes:
        codec: Codec of the table.
        frame: Known cells of the columns' dtypes. It has n rows, or a single row that applies to
            all rows.
        order: Order in which the decoder generates the columns.
        may_be_missing: Whether an unknown cell may be a missing value.
    """

    codec: TableCodec
    frame: pd.DataFrame
    order: Sequence[int]
    may_be_missing: bool

    def of(
        self, rewriting: Rewriting, target_at: ConstraintAt, is_partial: Mask, length: int = 1
    ) -> Iterator[_Proposal]:
        """Yields proposals for the unknown columns of a rule.

        If another rule computes one of these columns, proposals for the unknown columns of that
        rule follow.

        Args:
            rewriting: Rule that computes a restricted column.
            target_at: Function that returns the restriction of the computed column, given the
                position in the decoder's order of the column that is drawn.
            is_partial: Mask of the rows in which the proposal applies. Shape: (n,).
            length: Number of rules between the known column and the proposed one.
        """
        for parent in rewriting.parents:
            is_open = is_partial & self.frame[parent].isna().to_numpy()
            if not is_open.any():
                continue

            def constraint_at(position: int, parent: str = parent) -> ParentConstraint | None:
                return self._parent_constraint(rewriting, parent, target_at, position)

            for j in self._parts(parent):
                constraint = constraint_at(self.order.index(j))
                if constraint is not None:
                    rank = (
                        length,
                        evaluation_rank(self.codec, rewriting.column),
                        len(constraint.later),
                    )
                    yield self._proposal(rank, parent, constraint, j, is_open)
            own = self.codec.reduction.rewritten.get(parent)
            if own is not None and own.parents and length < _LONGEST_CHAIN:
                yield from self.of(own, constraint_at, is_open, length + 1)

    def of_deductions(self) -> Iterator[_Proposal]:
        """Yields proposals for the unknown cells that follow from known ones.

        Columns that a formula computes are left out, because the model draws their residuals
        instead.
        """
        for column in self.codec.schema:
            grid = Grid.of(column) if column.name in self.frame else None
            if grid is None or evaluation_rank(self.codec, column.name) == 1:
                continue
            cells = self.guessed[column.name].where(self.frame[column.name].isna())
            if cells.notna().any():
                target = TargetIntervals.of_cells(grid, cells, may_be_missing=False)
                for j in self._parts(column.name):
                    yield self._proposal(_DEDUCED, column.name, target, j, target.is_known)

    def of_dates(self, targets: Mapping[str, TargetIntervals]) -> Iterator[_Proposal]:
        """Yields proposals for the unknown dates from which known or restricted columns, such as
        months, are computed. `targets` are the possible values of restricted columns, by name."""
        for parent, target in date_constraints(self.codec, self.frame, self.guessed, targets):
            is_open = self.frame[parent].isna().to_numpy()
            for j in self._parts(parent):
                yield self._proposal(_OF_DATES, parent, target, j, is_open)

    def _proposal(
        self,
        rank: _Rank,
        parent: str,
        target: ParentConstraint | TargetIntervals,
        j: int,
        is_open: Mask,
    ) -> _Proposal:
        """Returns a region that draws model column j, which represents the unknown column `parent`
        of the table, mostly among the values that satisfy the restriction `target`.

        Of several such regions for one column, the one with the smallest `rank` is used first.
        `is_open` is the mask of the rows in which the column is unknown.
        """
        name, beyond = self.codec.columns[j].name, self.beyond
        region = ProposalRegion(
            self.codec, parent, target, name, is_open, self.may_be_missing, beyond=beyond
        )
        return rank, j, region

    def _parent_constraint(
        self, rewriting: Rewriting, parent: str, target_at: ConstraintAt, position: int
    ) -> ParentConstraint | None:
        """Returns the restriction that a rule puts on its unknown column `parent`, which is drawn
        at `position` of the decoder's order, if the column that the rule computes is restricted.

        None if the computed column is not restricted, if the rule cannot be solved for the unknown
        column, or if too many other unknown columns of the rule are drawn later.
        """
        target = target_at(position)
        later = tuple(
            name
            for name in rewriting.parents
            if name != parent and self.frame[name].isna().any() and self._drawn_at(name) >= position
        )
        is_solvable = all(
            Grid.of(self.codec.schema[name]) is not None and rewriting.can_solve(name)
            for name in (parent, *later)
        )
        if target is None or not is_solvable or len(later) > _MOST_LATER:
            return None
        known, guessed = (frame[list(rewriting.parents)] for frame in (self.frame, self.guessed))
        return ParentConstraint(self.codec, rewriting.column, parent, target, known, guessed, later)

    @cached_property
    def guessed(self) -> pd.DataFrame:
        """The known cells, completed with the cells that follow from them."""
        return deduced(self.codec, self.frame)

    @cached_property
    def beyond(self) -> pd.DataFrame | None:
        """Known cells of each column that has a known cell beyond the training table's range.

        None if there are no such columns.
        """
        grids = {c.name: Grid.of(c) for c in self.codec.schema if c.name in self.frame}
        names = [
            name
            for name, grid in grids.items()
            if grid is not None and not grid.contains(self.frame[name].dropna()).all()
        ]
        return self.frame[names] if names else None

    def _parts(self, name: str) -> list[int]:
        index_of = self.codec.places
        return [index_of[part] for part in self.codec.reduction.parts_of(name) if part in index_of]

    def _drawn_at(self, name: str) -> int:
        """Returns the position in the decoder's order of the last model column that represents a
        column of the table; -1 if there is none."""
        return max((self.order.index(j) for j in self._parts(name)), default=-1)


def unrounded_columns(regions: Iterable[object]) -> set[str]:
    """Returns the names of the columns whose generated numbers must not be rounded, because a
    formula computes a restricted column from them and rounding could move its result out of the
    restriction. Inequalities do not count.

    `regions` are the sets of possible cells of the columns, None for unrestricted ones.
    """
    found: set[str] = set()
    for region in regions:
        for own in dependent_parts(region):
            reduction = own.codec.reduction
            rewriting = reduction.rewritten[own.name]
            if not _is_loose(rewriting):
                found |= reduction.needed(rewriting.parents)
    return found


def dependent_parts(region: object) -> list[DependentRegion]:
    """Returns the objects of class `DependentRegion` among the possible cells of a column: several
    from a `RegionsByRow`, the argument alone if it is one, none for any other region."""
    parts = region.regions if isinstance(region, RegionsByRow) else (region,)
    return [part for part in parts if isinstance(part, DependentRegion)]


def evaluation_rank(codec: TableCodec, name: str) -> int:
    """Returns the priority of a restriction of column `name`; 0 is the highest.

        0   no rule computes the column
        1   a rule that is not an inequality computes it
        2   an inequality relates it to other columns, and so permits most values

    If several restrictions, by equally many rules each, apply to an unknown column, the one with
    the highest priority proposes its values.
    """
    rewriting = codec.reduction.rewritten.get(name)
    if rewriting is None:
        return 0
    return 2 if _is_loose(rewriting) else 1


def _is_loose(rewriting: Rewriting) -> bool:
    """Returns whether a rule is an inequality that leaves its column several values."""
    return isinstance(rewriting, Residual) and rewriting.is_inequality and not rewriting.is_exact
