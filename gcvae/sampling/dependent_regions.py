"""Regions of cells that are known once earlier columns are drawn.

A column y that a rule gives from others, y = g(x) + e, is modelled as e. What is known of y, a
number or a range, is known of e given x: the region of e is that of y less g(x), another for each
particle. A parent that is itself unknown is proposed near what y asks of it, for a free draw hardly
ever meets a sharp rule: eight of ten particles draw it among the solutions, one leaves it
blank, where the rule asks nothing, and the weights are those of a draw from the model. Where a
later parent is unknown, too, the solutions are those with some value of that one.

Source: sequential importance sampling with a defensive mixture; Hesterberg 1995.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.codec.code_units import codes_with_units
from gcvae.codec.column_codecs import RealCodec
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.region import Drawn, Region, WalkedColumn
from gcvae.rules.grids import Grid
from gcvae.rules.residuals import Residual, Rewriting
from gcvae.schema.rules import OrderRule

if TYPE_CHECKING:
    from gcvae.codec.column_codec import ColumnCodec
    from gcvae.codec.table_codec import TableCodec

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PROPOSED = 0.8
"""Share of the particles that draw a solved parent among its solutions."""
_LEFT_BLANK = 0.1
"""Share of those that leave it blank, if it can be; half of them where it has no solution."""
_MOST_LATER = 2
"""Unknown parents after one that is proposed: each doubles what is solved."""
_FAR_LESS = 20.0
"""Nats by which solutions that are less likely than a blank parent are none: they lie beyond all
that the parent can be."""
_LEAST_LOG_MASS = -600.0
_LARGEST_NOISE = 1.0 - 1e-15
_NOWHERE = 38.0
"""A normal score above which no double has a mass: the lower end of an empty interval."""


@dataclass(frozen=True)
class WantedPlaces:
    """What is known of one written column of n rows, or of all rows alike (n = 1).

    Shape: low, high (n, m), places of the column's grid; an interval with low > high is empty.

    Attributes:
        is_known: Where something is known at all. Shape: (n,).
        missing: Where a missing cell is possible. Shape: (n,).
    """

    low: Places
    high: Places
    is_known: Mask
    missing: Mask

    def take(self, rows: npt.NDArray[np.int64]) -> WantedPlaces:
        """What is known of these rows."""
        low, high, is_known, missing = self.low[rows], self.high[rows], self.is_known, self.missing
        return WantedPlaces(low, high, is_known[rows], missing[rows])

    @classmethod
    def of_cells(cls, grid: Grid, series: pd.Series[Any], *, blanks_missing: bool) -> WantedPlaces:
        """What typed cells say, of which blank ones are not known."""
        is_known = series.notna().to_numpy()
        places = np.zeros(len(series), dtype=np.int64)
        places[is_known] = grid.places(series[is_known])
        missing = ~is_known & blanks_missing
        return cls(places[:, None], places[:, None], is_known, missing)

    def of_particles(self, n: int) -> WantedPlaces:
        """What is known, for each of n particles."""
        return self.take(np.zeros(n, dtype=np.int64)) if len(self.low) == 1 else self


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
        return replace(self, wanted=self.wanted.take(_places_of(rows, self.wanted)))

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell for each particle within its region, and the region's probability.

        Shape: noise (N,); codes and values of the columns that are drawn, (N, D).
        """
        wanted = self.wanted.of_particles(len(noise))
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
class SolvedRegion:
    """Where a parent that is not known is proposed, so that a sharp rule can be met.

    Attributes:
        codec: Of the table.
        parent: The written column that is proposed; all other parents are drawn before it.
        part: The column of the reduced table, of those that stand for the parent.
        name: The column that the rule gives.
        wanted: What is known of that.
        is_open: Where the parent is to be proposed. Shape: (n,), or (1,).
        later: Those parents that are drawn after it.
        known: What is known of the other parents, typed.
        may_be_blank: The parent may turn out to be missing.
    """

    codec: TableCodec
    parent: str
    part: str
    name: str
    wanted: WantedPlaces
    is_open: Mask
    later: tuple[str, ...]
    known: pd.DataFrame
    may_be_blank: bool = True

    @property
    def has_density(self) -> bool:
        """False: nothing is said of the parent itself."""
        return False

    @property
    def says_more(self) -> Mask:
        """In which rows the parent is asked for. Shape: (n,) or (1,)."""
        return self.is_open & self.wanted.is_known

    def take(self, rows: Tensor | None) -> SolvedRegion:
        """The region of these rows."""
        if rows is None:
            return self
        at = _places_of(rows, self.wanted)
        is_open = self.is_open if len(self.is_open) == 1 else self.is_open[at]
        known = self.known.iloc[at].reset_index(drop=True)
        return replace(self, wanted=self.wanted.take(at), is_open=is_open, known=known)

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell of the parent for each particle, and log p - log q of its proposal q."""
        n = len(noise)
        wanted = self.wanted.of_particles(n)
        is_open = np.broadcast_to(self.is_open, n)
        rewriting = self.codec.reduction.rewritten[self.name]
        names = [name for name in rewriting.parents if name != self.parent]
        cells = self.known[names]
        if len(cells) < n:  # the same is known of all rows
            cells = cells.iloc[np.zeros(n, dtype=np.int64)].reset_index(drop=True)
        others = cells.where(cells.notna(), self.codec.written(names, codes, values))
        own = self.codec.column_codec(self.part)
        low, high = self._solutions(rewriting, others, cells, wanted)
        if self.parent in self.codec.reduction.rewritten:
            split = self.codec.reduction.rewritten[self.parent]
            earlier = self.codec.earlier(split, self.part, codes, values)
            low, high = split.part_places(self.part, earlier, low, high)
        solved = WantedPlaces(low, high, np.ones(n, dtype=bool), np.zeros(n, dtype=bool))
        region = region_of_wholes(own, solved)
        near = column.draw_within(region, (noise / _PROPOSED).clamp(max=_LARGEST_NOISE))
        blank = column.draw_within(_blanks(own, alone=True), noise)
        is_asked = torch.from_numpy(is_open & wanted.is_known)
        can_leave = is_asked & (blank.log_prob > _LEAST_LOG_MASS) & self.may_be_blank
        least = torch.where(can_leave, blank.log_prob - _FAR_LESS, _LEAST_LOG_MASS)
        can_solve = is_asked & (near.log_prob > least.clamp(min=_LEAST_LOG_MASS))
        share = torch.where(can_solve, _PROPOSED, 0.0).double()
        left = torch.where(can_leave, torch.where(can_solve, _LEFT_BLANK, 0.5), 0.0).double()
        is_near, is_left = noise < share, (noise >= share) & (noise < share + left)
        rest = (noise - share - left) / (1.0 - share - left)
        everything = None if self.may_be_blank else _blanks(own, alone=False)
        free = column.draw_within(everything, rest.clamp(1.0 - _LARGEST_NOISE, _LARGEST_NOISE))
        drawn_codes = torch.where(is_near, near.codes, torch.where(is_left, 0, free.codes))
        drawn_values = torch.where(is_near, near.values, torch.where(is_left, 0.0, free.values))
        is_inside = is_near | _lies_in(region, drawn_codes, drawn_values)
        is_blank = can_leave & (drawn_codes == 0)
        log_near = torch.where(is_inside, torch.log(share) - near.log_prob, -torch.inf)
        log_left = torch.where(is_blank, torch.log(left) - blank.log_prob, -torch.inf)
        log_free = torch.log1p(-share - left) - free.log_prob
        log_proposal = torch.stack([log_near, log_left, log_free]).logsumexp(0)
        return Drawn(-log_proposal, drawn_codes, drawn_values)

    def _solutions(
        self, rewriting: Rewriting, others: pd.DataFrame, cells: pd.DataFrame, wanted: WantedPlaces
    ) -> tuple[Places, Places]:
        """Where the parent lies: what is drawn later is anything between its column's limits.

        The rule rises or falls with each parent, so its ends are at theirs.
        """
        column, ends = self.codec.schema[self.parent], []
        unknown = [name for name in self.later if cells[name].isna().any()]
        for corner in product(("low", "high"), repeat=len(unknown)):
            for name, end in zip(unknown, corner, strict=True):
                limit = _limit(self.codec, name, end)
                others[name] = cells[name].where(cells[name].notna(), limit)
            ends.append(rewriting.solutions(column, others, wanted.low, wanted.high))
        lows, highs = zip(*ends, strict=True)
        return np.minimum.reduce(lows), np.maximum.reduce(highs)


@dataclass(frozen=True)
class EitherRegion:
    """A column's region by itself, and in rows of which more is known what that asks.

    Attributes:
        plain: Of the rows of which `dependent` says nothing; None for everything.
    """

    plain: Region | None
    dependent: DependentRegion | SolvedRegion

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
        own, more = (
            column.draw_within(self.plain, noise),
            self.dependent.draw(column, noise, codes, values),
        )
        says_more = torch.from_numpy(np.broadcast_to(self.dependent.says_more, len(noise)).copy())
        return Drawn(
            torch.where(says_more, more.log_prob, own.log_prob),
            torch.where(says_more, more.codes, own.codes),
            torch.where(says_more, more.values, own.values),
        )


def _limit(codec: TableCodec, name: str, end: str) -> Any:
    """The lowest or the highest cell of a column, typed."""
    grid = Grid.of(codec.schema[name])
    assert grid is not None, "it is proposed, so it has one"
    return pd.Series(grid.values(np.array([getattr(grid, end)])))[0]


def _places_of(rows: Tensor, wanted: WantedPlaces) -> npt.NDArray[np.int64]:
    """The rows' numbers; 0 where what is known is of all rows alike."""
    return rows.numpy() if len(wanted.low) > 1 else np.zeros(len(rows), dtype=np.int64)


