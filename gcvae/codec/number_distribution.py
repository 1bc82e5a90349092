"""F of a column's numbers: a smooth curve through few of their quantiles, exactly invertible.

Where numbers come again, F has a step more at each (`RepeatedNumbers`), if left-out rows say so.

Where numbers lie in clusters with wide gaps between them, each cluster has a curve of its own, and
a gap hardly any mass. Between its knots F is a monotone rational quadratic spline; beyond them its
tails fall by a power.

As many knots as are seen in one row in a few would copy the table's gaps, which no other row has:
how many there are is what rows that did not place them say.

Source: Gregory and Delbourgo (1982), "Piecewise rational quadratic interpolation to monotonic
data"; slopes after Fritsch and Butland (1984).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.codec.atom_cells import AtomCells
from gcvae.codec.repeated_numbers import LEAST_ROWS, RepeatedNumbers

MOST_INTERVALS = 512
"""Quantile intervals of F, those aside that its outermost ones are halved into."""
_LADDER = tuple(sorted({2**i for i in range(10)} | {3 * 2**i for i in range(8)}))
"""Numbers of intervals that are tried: 1, 2, 3, 4, 6, 8, ... 512."""
LEAST_ROWS_PER_INTERVAL = 4
"""Fewer rows tell of themselves only."""
_FOLDS = 5
_MOST_JUDGES = 10_000
"""Rows that judge the number of intervals, a random sample of all."""
_CLUSTER_NUMBERS = 12
"""Distinct numbers on either side of a gap, at least."""
_GAP = 30.0
"""A gap is wider than so many mean distances between those numbers, the larger of both sides."""
_GAP_ROWS = 0.02
"""Rows for which half a gap has mass."""
_LEAST_GAIN = 0.01
"""Nats a row by which steps at repeated numbers are better than the smooth curve alone."""
_LEAST_CELL = 1e-13
"""Mass of S in a rounding cell; a double tells no place in a smaller one."""
_LEAST_MASS = 1e-12
"""Of a rounding cell; a smaller one is lost beside F, and its middle's density stands for it."""
_LEAST_STEP = 1e-250
"""Between two positions; a smaller one would make the slope of F infinite."""
_FARTHEST = 1e150
"""Distance beyond the knots from which numbers are one: its square is a double."""
_LEAST_SLOPE = 1e-305
_REACH = 3.0
"""Times the mean's distance from the inner knot at which a density that falls evenly is 0."""
_TINY = float(np.finfo(np.float64).tiny)
_NONE = np.zeros(0)


@dataclass(frozen=True)
class KnotLimits:
    """What knots may tell of rows.

    Attributes:
        rows: As many lie between two knots; with more than one no row says where F ends. With more
            than LEAST_ROWS so many have a repeated number, too.
        low, high: No knot is beyond.
    """

    rows: int = 1
    low: float = -np.inf
    high: float = np.inf

    def are_repeated(self, counts: Codes) -> Mask:
        """Returns the mask of the numbers that have a step of their own, by how many rows have
        each. Shape: (k,)."""
        return counts >= max(LEAST_ROWS, self.rows)

    def ends(self, edges: Numbers, found: Numbers, counts: Codes, kept: Codes) -> Numbers:
        """Returns the kept edges, the two outermost where they tell of no single row.

        Numbers that thin out evenly up to there have the mean of those in the interval.
        """
        knots = edges[kept]
        is_shared = counts.sum() >= self.rows
        if self.rows < 2 or (is_shared and len(found) < 2):
            return knots
        if not is_shared:
            ends = np.array([-np.inf, np.inf])
        elif len(kept) < 3:
            mean = np.average(found, weights=counts)
            scale = np.abs(found - mean).max()  # squares of numbers beyond 1e154 overflow
            variance = np.average(((found - mean) / scale) ** 2, weights=counts)
            spread = scale * np.sqrt(6.0 * variance)
            ends = np.array([mean - spread, mean + spread])
        else:
            parts = slice(kept[0], kept[1]), slice(kept[-2], kept[-1])
            means = [np.average(found[part], weights=counts[part]) for part in parts]
            inner = knots[[1, -2]]
            ends = inner + _REACH * (np.array(means) - inner)
        low, high = np.clip(ends, self.low, self.high)
        if not (np.isfinite([low, high]).all() and low < high):  # a column without limits
            return knots
        return np.concatenate([[low], knots[1:-1], [high]])

    def apart(self, below: Codes, kept: Codes) -> Codes:
        """Returns the kept edges between each two of which there are enough rows."""
        if self.rows < 2 or np.diff(below[kept]).min(initial=self.rows) >= self.rows:
            return kept
        places, last = [int(kept[0])], below[kept[-1]]
        for at in kept[1:-1].tolist():
            if below[at] - below[places[-1]] >= self.rows <= last - below[at]:
                places.append(at)
        return np.array([*places, kept[-1]])


