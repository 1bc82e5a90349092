"""Regions of cells that are known once earlier columns are drawn.

A column y that a formula computes from others, y = f(x) + e, is modelled as e. What is known of y,
a number or a range, is known of e given x: the region of e is that of y less f(x), another for each
particle. Parents that are themselves unknown are proposed near what y asks of them
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
from gcvae.codec.code_units import codes_with_units
from gcvae.codec.region import Drawn, Region, WalkedColumn
from gcvae.rules.grids import Grid, grid_of
from gcvae.rules.residuals import Computed, Rewriting
from gcvae.sampling.asked_dates import AskedDate, asked_dates
from gcvae.sampling.deductions import deduced
from gcvae.sampling.joint_regions import JointRegion, joint_regions
from gcvae.sampling.solved_regions import Asked, SolvedRegion
from gcvae.sampling.wanted_places import WantedPlaces, places_of_rows, region_of_wholes

if TYPE_CHECKING:
    from gcvae.codec.table_codec import TableCodec

_MOST_LATER = 2
"""Unknown parents after one that is proposed: each doubles what is solved."""
_LONGEST_CHAIN = 3
"""Rules on the way from what is known to a parent that is proposed."""


@dataclass(frozen=True)
class DependentRegion:
    """The region of a part, such as a residual, from what is known of its written column.

    Attributes:
        codec: Of the table.
        name: The written column.
        part: The column of the reduced table.
        wanted: What is known of it.
        is_scored: A cell counts per unit of its column, as in scores, not by its mass.
    """

    codec: TableCodec
    name: str
    part: str
    wanted: WantedPlaces
    is_scored: bool = False

    @property
    def has_density(self) -> bool:
        """False: places of a grid have masses."""
        return False

    @property
    def says_more(self) -> Mask:
        """Of which rows something is known. Shape: (n,) or (1,)."""
        return self.wanted.is_known

    def take(self, rows: Tensor | None) -> DependentRegion:
        """The region of these rows."""
        if rows is None:
            return self
        return replace(self, wanted=self.wanted.take(places_of_rows(rows, len(self.wanted.low))))

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell for each particle within its region, and the region's probability.

        Shape: noise (N,); codes and values of the columns that are drawn, (N, D).
        """
        wanted = self.wanted.of_particles(codes, values)
        rewriting = self.codec.reduction.rewritten[self.name]
        earlier = self.codec.earlier(rewriting, self.part, codes, values)
        low, high = rewriting.part_places(self.part, earlier, wanted.low, wanted.high)
        own = self.codec.column_codec(self.part)
        drawn = column.draw_within(
            region_of_wholes(own, replace(wanted, low=low, high=high)), noise
        )
        if not self.is_scored:
            return drawn
        has_unit = torch.from_numpy(codes_with_units(own, self.codec.reduction))[drawn.codes.long()]
        is_priced = has_unit & torch.from_numpy(wanted.is_known.copy())
        log_unit = torch.where(is_priced, rewriting.log_unit(self.part), 0.0)
        return replace(drawn, log_prob=drawn.log_prob - log_unit)


@dataclass(frozen=True)
class SeveralRegions:
    """What several rules say of one column: in each row the first that says something."""

    regions: tuple[DependentRegion | JointRegion | SolvedRegion, ...]

    @property
    def has_density(self) -> bool:
        """False: none has."""
        return False

    @property
    def says_more(self) -> Mask:
        """Of which rows something is known. Shape: (n,) or (1,)."""
        found: Mask = np.logical_or.reduce([region.says_more for region in self.regions])
        return found

    def take(self, rows: Tensor | None) -> SeveralRegions:
        """The regions of these rows."""
        return SeveralRegions(tuple(region.take(rows) for region in self.regions))

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell for each particle, by the first region that says something of its row."""
        *others, last = self.regions
        drawn = last.draw(column, noise, codes, values)
        for region in reversed(others):
            own = region.draw(column, noise, codes, values)
            drawn = _where(region.says_more, own, drawn)
        return drawn


AskedRegion = DependentRegion | JointRegion | SolvedRegion | SeveralRegions


@dataclass(frozen=True)
class EitherRegion:
    """A column's region by itself, and in rows of which more is known what that asks.

    Attributes:
        plain: Of the rows of which `dependent` says nothing; None for everything.
    """

    plain: Region | None
    dependent: AskedRegion

    @property
    def has_density(self) -> bool:
        """Whether some row's condition is a point."""
        return self.plain is not None and self.plain.has_density

    def take(self, rows: Tensor | None) -> EitherRegion:
        """The regions of these rows."""
        plain = None if self.plain is None else self.plain.take(rows)
        return EitherRegion(plain, self.dependent.take(rows))

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell for each particle, from the one or the other."""
        own = column.draw_within(self.plain, noise)
        more = self.dependent.draw(column, noise, codes, values)
        return _where(self.dependent.says_more, more, own)


def _where(is_first: Mask, first: Drawn, second: Drawn) -> Drawn:
    """The one drawn cell or the other of each particle."""
    at = torch.from_numpy(np.broadcast_to(is_first, len(first.codes)).copy())
    return Drawn(
        torch.where(at, first.log_prob, second.log_prob),
        torch.where(at, first.codes, second.codes),
        torch.where(at, first.values, second.values),
    )


DependentRegions = dict[int, AskedRegion]
"""By the codec's columns."""


