"""Integer codes that several members, such as rare levels, share.

    p(member) = p(code) x share of the member in its code

Given the code, the member is independent of the rest of the row. A position in (0, 1) selects one
of a code's members: each member has an interval whose length is its share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gcvae.arrays import Codes, Mask, Numbers

_INSIDE = 1e-12


@dataclass(frozen=True)
class CodeMembers:
    """Assigns each of K members, such as rare levels (categories), to an integer code that several
    may share. A position in (0, 1) selects one of the members of a code.

    Attributes:
        codes: Code of each member. Shape: (K,).
        weights: Number of rows of each member, up to a constant factor. Shape: (K,).
    """

    codes: Codes
    weights: Numbers

    @property
    def n_codes(self) -> int:
        """Number of codes, 0 to n_codes - 1, to which members are assigned."""
        return int(self.codes.max(initial=-1)) + 1

    @cached_property
    def shares(self) -> Numbers:
        """Share of each of the K members in the rows of its code. Shape: (K,)."""
        totals = np.bincount(self.codes, weights=self.weights, minlength=1)
        return self.weights / totals[self.codes]

    @cached_property
    def middles(self) -> Numbers:
        """Midpoint of the interval of positions that select each member. Shape: (K,)."""
        middles = np.empty(len(self.codes))
        middles[self._order] = self._ends - 0.5 * self.shares[self._order]
        middles -= self.codes
        return middles

    def member_at(self, codes: Codes, positions: Numbers) -> Codes:
        """Returns, for n rows, the index of the member that a code and a position in (0, 1) select;
        -1 for a negative code. Shape: (n,), (n,) -> (n,)."""
        inside = np.clip(positions, _INSIDE, 1.0 - _INSIDE)
        at = np.searchsorted(self._ends, np.maximum(codes, 0) + inside, side="right")
        return np.where(codes >= 0, np.append(self._order, -1)[at], -1)

    def log_shares(self, chosen: Mask) -> Numbers:
        """Returns, for each code, the log of the share of its rows that have one of the chosen
        members. `chosen` is a mask of the K members. Shape: (K,) -> (n_codes,)."""
        shares = np.bincount(self.codes, weights=self.shares * chosen)
        counts = np.bincount(self.codes, weights=chosen)
        is_whole = counts == np.bincount(self.codes)
        with np.errstate(divide="ignore"):
            log_shares: Numbers = np.where(is_whole & (counts > 0), 0.0, np.log(shares))
        return log_shares

    def positions_among(self, chosen: Mask, codes: Codes, u: Numbers) -> Numbers:
        """Returns, for each of n codes, a position that selects one of its chosen members, sampled
        in proportion to their shares. Shape: (n,).

        Args:
            chosen: Mask of the K members that may be selected. Shape: (K,).
            codes: Codes. Shape: (n,).
            u: Uniform random numbers in (0, 1). Shape: (n,).
        """
        weights = np.where(chosen, self.shares, 0.0)[self._order]
        total = np.concatenate([[0.0], np.cumsum(weights)])
        in_order = self.codes[self._order]
        first, last = (np.searchsorted(in_order, codes, side) for side in ("left", "right"))
        wanted = total[first] + u * (total[last] - total[first])
        member = np.searchsorted(total[1:], wanted, side="right").clip(first, last - 1)
        positions: Numbers = self.middles[self._order[member]]
        return positions

    @cached_property
    def _order(self) -> Codes:
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def _ends(self) -> Numbers:
        """Code plus upper end of the interval of positions of each member, in ascending order. A
        search for code + position in this array finds the member. Shape: (K,)."""
        codes, shares = self.codes[self._order], self.shares[self._order]
        total = np.cumsum(shares)
        before = np.concatenate([[0.0], total])[np.searchsorted(codes, codes)]
        ends: Numbers = codes + np.minimum(total - before, 1.0)
        is_last = np.append(codes[1:] != codes[:-1], True)
        return np.where(is_last, codes + 1.0, ends)