NO_LIMITS = KnotLimits()


@dataclass(frozen=True)
class NumberDistribution:
    """F over positions on a line, and its inverse, both by way of normal scores q = Phi^-1(F(x)).

    Attributes:
        knots: Positions, ascending. Shape: (K,).
        heights: F at the knots, from t to 1 - t; at distance d beyond them t / (1 + d)^2 is left.
        atom_cells: What F passes over; knots and F are of the axis without these. None where
            numbers are not rounded.
        repeated: Numbers at which F has a step more; then knots and heights are of the smooth S.
    """

    knots: Numbers
    heights: Numbers
    atom_cells: AtomCells | None = None
    repeated: RepeatedNumbers | None = None

    @classmethod
    def fit(
        cls,
        found: Numbers,
        counts: Codes,
        half_step: float = np.nan,
        atoms: Numbers = _NONE,
        limits: KnotLimits = NO_LIMITS,
    ) -> Self:
        """Returns the F of distinct positions and how many rows have each.

        The number of intervals is the one under which left-out rows have the highest likelihood;
        so is it said whether there are steps at repeated numbers.

        Args:
            found: Ascending. Shape: (k,).
            counts: Shape: (k,).
            half_step: Half of what positions are rounded to; NaN where they are not.
            atoms: Other positions, ascending, whose cells F passes over. Shape: (a,).
            limits: Limits of the knots.
        """
        is_cut = len(atoms) > 0 and half_step > 0
        cells = AtomCells(tuple(atoms.tolist()), half_step) if is_cut else None
        if cells is not None:
            found = cells.taken_out(found)
            low, high = cells.taken_out(np.array([limits.low, limits.high])).tolist()
            limits = replace(limits, low=low, high=high)
        found, counts = _apart(found, counts)
        n_intervals, has_steps = _best_curve(found, counts, half_step, limits)
        make = cls._with_steps if has_steps else cls._smooth
        return replace(make(found, counts, n_intervals, half_step, limits), atom_cells=cells)

    @classmethod
    def _smooth(
        cls, found: Numbers, counts: Codes, n_intervals: int, half_step: float, limits: KnotLimits
    ) -> Self:
        """`_with_intervals`; nothing is to be known of rounding."""
        return cls._with_intervals(found, counts, n_intervals, limits)

    @classmethod
    def _with_steps(
        cls, found: Numbers, counts: Codes, n_intervals: int, half_step: float, limits: KnotLimits
    ) -> Self:
        """S of the numbers, each repeated one counted once, and a step more at these."""
        is_repeated = limits.are_repeated(counts)
        once = np.where(is_repeated, 1, counts)
        smooth = cls._with_intervals(found, once, n_intervals, limits, counts)
        positions = found[is_repeated]
        starts, ends = (ndtr(smooth.scores_at(positions + h)) for h in (-half_step, half_step))
        is_wide = ends - starts > _LEAST_CELL
        shares = (counts[is_repeated] - 1) / counts.sum()
        kept = (x[is_wide] for x in (shares, starts, ends))
        return replace(smooth, repeated=RepeatedNumbers(*kept) if is_wide.any() else None)

    @classmethod
    def _with_intervals(
        cls,
        found: Numbers,
        counts: Codes,
        n_intervals: int,
        limits: KnotLimits = NO_LIMITS,
        rows: Codes | None = None,
    ) -> Self:
        """Returns the F whose knots have about as many rows between them, fewer towards both ends.

        A knot is the edge of a position's cell, half way to its neighbour; the outermost cells are
        as wide as their neighbours. The first and the last interval are halved, by rows, as often
        as there are enough of them: tails are nowhere near straight. Where `rows` are not the
        counts, limits are of these.
        """
        gaps = _gaps(found)
        if len(gaps):
            return cls._of_clusters(found, counts, n_intervals, limits, rows, gaps)
        if len(found) < 2:
            middle = float(found[0]) if len(found) else 0.0
            knots = np.array([middle - 0.5, middle + 0.5])
            if len(found):
                knots = limits.ends(knots, found, counts, np.array([0, 1]))
            return cls(knots, np.array([0.25, 0.75]))
        middles = (found[1:] + found[:-1]) / 2.0
        first, last = 2 * found[0] - middles[0], 2 * found[-1] - middles[-1]
        edges = np.concatenate([[first], middles, [last]])
        below = np.concatenate([[0], np.cumsum(counts)])  # rows, whole numbers: nothing is rounded
        n = int(below[-1])
        size = n / n_intervals
        n_halves = max(int(np.log2(size / LEAST_ROWS_PER_INTERVAL)), 0)
        halves = size * 0.5 ** np.arange(1, n_halves + 1)
        wanted = [np.linspace(0.0, n, n_intervals + 1), halves, n - halves]
        kept = np.unique(_nearest(below, np.concatenate(wanted)))
        kept = limits.apart(below if rows is None else np.cumsum([0, *rows]), kept)
        tail = 0.5 / (n + 1)
        knots = limits.ends(edges, found, counts, kept)
        return cls(knots, tail + (1.0 - 2.0 * tail) * below[kept] / n)

    @classmethod
    def _of_clusters(
        cls,
        found: Numbers,
        counts: Codes,
        n_intervals: int,
        limits: KnotLimits,
        rows: Codes | None,
        gaps: Codes,
    ) -> Self:
        """Returns the F that is one curve in each cluster, by its share of the rows.

        Args:
            found, counts, n_intervals, limits, rows: As `_with_intervals` has them.
            gaps: The first number behind each gap. Shape: (m,).
        """
        middles = (found[gaps - 1] + found[gaps]) / 2.0
        ends = np.concatenate([[limits.low], middles, [limits.high]])
        n, below = int(counts.sum()), 0
        knots, heights = [], []
        for at, part in enumerate(np.split(np.arange(len(found)), gaps)):
            of_part = int(counts[part].sum())
            own = replace(limits, low=ends[at], high=ends[at + 1])
            n_own = max(round(n_intervals * of_part / n), 1)
            own_rows = None if rows is None else rows[part]
            curve = cls._with_intervals(found[part], counts[part], n_own, own, own_rows)
            rise = (curve.heights - curve.heights[0]) / np.ptp(curve.heights)
            first, last = _GAP_ROWS * (at > 0), _GAP_ROWS * (at < len(gaps))
            knots.append(curve.knots)
            heights.append(below + first + (of_part - first - last) * rise)
            below += of_part
        tail = 0.5 / (n + 1)
        return cls(np.concatenate(knots), tail + (1.0 - 2.0 * tail) * np.concatenate(heights) / n)

    @cached_property
    def _secants(self) -> Numbers:
        """Slopes of the straight lines between knots. Shape: (K - 1,)."""
        secants: Numbers = np.maximum(np.diff(self.heights) / np.diff(self.knots), _LEAST_SLOPE)
        return secants

    @cached_property
    def _ends(self) -> Numbers:
        """Slopes of F at both ends of each interval, per its secant's. Shape: (2, K - 1)."""
        if len(self.knots) < 3:
            return np.ones((2, len(self.knots) - 1))
        slopes = _slopes(self.knots, self._secants)
        return np.stack([slopes[:-1], slopes[1:]]) / self._secants

    @cached_property
    def _knot_scores(self) -> Numbers:
        """Normal scores of the knots, infinite ends around them. Shape: (K + 2,)."""
        scores = ndtri(self.heights)
        scores = scores if self.repeated is None else self.repeated.raised(scores)
        return np.concatenate([[-np.inf], scores, [np.inf]])

    def scores_at(self, positions: Numbers) -> Numbers:
        """q = Phi^-1(F(x)), from the nearer tail. Shape: (n,)."""
        if self.atom_cells is not None:
            positions = self.atom_cells.taken_out(positions)
        low, high, tail = self.knots[0], self.knots[-1], self.heights[0]
        below = tail / (1.0 + np.clip(low - positions, 0.0, _FARTHEST)) ** 2
        above = tail / (1.0 + np.clip(positions - high, 0.0, _FARTHEST)) ** 2
        u = np.where(positions < low, below, self._inside(positions))
        scores: Numbers = np.where(positions > high, -ndtri(above), ndtri(u))
        return scores if self.repeated is None else self.repeated.raised(scores)

    def positions_at(self, scores: Numbers) -> Numbers:
        """x = F^-1(Phi(q)). Shape: (n,)."""
        scores = self._smooth_scores(scores)
        u, tail = ndtr(scores), self.heights[0]
        at, t = self._places(u)
        inside = self.knots[at] + (self.knots[at + 1] - self.knots[at]) * t
        below = self.knots[0] + 1.0 - np.sqrt(tail / np.maximum(u, _TINY))
        above = self.knots[-1] - 1.0 + np.sqrt(tail / np.maximum(ndtr(-scores), _TINY))
        positions: Numbers = np.where(u < tail, below, np.where(u > 1.0 - tail, above, inside))
        return positions if self.atom_cells is None else self.atom_cells.put_back(positions)

    def log_slopes(self, scores: Numbers) -> Numbers:
        """log F'(x) where F(x) = Phi(q). Shape: (n,).

        At distance d beyond the knots the tail is t / (1 + d)^2, its slope 2 u sqrt(u / t).
        """
        log_steps = 0.0 if self.repeated is None else self.repeated.log_slopes(scores)
        scores = self._smooth_scores(scores)
        at, t = self._places(ndtr(scores))
        first, last = self._ends[:, at]
        q = t * (1.0 - t)
        bent = last * t**2 + 2.0 * q + first * (1.0 - t) ** 2
        slopes = np.maximum(self._secants[at] * bent, _LEAST_SLOPE)  # 0 beside a far steeper step
        inside = np.log(slopes) - 2.0 * np.log1p((first + last - 2.0) * q)
        log_u, log_t = log_ndtr(-np.abs(scores)), np.log(self.heights[0])
        in_tail = np.log(2.0) + 1.5 * log_u - 0.5 * log_t
        log_slopes: Numbers = np.where(log_u < log_t, in_tail, inside) + log_steps
        return log_slopes

    def are_repeated(self, scores: Numbers) -> Mask:
        """Returns whether F has these normal scores in the cell of a repeated number.
        Shape: (n,)."""
        if self.repeated is None:
            return np.zeros(len(scores), dtype=bool)
        return self.repeated.are_inside(scores)

    def _smooth_scores(self, scores: Numbers) -> Numbers:
        """Normal scores of S where F has these. Shape: (n,)."""
        return scores if self.repeated is None else self.repeated.lowered(scores)

    def bins(self, scores: Numbers) -> Numbers:
        """Normal scores of the knots around each number, infinite at the tails. (n,) -> (n, 2)."""
        at = np.searchsorted(self.heights, ndtr(self._smooth_scores(scores)), side="right")
        return np.stack([self._knot_scores[at], self._knot_scores[at + 1]], axis=-1)

    def log_likelihood(self, positions: Numbers, half_step: float) -> float:
        """Sum of the log density of positions, or of the mean density in their rounding cells."""
        if not half_step > 0.0:
            return float(self.log_slopes(self.scores_at(positions)).sum())
        low, high = (self.scores_at(positions + step) for step in (-half_step, half_step))
        is_above = low > 0.0  # there the upper tail has the digits
        masses = ndtr(np.where(is_above, -low, high)) - ndtr(np.where(is_above, -high, low))
        is_wide = masses > _LEAST_MASS
        log_densities = np.empty(len(positions))
        log_densities[is_wide] = np.log(masses[is_wide] / (2.0 * half_step))
        log_densities[~is_wide] = self.log_slopes(self.scores_at(positions[~is_wide]))
        return float(log_densities.sum())

    def _inside(self, positions: Numbers) -> Numbers:
        """F between the knots. Shape: (n,).

        With t the place in the interval, 0 to 1, and r_0, r_1 the slopes at its ends per the
        secant's, F rises by its part (t^2 + r_0 t (1 - t)) / (1 + (r_0 + r_1 - 2) t (1 - t)).
        """
        inside = np.clip(positions, self.knots[0], self.knots[-1])
        at = np.searchsorted(self.knots, inside, side="right") - 1
        at = np.clip(at, 0, len(self.knots) - 2)
        t = (inside - self.knots[at]) / (self.knots[at + 1] - self.knots[at])
        first, last = self._ends[:, at]
        q = t * (1.0 - t)
        part = (t**2 + first * q) / (1.0 + (first + last - 2.0) * q)
        low, high = self.heights[at], self.heights[at + 1]
        heights: Numbers = np.clip(low + (high - low) * part, low, high)
        return heights

    def _places(self, u: Numbers) -> tuple[Codes, Numbers]:
        """Returns the interval of each height, and the place in it from 0 to 1: `_inside`, solved
        for t.

        With p the part of the rise: a t^2 + b t = p, a = 1 - r_0 + p e, b = r_0 - p e,
        e = r_0 + r_1 - 2; the root that has no cancellation. Shape: (n,) twice.
        """
        at = np.clip(np.searchsorted(self.heights, u, side="right") - 1, 0, len(self.knots) - 2)
        low, high = self.heights[at], self.heights[at + 1]
        part = np.clip((u - low) / (high - low), 0.0, 1.0)
        first, last = self._ends[:, at]
        bend = part * (first + last - 2.0)
        a, b = 1.0 - first + bend, first - bend
        root = np.sqrt(np.maximum(b * b + 4.0 * a * part, 0.0))
        t = np.where(part > 0.0, 2.0 * part / np.maximum(b + root, _TINY), 0.0)
        return at, np.clip(t, 0.0, 1.0)

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `from_json` reads."""
        return {
            "knots": self.knots.tolist(),
            "heights": self.heights.tolist(),
            "atom_cells": None if self.atom_cells is None else asdict(self.atom_cells),
            "repeated": None if self.repeated is None else self.repeated.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Returns the F of a document that `to_json` wrote."""
        knots, heights = (np.asarray(document[name], float) for name in ("knots", "heights"))
        cut = document["atom_cells"]
        cells = None if cut is None else AtomCells(tuple(cut["atoms"]), cut["half_step"])
        steps = document["repeated"]
        repeated = None if steps is None else RepeatedNumbers.from_json(steps)
        return cls(knots, heights, cells, repeated)


