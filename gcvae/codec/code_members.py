"""Codes that several members share: rare levels, numbers that come again.

Which member of its code a cell is does not depend on the rest of the row: it is drawn by the
members' shares. The *position* of a cell says which one: a place in its code's stretch (0, 1), of
which every member has as much as its share. So p(member) = p(code) x share, an exact mass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gcvae.arrays import Codes, Mask, Numbers

_INSIDE = 1e-12


@dataclass(frozen=True)
class CodeMembers:
    """The members of codes 0, 1, ..., in any order.

    Attributes:
        codes: Codes of each member. Shape: (K,).
        weights: Rows of each member, or as many times a constant. Shape: (K,).
    """

    codes: Codes
    weights: Numbers

    @property
    def n_codes(self) -> int:
        """Number of codes."""
        return int(self.codes.max(initial=-1)) + 1

    @cached_property
    def shares(self) -> Numbers:
        """Of each member in its code. Shape: (K,)."""
        totals = np.bincount(self.codes, weights=self.weights, minlength=1)
        shares: Numbers = self.weights / totals[self.codes]
        return shares

    @cached_property
    def middles(self) -> Numbers:
        """The position in the middle of each member's part. Shape: (K,)."""
        middles = np.empty(len(self.codes))
        middles[self._order] = self._ends - 0.5 * self.shares[self._order]
        middles -= self.codes
        return middles

    def at(self, codes: Codes, positions: Numbers) -> Codes:
        """Which member each cell is; -1 where its code is below 0. Shape: (n,) twice -> (n,)."""
        inside = np.clip(positions, _INSIDE, 1.0 - _INSIDE)
        places = np.searchsorted(self._ends, np.maximum(codes, 0) + inside, side="right")
        return np.where(codes >= 0, np.append(self._order, -1)[places], -1)

    def means(self, values: Numbers) -> Numbers:
        """Returns the mean of each code's members, by their shares. Shape: (K,) -> (n_codes,)."""
        return np.bincount(self.codes, weights=self.shares * values).astype(np.float64)

    def log_shares(self, chosen: Mask) -> Numbers:
        """log of the share of the chosen members in each code. Shape: (K,) -> (n_codes,)."""
        shares = np.bincount(self.codes, weights=self.shares * chosen)
        counts = np.bincount(self.codes, weights=chosen)
        is_whole = counts == np.bincount(self.codes)
        with np.errstate(divide="ignore"):
            log_shares: Numbers = np.where(is_whole & (counts > 0), 0.0, np.log(shares))
        return log_shares

    def positions_among(self, chosen: Mask, codes: Codes, u: Numbers) -> Numbers:
        """Positions of members drawn among the chosen ones of each code, at uniform noise u.

        Shape: (K,), (n,), (n,) -> (n,).
        """
        weights = np.where(chosen, self.shares, 0.0)[self._order]
        total = np.concatenate([[0.0], np.cumsum(weights)])
        in_order = self.codes[self._order]
        first, last = (np.searchsorted(in_order, codes, side) for side in ("left", "right"))
        wanted = total[first] + u * (total[last] - total[first])
        member = np.searchsorted(total[1:], wanted, side="right").clip(first, last - 1)
        positions: Numbers = self.middles[self._order[member]]
        return positions

    def to_json(self) -> dict[str, list[float]]:
        """Returns the document that `from_json` reads."""
        return {"codes": self.codes.tolist(), "weights": self.weights.tolist()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Returns the members of a document that `to_json` wrote."""
        return cls(np.asarray(document["codes"], np.int64), np.asarray(document["weights"], float))

    @cached_property
    def _order(self) -> Codes:
        """The members, code by code."""
        order: Codes = np.argsort(self.codes, kind="stable")
        return order

    @cached_property
    def _ends(self) -> Numbers:
        """code + share of the members up to each, code by code."""
        codes, shares = self.codes[self._order], self.shares[self._order]
        total = np.cumsum(shares)
        before = np.concatenate([[0.0], total])[np.searchsorted(codes, codes)]
        ends: Numbers = codes + np.minimum(total - before, 1.0)
        is_last = np.append(codes[1:] != codes[:-1], True)
        return np.where(is_last, codes + 1.0, ends)