def _blanks(codec: ColumnCodec, *, alone: bool) -> Region:
    """The missing cell alone, which a column without has not; or all others. Of all rows."""
    everything = Region.everything(codec.n_codes)
    is_blank = torch.arange(codec.n_codes) == (0 if codec.has_missing else -1)
    if not alone:
        return replace(everything, log_share=everything.log_share.masked_fill(is_blank, -torch.inf))
    nowhere = torch.full((1, 1), _NOWHERE, dtype=torch.float64)
    log_share = everything.log_share.masked_fill(~is_blank, -torch.inf)
    return Region(log_share, nowhere, everything.upper)


def _lies_in(region: Region, codes: Tensor, values: Tensor) -> Tensor:
    """Which cells a region of as many rows holds. Shape: (N,), (N,) -> (N,)."""
    is_code = ~torch.isneginf(region.log_share.gather(-1, codes.long()[:, None])[:, 0])
    if not region.lower.shape[-1]:
        return is_code
    placed = values[:, None]
    is_value = ((placed >= region.lower) & (placed <= region.upper)).any(-1)
    is_point = codes == region.log_share.shape[-1] - 1
    return is_code & (is_value | ~is_point)


def region_of_wholes(codec: ColumnCodec, wanted: WantedPlaces) -> Region:
    """The region of whole numbers within intervals; everything where nothing is known.

    Args:
        codec: Of numbers on a grid, or of levels that are whole numbers.
        wanted: In places of the codec's column.
    """
    n, m = wanted.low.shape
    log_share = np.where(wanted.is_known, -np.inf, 0.0)[:, None].repeat(codec.n_codes, 1)
    if codec.has_missing:
        log_share[wanted.is_known & wanted.missing, 0] = 0.0
        log_share[~wanted.is_known & ~wanted.missing, 0] = -np.inf
    if isinstance(codec, LevelCodec):
        levels = np.array(codec.levels, dtype=np.int64)
        inside = (wanted.low[..., None] <= levels) & (levels <= wanted.high[..., None])
        at = log_share[:, codec.has_missing :]
        at[inside.any(1) & wanted.is_known[:, None]] = 0.0
        nothing = torch.zeros(n, 0, dtype=torch.float64)
        return Region(torch.from_numpy(log_share), nothing, nothing)
    assert isinstance(codec, QuantileCodec | RealCodec), "numbers or levels"
    grid = Grid.of(codec.column)
    assert grid is not None, "only columns that have one are parts of rules"
    low, high = np.maximum(wanted.low, grid.low), np.minimum(wanted.high, grid.high)
    is_empty = (low > high) & wanted.is_known[:, None]
    first, last = np.where(is_empty, grid.low, low), np.where(is_empty, grid.low, high)
    cells = [pd.Series(grid.values(ends.ravel())) for ends in (first, last)]
    lower, upper = (ends.reshape(n, m) for ends in codec.edges(*cells))
    if isinstance(codec, QuantileCodec):
        atoms = codec.codes_between(*cells).reshape(n, m, codec.n_codes) & ~is_empty[..., None]
        log_share[atoms.any(1) & wanted.is_known[:, None]] = 0.0
        is_empty |= atoms.any(-1) & (lower >= upper)  # no other number is between
    log_share[(~is_empty).any(1) & wanted.is_known, -1] = 0.0
    is_free = ~wanted.is_known
    lower, upper = np.where(is_empty, _NOWHERE, lower), np.where(is_empty, np.inf, upper)
    lower[is_free], upper[is_free] = _NOWHERE, np.inf
    lower[is_free, 0] = -np.inf
    ends = torch.from_numpy(lower), torch.from_numpy(np.maximum(lower, upper))
    return Region(torch.from_numpy(log_share), *ends)