def _best_curve(
    found: Numbers, counts: Codes, half_step: float, limits: KnotLimits
) -> tuple[int, bool]:
    """Returns (number of intervals, whether there are steps) under which left-out rows are most
    likely.

    A fifth of the rows judges the curves of the others, each fifth in its turn.
    """
    n = int(counts.sum())
    random = np.random.default_rng(0)
    rows = random.choice(n, min(n, _MOST_JUDGES), replace=False)
    tried = [k for k in _LADDER if k <= min(MOST_INTERVALS, len(rows) // LEAST_ROWS_PER_INTERVAL)]
    if len(tried) < 2:
        return 1, False
    at = np.searchsorted(np.cumsum(counts), rows, side="right")
    parts = [np.arange(len(at)) % _FOLDS == fold for fold in range(_FOLDS)]
    splits = [(*np.unique(at[~judge], return_counts=True), found[at[judge]]) for judge in parts]

    def best_of(make: _Maker, tried: list[int]) -> tuple[float, int]:
        """Returns the highest likelihood, and its number of intervals."""
        likelihoods = [
            sum(
                make(found[others], n_rows, n_intervals, half_step, limits).log_likelihood(
                    rows, half_step
                )
                for others, n_rows, rows in splits
            )
            for n_intervals in tried
        ]
        best = int(np.argmax(likelihoods))
        return likelihoods[best], tried[best]

    smooth, n_intervals = best_of(NumberDistribution._smooth, tried)
    if half_step > 0 and counts[limits.are_repeated(counts)].sum() >= _LEAST_GAIN * n:
        fewer = [k for k in tried if k <= n_intervals]
        stepped, n_beside = best_of(NumberDistribution._with_steps, fewer)
        if stepped > smooth + _LEAST_GAIN * len(rows):
            return n_beside, True
    return n_intervals, False


_Maker = Callable[[Numbers, Codes, int, float, KnotLimits], NumberDistribution]


def _gaps(found: Numbers) -> Codes:
    """Returns the first number behind each wide gap. Shape: (k,) ascending -> (m,)."""
    n = _CLUSTER_NUMBERS
    at = np.arange(n, len(found) - n + 1)
    before, behind = found[at - 1] - found[at - n], found[at + n - 1] - found[at]
    is_gap = found[at] - found[at - 1] > _GAP * np.maximum(before, behind) / (n - 1)
    gaps: Codes = at[is_gap]
    return gaps


def _apart(found: Numbers, counts: Codes) -> tuple[Numbers, Codes]:
    """Returns the positions between which there is room for an edge; nearer ones count as one."""
    least = _LEAST_STEP + 8.0 * np.spacing(np.abs(found))
    is_apart = np.diff(found, prepend=-np.inf) > least
    return found[is_apart], np.add.reduceat(counts, np.flatnonzero(is_apart))


def _nearest(below: Codes, wanted: Numbers) -> Codes:
    """Places of the whole numbers, ascending, nearest to the wanted. Shape: (k,), (m,) -> (m,)."""
    at = np.clip(np.searchsorted(below, wanted), 1, len(below) - 1)
    is_lower: Mask = wanted - below[at - 1] < below[at] - wanted
    return at - is_lower


def _slopes(knots: Numbers, secants: Numbers) -> Numbers:
    """Slopes at the knots: weighted harmonic means of the secants beside them. Shape: (K,).

    At both ends what a parabola through three knots has, from a third to three times the secant.
    """
    steps = np.diff(knots)
    share = steps[1:] / (steps[1:] + steps[:-1])  # of the right interval in both
    inner = 3.0 / ((1.0 + share) / secants[:-1] + (2.0 - share) / secants[1:])
    first = secants[0] + (secants[0] - secants[1]) * (1.0 - share[0])
    last = secants[-1] + (secants[-1] - secants[-2]) * share[-1]
    return np.concatenate(
        [
            [np.clip(first, secants[0] / 3.0, 3.0 * secants[0])],
            inner,
            [np.clip(last, secants[-1] / 3.0, 3.0 * secants[-1])],
        ]
    )