def regions_of_all(
    codec: TableCodec, name: str, wanted: WantedPlaces, order: Sequence[int], known: pd.DataFrame
) -> DependentRegions:
    """The regions of what is known in all rows of a column that is rewritten.

    Args:
        codec: Of the table.
        name: The written column.
        wanted: What is known of it. One row.
        order: Of the columns in the chain rule.
        known: The cells that are known of other columns. One row, typed.
    """
    rewriting = codec.reduction.rewritten[name]
    own = [
        (codec.places[part.name], DependentRegion(codec, name, part.name, wanted))
        for part in rewriting.parts
        if part.name in codec.places
    ]
    cells = known.reindex(columns=list(codec.schema.names))
    asking = _Asking(codec, cells, order, may_be_blank=True)
    asked = asking.of(rewriting, _always(wanted), np.ones(1, dtype=bool))
    places = {
        other.column: _places_known(codec, cells, other.column, blanks_missing=True)
        for other in codec.reduction.rewritings
        if other.parents
    }
    joint = joint_regions(codec, cells, places | {name: wanted}, order)
    return _by_column(own, asked, joint)


def regions_of_rows(
    codec: TableCodec,
    frame: pd.DataFrame,
    order: Sequence[int],
    *,
    blanks_missing: bool,
    are_scored: bool = False,
) -> DependentRegions:
    """The regions of rows of which a column that a rule gives is known, and a parent of it is not.

    The unknown parents are proposed where the rule asks for them, and theirs where they follow from
    others.

    Args:
        codec: Of the table.
        frame: Typed; blank cells are not known.
        order: Of the columns in the chain rule.
        blanks_missing: A cell that is not known may turn out to be missing.
        are_scored: As of `DependentRegion`.
    """
    frame = frame.reset_index(drop=True)
    asking = _Asking(codec, frame, order, may_be_blank=blanks_missing)
    own: list[tuple[int, DependentRegion]] = []
    asked = [*asking.of_dates()]
    known: dict[str, WantedPlaces] = {}
    for rewriting in sorted(codec.reduction.rewritings, key=lambda each: turn(codec, each.column)):
        name = rewriting.column
        is_known = frame[name].notna().to_numpy()
        is_loose = is_known & frame[list(rewriting.parents)].isna().to_numpy().any(axis=1)
        if not is_loose.any():
            continue
        cells = frame.assign(**{name: frame[name].where(is_loose)})
        wanted = _places_known(codec, cells, name, blanks_missing=blanks_missing)
        known[name] = wanted
        own.append((codec.places[name], DependentRegion(codec, name, name, wanted, are_scored)))
        asked += asking.of(rewriting, _always(wanted), is_loose)
    return _by_column(own, asked, joint_regions(codec, frame, known, order) if known else {})


def _places_known(
    codec: TableCodec, frame: pd.DataFrame, name: str, *, blanks_missing: bool
) -> WantedPlaces:
    """The places of a column's known cells."""
    grid = grid_of(codec.schema[name])
    return WantedPlaces.of_cells(grid, frame[name], blanks_missing=blanks_missing)


_Rank = tuple[int, int, int]
"""How little a rule is likely to leave open: rules on the way, `turn`, unknown later parents."""
_OF_DATES: _Rank = (1, 1, 1)
"""Parts of a date leave more open than a sum without unknown terms, and less than an order."""
_Proposal = tuple[_Rank, int, SolvedRegion]
"""(rank, column of the codec, region)."""


def _by_column(
    own: Iterable[tuple[int, DependentRegion]],
    asked: Iterable[_Proposal],
    joint: Mapping[int, JointRegion],
) -> DependentRegions:
    """What is said of each column, the sharpest first."""
    regions: dict[int, list[DependentRegion | JointRegion | SolvedRegion]] = {
        place: [region] for place, region in joint.items()
    }
    for place, known in own:
        regions.setdefault(place, []).append(known)
    for _, place, region in sorted(asked, key=lambda each: each[0]):
        regions.setdefault(place, []).append(region)
    return {
        place: said[0] if len(said) == 1 else SeveralRegions(tuple(said))
        for place, said in regions.items()
    }