DependentRegions = dict[int, DependentRegion | SolvedRegion]
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
    rewriting, places = codec.reduction.rewritten[name], codec.places
    regions: DependentRegions = {
        places[part.name]: DependentRegion(codec, name, part.name, wanted)
        for part in rewriting.parts
        if part.name in places
    }
    parents = _by_order(codec, rewriting.parents, order)
    cells, everywhere = known.reindex(columns=parents), np.ones(1, dtype=bool)
    for parent in reversed(parents):
        if parent not in known:
            found = _solved(codec, rewriting, parent, wanted, everywhere, cells)
            regions = found | regions
    return regions


def regions_of_rows(
    codec: TableCodec,
    frame: pd.DataFrame,
    order: Sequence[int],
    *,
    blanks_missing: bool,
    are_scored: bool = False,
) -> DependentRegions:
    """The regions of rows of which a column that a rule gives is known, and a parent of it is not.

    The unknown parents are proposed where the rule asks for them.

    Args:
        codec: Of the table.
        frame: Typed; blank cells are not known.
        order: Of the columns in the chain rule.
        blanks_missing: A cell that is not known may turn out to be missing.
        are_scored: As of `DependentRegion`.
    """
    frame = frame.reset_index(drop=True)
    regions: DependentRegions = {}
    for rewriting in sorted(codec.reduction.rewritings, key=lambda each: turn(codec, each.column)):
        name, parents = rewriting.column, _by_order(codec, rewriting.parents, order)
        if not parents:
            continue
        blank = np.stack([frame[parent].isna().to_numpy() for parent in parents])
        is_loose = frame[name].notna().to_numpy() & blank.any(axis=0)
        if not is_loose.any():
            continue
        grid = Grid.of(codec.schema[name])
        assert grid is not None, "only columns that have one are rewritten"
        cells = frame[name].where(is_loose)
        wanted = WantedPlaces.of_cells(grid, cells, blanks_missing=blanks_missing)
        regions[codec.places[name]] = DependentRegion(codec, name, name, wanted, are_scored)
        for i, parent in reversed(list(enumerate(parents))):
            is_open = is_loose & blank[i]
            if is_open.any():
                found = _solved(
                    codec, rewriting, parent, wanted, is_open, frame[parents], blanks_missing
                )
                regions = found | regions
    return regions


