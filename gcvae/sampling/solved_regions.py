"""Parents of rules that are not known, proposed near what is known of what follows from them.

A free draw hardly ever meets a sharp rule: eight of ten particles draw a parent among the
solutions, one leaves it blank, where the rule asks nothing, and the weights are those of a draw
from the model. Where a later parent is unknown, too, the solutions are those with some value of
that one. Where the parent follows from others itself, what is asked of it asks for these.

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
from gcvae.codec.region import Drawn, WalkedColumn
from gcvae.rules.grids import Grid
from gcvae.rules.residuals import Residual
from gcvae.rules.solutions import clock_of
from gcvae.sampling.asked_dates import AskedDate
from gcvae.sampling.deductions import filled
from gcvae.sampling.wanted_places import (
    Places,
    WantedPlaces,
    blanks_region,
    lies_in,
    places_of_rows,
    region_of_wholes,
)

if TYPE_CHECKING:
    from gcvae.codec.table_codec import TableCodec
    from gcvae.rules.residuals import Rewriting

_PROPOSED = 0.8
"""Share of the particles that draw a solved parent among its solutions."""
_LEFT_BLANK = 0.1
"""Share of those that leave it blank, if it can be; half of them where it has no solution."""
_FAR_LESS = 20.0
"""Nats by which solutions that are less likely than a blank parent are none: they lie beyond all
that the parent can be."""
_LEAST_LOG_MASS = -600.0
_LARGEST_NOISE = 1.0 - 1e-15


@dataclass(frozen=True)
class Asked:
    """What is known of a column that a rule gives asks of one of its parents.

    Attributes:
        codec: Of the table.
        name: The column that the rule gives.
        parent: Its parent.
        wanted: What is known of the column, or what another rule asks of it.
        known: What is known of the rule's parents, typed. n rows, or one for all.
        guessed: The same, and what follows from known cells.
        later: Those parents that are not drawn yet where this is asked.
    """

    codec: TableCodec
    name: str
    parent: str
    wanted: WantedPlaces | Asked
    known: pd.DataFrame
    guessed: pd.DataFrame
    later: tuple[str, ...]

    def __len__(self) -> int:
        """The number of rows; one for all."""
        return len(self.known)

    @property
    def says_more(self) -> Mask:
        """Of which rows something is known. Shape: (n,) or (1,)."""
        return np.logical_and(self.wanted.says_more, ~self._is_open_round())

    def _is_open_round(self) -> Mask:
        """Where a parent that is drawn later is not known, and times of day have no ends between
        which it would leave something out. Shape: (n,) or (1,)."""
        rewriting = self.codec.reduction.rewritten[self.name]
        is_round = (
            isinstance(rewriting, Residual) and clock_of(rewriting.prediction.form) is not None
        )
        is_unknown = self.guessed[list(self.later)].isna().to_numpy()
        found: Mask = np.logical_or.reduce(is_unknown, axis=1) & is_round
        return found

    def take(self, rows: npt.NDArray[np.int64]) -> Asked:
        """What is asked in these rows."""
        known, guessed = (
            part.iloc[rows].reset_index(drop=True) for part in (self.known, self.guessed)
        )
        return replace(self, wanted=self.wanted.take(rows), known=known, guessed=guessed)

    def of_particles(self, codes: Tensor, values: Tensor) -> WantedPlaces:
        """Places of the parent for each particle, of which earlier columns are drawn.

        Shape: (N, D) twice.
        """
        if len(self) < len(codes):  # the same is known of all rows
            return self.take(np.zeros(len(codes), dtype=np.int64)).of_particles(codes, values)
        wanted = self.wanted.of_particles(codes, values)
        rewriting = self.codec.reduction.rewritten[self.name]
        names = [name for name in rewriting.parents if name != self.parent]
        drawn = self.codec.written(names, codes, values)
        others = {
            name: self.guessed[name]
            if name in self.later
            else filled(self.known[name], drawn[name])
            for name in names
        }
        low, high = self._solutions(rewriting, others, wanted)
        is_known = wanted.is_known & ~self._is_open_round()
        return WantedPlaces(low, high, is_known, np.zeros_like(is_known))

    def _solutions(
        self,
        rewriting: Rewriting,
        others: Mapping[str, pd.Series[Any]],
        wanted: WantedPlaces,
    ) -> tuple[Places, Places]:
        """Where the parent lies: what is drawn later is anything between its column's limits.

        The rule rises or falls with each parent, so its ends are at theirs.
        """
        column, ends = self.codec.schema[self.parent], []
        unknown = [name for name in self.later if others[name].isna().any()]
        for corner in product(("low", "high"), repeat=len(unknown)):
            limits = {
                name: filled(others[name], self._limit(name, end, len(wanted.low)))
                for name, end in zip(unknown, corner, strict=True)
            }
            frame = pd.DataFrame({**others, **limits}, index=self.known.index)
            ends.append(rewriting.solutions(column, frame, wanted.low, wanted.high))
        lows, highs = zip(*ends, strict=True)
        return np.minimum.reduce(lows), np.maximum.reduce(highs)

    def _limit(self, name: str, end: str, n: int) -> pd.Series[Any]:
        """The lowest or the highest cell of a column, n times."""
        grid = Grid.of(self.codec.schema[name])
        assert grid is not None, "it is proposed, so it has one"
        return pd.Series(grid.values(np.full(n, getattr(grid, end))))


@dataclass(frozen=True)
class SolvedRegion:
    """Where a parent that is not known is proposed, so that a sharp rule can be met.

    Attributes:
        asked: Of the parent.
        part: The column of the reduced table, of those that stand for the parent.
        is_open: Where the parent is to be proposed. Shape: (n,), or (1,).
        may_be_blank: The parent may turn out to be missing.
    """

    asked: Asked | AskedDate
    part: str
    is_open: Mask
    may_be_blank: bool = True

    @property
    def has_density(self) -> bool:
        """False: nothing is said of the parent itself."""
        return False

    @property
    def says_more(self) -> Mask:
        """In which rows the parent is asked for. Shape: (n,) or (1,)."""
        return self.is_open & self.asked.says_more

    def take(self, rows: Tensor | None) -> SolvedRegion:
        """The region of these rows."""
        if rows is None:
            return self
        at = places_of_rows(rows, len(self.asked))
        is_open = self.is_open if len(self.is_open) == 1 else self.is_open[at]
        return replace(self, asked=self.asked.take(at), is_open=is_open)

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell of the parent for each particle, and log p - log q of its proposal q."""
        codec, parent = self.asked.codec, self.asked.parent
        is_open = np.broadcast_to(self.is_open, len(noise))
        solved = self.asked.of_particles(codes, values)
        low, high, own = solved.low, solved.high, codec.column_codec(self.part)
        if parent in codec.reduction.rewritten:
            split = codec.reduction.rewritten[parent]
            earlier = codec.earlier(split, self.part, codes, values)
            low, high = split.part_places(self.part, earlier, low, high)
        everywhere = np.ones(len(noise), dtype=bool)
        region = region_of_wholes(own, WantedPlaces(low, high, everywhere, ~everywhere))
        near = column.draw_within(region, (noise / _PROPOSED).clamp(max=_LARGEST_NOISE))
        blank = column.draw_within(blanks_region(own, alone=True), noise)
        is_asked = torch.from_numpy(is_open & solved.is_known)
        can_leave = is_asked & (blank.log_prob > _LEAST_LOG_MASS) & self.may_be_blank
        least = torch.where(can_leave, blank.log_prob - _FAR_LESS, _LEAST_LOG_MASS)
        can_solve = is_asked & (near.log_prob > least.clamp(min=_LEAST_LOG_MASS))
        share = torch.where(can_solve, _PROPOSED, 0.0).double()
        left = torch.where(can_leave, torch.where(can_solve, _LEFT_BLANK, 0.5), 0.0).double()
        is_near, is_left = noise < share, (noise >= share) & (noise < share + left)
        rest = (noise - share - left) / (1.0 - share - left)
        everything = None if self.may_be_blank else blanks_region(own, alone=False)
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