AskedAt = Callable[[int], WantedPlaces | Asked | None]
"""What is known of a column when the one at a place of the order is drawn; None for nothing."""


def _always(wanted: WantedPlaces) -> AskedAt:
    """What is known from the beginning."""
    return lambda _: wanted


@dataclass(frozen=True)
class _Asking:
    """Proposes the unknown parents of rules.

    Attributes:
        codec: Of the table.
        frame: What is known, typed. n rows, or one for all.
        order: Of the columns in the chain rule.
        may_be_blank: As of `SolvedRegion`.
    """

    codec: TableCodec
    frame: pd.DataFrame
    order: Sequence[int]
    may_be_blank: bool

    def of(
        self, rewriting: Rewriting, wanted_at: AskedAt, is_loose: Mask, length: int = 1
    ) -> Iterator[_Proposal]:
        """Proposals of parents that are not known.

        Args:
            rewriting: Of the column of which something is known.
            wanted_at: What is known of it.
            is_loose: In which rows. Shape: (n,).
            length: Rules on the way so far.
        """
        for parent in rewriting.parents:
            is_open = is_loose & self.frame[parent].isna().to_numpy()
            if not is_open.any():
                continue

            def asked_at(place: int, parent: str = parent) -> Asked | None:
                return self._asked(rewriting, parent, wanted_at, place)

            for part in self._parts(parent):
                asked = asked_at(self.order.index(part))
                if asked is not None:
                    rank = length, turn(self.codec, rewriting.column), len(asked.later)
                    yield rank, part, self._proposal(asked, part, is_open)
            own = self.codec.reduction.rewritten.get(parent)
            if own is not None and own.parents and length < _LONGEST_CHAIN:
                yield from self.of(own, asked_at, is_open, length + 1)

    def of_dates(self) -> Iterator[_Proposal]:
        """Proposals of the dates of which parts are known."""
        for asked in asked_dates(self.codec, self.frame, self.guessed):
            is_open = self.frame[asked.parent].isna().to_numpy()
            for part in self._parts(asked.parent):
                yield _OF_DATES, part, self._proposal(asked, part, is_open)

    def _proposal(self, asked: Asked | AskedDate, part: int, is_open: Mask) -> SolvedRegion:
        return SolvedRegion(asked, self.codec.columns[part].name, is_open, self.may_be_blank)

    def _asked(
        self, rewriting: Rewriting, parent: str, wanted_at: AskedAt, place: int
    ) -> Asked | None:
        """What is asked of a parent when the column at a place is drawn; None if nothing can be."""
        wanted = wanted_at(place)
        later = tuple(
            name
            for name in rewriting.parents
            if name != parent and self.frame[name].isna().any() and self._drawn_at(name) >= place
        )
        is_solvable = all(
            Grid.of(self.codec.schema[name]) is not None and rewriting.can_solve(name)
            for name in (parent, *later)
        )
        if wanted is None or not is_solvable or len(later) > _MOST_LATER:
            return None
        known, guessed = (frame[list(rewriting.parents)] for frame in (self.frame, self.guessed))
        return Asked(self.codec, rewriting.column, parent, wanted, known, guessed, later)

    @cached_property
    def guessed(self) -> pd.DataFrame:
        """What is known, and what follows from it."""
        return deduced(self.codec, self.frame)

    def _parts(self, name: str) -> list[int]:
        """The codec's columns of a written one."""
        places = self.codec.places
        return [places[part] for part in self.codec.reduction.parts_of(name) if part in places]

    def _drawn_at(self, name: str) -> int:
        """The place in the order after which a written column is known."""
        return max((self.order.index(part) for part in self._parts(name)), default=-1)


def exact_columns(regions: Iterable[object]) -> set[str]:
    """The columns on whose numbers what is known of others rests."""
    found: set[str] = set()
    for region in regions:
        for own in dependent_parts(region):
            reduction = own.codec.reduction
            rewriting = reduction.rewritten[own.name]
            if not (isinstance(rewriting, Computed) and rewriting.is_inequality):
                found |= reduction.needed(rewriting.parents)
    return found


def dependent_parts(region: object) -> list[DependentRegion]:
    """The regions of known columns among what is said of one column."""
    own = region.dependent if isinstance(region, EitherRegion) else region
    parts = own.regions if isinstance(own, SeveralRegions) else (own,)
    return [part for part in parts if isinstance(part, DependentRegion)]


def turn(codec: TableCodec, name: str) -> int:
    """When what is known of a column is looked at: after those of no rule; orders, which leave more
    open, last, for a parent is proposed by the first rule that asks for it."""
    rewriting = codec.reduction.rewritten.get(name)
    if rewriting is None:
        return 0
    return 2 if isinstance(rewriting, Computed) and rewriting.is_inequality else 1