def exact_columns(regions: Iterable[object]) -> set[str]:
    """The columns on whose numbers what is known of others rests."""
    own = (r.dependent if isinstance(r, EitherRegion) else r for r in regions)
    return {
        part
        for region in own
        if isinstance(region, DependentRegion)
        for parent in region.codec.reduction.rewritten[region.name].parents
        for part in region.codec.reduction.parts_of(parent)
    }


def _by_order(codec: TableCodec, names: Iterable[str], order: Sequence[int]) -> list[str]:
    """Written columns in the order in which the last of their parts is drawn."""

    def drawn_at(name: str) -> int:
        parts = codec.reduction.parts_of(name)
        return max(order.index(codec.places[part]) for part in parts if part in codec.places)

    return sorted(names, key=drawn_at)


def _solved(
    codec: TableCodec,
    rewriting: Rewriting,
    parent: str,
    wanted: WantedPlaces,
    is_open: Mask,
    known: pd.DataFrame,
    may_be_blank: bool = True,
) -> DependentRegions:
    """Where the parts of a parent are proposed; nothing where the rule can not be solved for it.

    Args:
        codec, rewriting, parent, wanted, is_open, may_be_blank: As of `SolvedRegion`.
        known: What is known of all parents, in the order in which they are drawn.
    """
    own = codec.reduction.rewritten.get(parent)
    names = list(known.columns)
    after = names[names.index(parent) + 1 :]
    later = tuple(name for name in after if known[name].isna().any())
    can_solve = all(_is_solvable(codec, rewriting, name) for name in (parent, *later))
    if not can_solve or len(later) > _MOST_LATER or (own is not None and own.parents):
        return {}
    return {
        codec.places[part]: SolvedRegion(
            codec, parent, part, rewriting.column, wanted, is_open, later, known, may_be_blank
        )
        for part in codec.reduction.parts_of(parent)
        if part in codec.places
    }


def turn(codec: TableCodec, name: str) -> int:
    """When what is known of a column is looked at: after those of no rule; orders, which leave more
    open, last, for a parent is proposed by the first rule that asks for it."""
    rewriting = codec.reduction.rewritten.get(name)
    if rewriting is None:
        return 0
    is_an_order = isinstance(rewriting, Residual) and isinstance(rewriting.rule, OrderRule)
    return 2 if is_an_order else 1


def _is_solvable(codec: TableCodec, rewriting: Rewriting, parent: str) -> bool:
    return Grid.of(codec.schema[parent]) is not None and rewriting.can_solve(parent)
