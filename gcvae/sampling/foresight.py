"""Codes of a function's columns drawn in view of what is known of those after them.

Where a function's column y comes after its parents and is conditioned, few codes of a parent lead
to a possible y: of a hundred destinations one has the distance that is known. Where a parent comes
last, few codes of y do. So the codes before it are drawn with weights h, of those that can still
lead there 1, of the others little, and what that favours is taken out of the particle's weight:

    draw k from p(k) h(k) / Z,      weight by Z / h(k),      Z = sum_k p(k) h(k)

Any positive h leaves the weighted particles those of the condition.

Source: look-ahead in sequential importance sampling; Lin, Chen and Liu 2013.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcvae.codec.region import Drawn, Region, WalkedColumn
from gcvae.model.decoders import GenerativeModel
from gcvae.model.level_functions import LevelFunction

_LOG_SILENT = math.log(0.1)
"""log h of a code that the function says nothing of."""
_LEAST = 1e-4
"""h of a code that leads to no possible y; more where the function has more exceptions."""


@dataclass(frozen=True)
class ForeseenRegion:
    """A region of one of a function's columns, in view of the regions of those after it.

    Attributes:
        own: The column's own region.
        function: Of which a later column is conditioned.
        pairs: Its pairs, each code of this column in a line of its own. Shape: (m, r + 1).
        at: Which of the function's columns this one is.
        came: Those before it.
        possible: Which codes of those after it are possible, as the pairs have them. Shape: (n, K)
            or (1, K) each.
    """

    own: Region
    function: LevelFunction
    pairs: Tensor
    at: int
    came: tuple[int, ...]
    possible: Mapping[int, Tensor]

    def take(self, rows: Tensor | None) -> ForeseenRegion:
        """The region of these rows; of all rows where it is theirs."""
        if rows is None:
            return self
        taken = {i: p if len(p) == 1 else p[rows] for i, p in self.possible.items()}
        return replace(self, own=self.own.take(rows), possible=taken)

    def draw(self, column: WalkedColumn, noise: Tensor, codes: Tensor, values: Tensor) -> Drawn:
        """A cell for each of N particles, and the log of Z / h."""
        log_h = self._log_h(codes)
        drawn = column.draw_within(replace(self.own, log_share=self.own.log_share + log_h), noise)
        taken = log_h.gather(-1, drawn.codes.long()[:, None])[:, 0]
        return replace(drawn, log_prob=drawn.log_prob - taken)

    def _log_h(self, codes: Tensor) -> Tensor:
        """log h of the column's codes, given the columns that came. Shape: (N, D) -> (N, K)."""
        pairs = self.pairs
        said = torch.ones(len(codes), len(pairs), dtype=torch.bool)
        for i in self.came:
            came = self.function.classes(codes[:, self.function.columns[i], None])
            said &= came == pairs[:, i]
        fits = said.clone()
        for i, possible in self.possible.items():
            fits &= possible[:, pairs[:, i]]
        shape = len(codes), self.own.log_share.shape[-1]
        own = pairs[:, self.at]
        is_said, is_fit = (
            torch.zeros(shape).index_add(1, own, flags.float()) > 0 for flags in (said, fits)
        )
        log_break = math.log(max(self.function.exceptions, _LEAST))
        silent = torch.where(is_said, log_break, torch.tensor(_LOG_SILENT, dtype=torch.float64))
        is_free = torch.stack([p.all(-1).expand(len(codes)) for p in self.possible.values()]).all(0)
        return torch.where(is_fit | is_free[:, None], 0.0, silent)


def foreseen(
    model: GenerativeModel, order: Sequence[int] | None, regions: Sequence[object]
) -> dict[int, ForeseenRegion]:
    """The regions of a function's columns, parents or y, of which a later one is conditioned.

    A column of several such functions looks ahead to the one with the fewest exceptions.
    """
    found: dict[int, ForeseenRegion] = {}
    if order is None:
        return found
    rank = {j: place for place, j in enumerate(order)}
    for function in reversed(model.decoder.functions):
        columns = function.columns
        for at, j in enumerate(columns):
            n_codes = model.marginals.columns[j].n_codes
            own = Region.everything(n_codes) if regions[j] is None else regions[j]
            later = {i: regions[k] for i, k in enumerate(columns) if rank[k] > rank[j]}
            is_asked = any(isinstance(region, Region) for region in later.values())
            if j in found or not is_asked or not isinstance(own, Region):
                continue
            found[j] = ForeseenRegion(
                own,
                function,
                torch.from_numpy(function.pairs_by_code(at, n_codes)),
                at,
                tuple(i for i, k in enumerate(columns) if rank[k] < rank[j]),
                {
                    i: _possible(function, ~torch.isneginf(r.log_share))
                    for i, r in later.items()
                    if isinstance(r, Region)
                },
            )
    return found


def _possible(function: LevelFunction, codes: Tensor) -> Tensor:
    """Which codes are possible, as the function's pairs have them. Shape: (n, K) -> (n, K or 2)."""
    if function.blanks is None:
        return codes
    return torch.stack([codes[:, 0], codes[:, 1:].any(-1)], dim=-1)
