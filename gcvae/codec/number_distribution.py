"""Marginal CDF F of a column's numbers: a smooth, exactly invertible curve through few quantiles.

Between its knots, F is a monotone rational quadratic spline; beyond them, its tails follow a power
law. If numbers lie in clusters with wide gaps, each cluster has its own curve, and gaps have almost
no mass. If steps at repeated numbers raise the held-out likelihood, F consists of a smooth curve S
and these steps (`RepeatedNumbers`).

The number of knots is chosen by cross-validation, because many knots would reproduce the gaps
between training rows.

Source: Gregory and Delbourgo (1982), "Piecewise rational quadratic interpolation to monotonic
data"; slopes after Fritsch and Butland (1984).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.artifact.documents import Document
from gcvae.codec.atom_cells import RoundingCells
from gcvae.codec.repeated_numbers import LEAST_ROWS, RepeatedNumbers

MOST_INTERVALS = 512
"""Maximum number of quantile intervals, before the outermost ones are halved repeatedly."""
_LADDER = tuple(sorted({2**i for i in range(10)} | {3 * 2**i for i in range(8)}))
"""Numbers of intervals that are tried: 1, 2, 3, 4, 6, 8, ... 512."""
LEAST_ROWS_PER_INTERVAL = 4
"""Minimum number of rows per interval."""
_FOLDS = 5
_MOST_VALIDATION_ROWS = 10_000
"""Maximum number of rows, a random sample, by which the number of intervals is chosen."""
_CLUSTER_NUMBERS = 12
"""Minimum number of distinct numbers on either side of a gap."""
_GAP = 30.0
"""Minimum width of a gap, as a multiple of the mean distance between numbers on the sparser
side."""
_GAP_ROWS = 0.02
"""Mass of one half of a gap, in rows."""
_LEAST_GAIN = 0.01
"""Minimum gain in log-likelihood, in nats per row, for steps at repeated numbers to be used."""
_LEAST_CELL = 1e-13
"""Minimum mass of S in a rounding cell; smaller masses cannot be resolved in floating point."""
_LEAST_MASS = 1e-12
"""Minimum mass of a rounding cell that is computed as a difference of F; for smaller ones, the
density at the centre is used."""
_LEAST_STEP = 1e-250
"""Minimum distance of two positions, below which the slope of F would be infinite."""
_FARTHEST = 1e150
"""Maximum distance beyond the knots, whose square does not overflow."""
_LEAST_SLOPE = 1e-305
_REACH = 3.0
"""For a linearly falling density, the tail ends at this multiple of the mean distance from the
knot."""
_TINY = float(np.finfo(np.float64).tiny)
_NONE = np.zeros(0)


@dataclass(frozen=True)
class KnotLimits:
    """Limits on the knots of a fitted CDF, so that they do not disclose single rows of the table.

    Attributes:
        rows: Minimum number of rows between two knots. F has a step at a number only if at least
            this many rows share the number. If `rows` is above 1, the outermost knots are moved,
            because they would show the smallest and the largest number (see `moved_knots`).
        low: Smallest number allowed for a knot.
        high: Largest number allowed for a knot.
    """

    rows: int = 1
    low: float = -np.inf
    high: float = np.inf

    def are_repeated(self, counts: Codes) -> Mask:
        """Returns whether the fitted CDF F gets a step at each of k distinct numbers, given the
        number of rows with each. Shape: (k,) -> (k,)."""
        return counts >= max(LEAST_ROWS, self.rows)

    def moved_knots(self, edges: Numbers, distinct: Numbers, counts: Codes, kept: Codes) -> Numbers:
        """Returns the knots at the K selected edges. Shape: (K,).

        If `rows` is above 1, the two outermost knots are moved, because they would disclose the
        smallest and the largest number. Each becomes the end of a linearly falling density; the
        mean of this density is the mean of the numbers in the outermost interval.

        Args:
            edges: Candidate knots half-way between neighbouring numbers, ascending. Shape: (k +
                1,).
            distinct: The k distinct numbers, ascending. Shape: (k,).
            counts: Number of rows with each number. Shape: (k,).
            kept: Indices of the selected edges. Shape: (K,).
        """
        knots = edges[kept]
        is_shared = counts.sum() >= self.rows
        if self.rows < 2 or (is_shared and len(distinct) < 2):
            return knots
        if not is_shared:
            ends = np.array([-np.inf, np.inf])
        elif len(kept) < 3:
            mean = np.average(distinct, weights=counts)
            scale = np.abs(distinct - mean).max()  # squares of numbers beyond 1e154 overflow
            variance = np.average(((distinct - mean) / scale) ** 2, weights=counts)
            spread = scale * np.sqrt(6.0 * variance)
            ends = np.array([mean - spread, mean + spread])
        else:
            parts = slice(kept[0], kept[1]), slice(kept[-2], kept[-1])
            means = [np.average(distinct[part], weights=counts[part]) for part in parts]
            inner = knots[[1, -2]]
            ends = inner + _REACH * (np.array(means) - inner)
        low, high = np.clip(ends, self.low, self.high)
        if not (np.isfinite([low, high]).all() and low < high):  # a column without limits
            return knots
        return np.concatenate([[low], knots[1:-1], [high]])

    def thinned(self, below: Codes, kept: Codes) -> Codes:
        """Leaves out some of the K selected edges, so that there are enough rows between two of
        them, and returns the indices of the others.

        Args:
            below: Number of rows below each of the k + 1 edges, also of those not selected. Shape:
                (k + 1,).
            kept: Indices of the selected edges, ascending. Shape: (K,).
        """
        if self.rows < 2 or np.diff(below[kept]).min(initial=self.rows) >= self.rows:
            return kept
        places, last = [int(kept[0])], below[kept[-1]]
        for at in kept[1:-1].tolist():
            if below[at] - below[places[-1]] >= self.rows <= last - below[at]:
                places.append(at)
        return np.array([*places, kept[-1]])


NO_LIMITS = KnotLimits()


@dataclass(frozen=True)
class NumberDistribution(Document):
    """CDF F of a column's numbers x, and its inverse, in terms of normal scores q = Phi^-1(F(x)).

    Attributes:
        knots: Numbers x at the K knots of the curve, ascending. Shape: (K,).
        heights: F at the knots, from t to 1 - t. A number is smaller than the first knot minus d
            with probability t / (1 + d)^2, and larger than the last knot plus d with the same
            probability. Shape: (K,).
        atom_cells: Intervals of numbers that would be rounded to frequent values; F excludes these
            intervals. None without frequent values or without rounding.
        repeated: Steps of F at repeated numbers; knots and heights then describe F without the
            steps. None if F is smooth.
    """

    knots: Numbers
    heights: Numbers
    atom_cells: RoundingCells | None = None
    repeated: RepeatedNumbers | None = None

    @classmethod
    def fit(
        cls,
        distinct: Numbers,
        counts: Codes,
        half_step: float = np.nan,
        atoms: Numbers = _NONE,
        limits: KnotLimits = NO_LIMITS,
    ) -> Self:
        """Fits a CDF F to the k distinct numbers of a column, ascending, and the number of rows
        with each. The number of knots, and whether F has steps, maximise the cross-validated
        likelihood.

        Args:
            half_step: Half of the rounding step; NaN without rounding.
            atoms: Frequent values, ascending; F excludes numbers that are rounded to them. Shape:
                (a,).
            limits: Limits of the knots.
        """
        is_cut = len(atoms) > 0 and half_step > 0
        cells = RoundingCells(tuple(atoms.tolist()), half_step) if is_cut else None
        if cells is not None:
            distinct = cells.without_cells(distinct)
            low, high = cells.without_cells(np.array([limits.low, limits.high])).tolist()
            limits = replace(limits, low=low, high=high)
        distinct, counts = _merged_positions(distinct, counts)
        curve = _best_curve(distinct, counts, half_step, limits)
        found = cls._fitted(distinct, counts, half_step, limits, *curve)
        return replace(found, atom_cells=cells)

    @classmethod
    def _fitted(
        cls,
        distinct: Numbers,
        counts: Codes,
        half_step: float,
        limits: KnotLimits,
        n_intervals: int,
        has_steps: bool,
    ) -> Self:
        """Fits a smooth F or, if `has_steps`, one with steps at repeated numbers. The smooth part S
        then counts each repeated number as one row."""
        if not has_steps:
            return cls._with_intervals(distinct, counts, n_intervals, limits)
        is_repeated = limits.are_repeated(counts)
        once = np.where(is_repeated, 1, counts)
        smooth = cls._with_intervals(distinct, once, n_intervals, limits, counts)
        positions = distinct[is_repeated]
        starts, ends = (ndtr(smooth.scores_at(positions + h)) for h in (-half_step, half_step))
        is_wide = ends - starts > _LEAST_CELL
        shares = (counts[is_repeated] - 1) / counts.sum()
        kept = (x[is_wide] for x in (shares, starts, ends))
        return replace(smooth, repeated=RepeatedNumbers(*kept) if is_wide.any() else None)

    @classmethod
    def _with_intervals(
        cls,
        distinct: Numbers,
        counts: Codes,
        n_intervals: int,
        limits: KnotLimits = NO_LIMITS,
        rows: Codes | None = None,
    ) -> Self:
        """Fits a smooth F with about equally many rows between knots.

        Knots are edges half-way between neighbouring numbers. The first and the last interval are
        halved repeatedly while they contain enough rows, because tails are far from linear.

        Args:
            counts: Weight of each distinct number in F: its number of rows, or 1 for a repeated
                number that has a step. Shape: (k,).
            n_intervals: Number of intervals between knots, before the halving.
            rows: Actual number of rows with each number, for the minimum number of rows between
                knots in `limits`; None if it is `counts`. Shape: (k,).
        """
        gaps = _gaps(distinct)
        if len(gaps):
            return cls._with_clusters(distinct, counts, n_intervals, limits, rows, gaps)
        if len(distinct) < 2:
            middle = float(distinct[0]) if len(distinct) else 0.0
            knots = np.array([middle - 0.5, middle + 0.5])
            if len(distinct):
                knots = limits.moved_knots(knots, distinct, counts, np.array([0, 1]))
            return cls(knots, np.array([0.25, 0.75]))
        middles = (distinct[1:] + distinct[:-1]) / 2.0
        first, last = 2 * distinct[0] - middles[0], 2 * distinct[-1] - middles[-1]
        edges = np.concatenate([[first], middles, [last]])
        below = np.concatenate([[0], np.cumsum(counts)])  # integers, which are exact
        n = int(below[-1])
        size = n / n_intervals
        n_halves = max(int(np.log2(size / LEAST_ROWS_PER_INTERVAL)), 0)
        halves = size * 0.5 ** np.arange(1, n_halves + 1)
        targets = [np.linspace(0.0, n, n_intervals + 1), halves, n - halves]
        kept = np.unique(_nearest(below, np.concatenate(targets)))
        kept = limits.thinned(below if rows is None else np.cumsum([0, *rows]), kept)
        tail = 0.5 / (n + 1)
        knots = limits.moved_knots(edges, distinct, counts, kept)
        return cls(knots, tail + (1.0 - 2.0 * tail) * below[kept] / n)

    @classmethod
    def _with_clusters(
        cls,
        distinct: Numbers,
        counts: Codes,
        n_intervals: int,
        limits: KnotLimits,
        rows: Codes | None,
        gaps: Codes,
    ) -> Self:
        """Fits F as one curve for each cluster of numbers, weighted by the cluster's share of the
        rows. `gaps` has the index of the first number after each gap between clusters."""
        middles = (distinct[gaps - 1] + distinct[gaps]) / 2.0
        ends = np.concatenate([[limits.low], middles, [limits.high]])
        n, below = int(counts.sum()), 0
        knots, heights = [], []
        for at, part in enumerate(np.split(np.arange(len(distinct)), gaps)):
            of_part = int(counts[part].sum())
            own = replace(limits, low=ends[at], high=ends[at + 1])
            n_own = max(round(n_intervals * of_part / n), 1)
            own_rows = None if rows is None else rows[part]
            curve = cls._with_intervals(distinct[part], counts[part], n_own, own, own_rows)
            rise = (curve.heights - curve.heights[0]) / np.ptp(curve.heights)
            first, last = _GAP_ROWS * (at > 0), _GAP_ROWS * (at < len(gaps))
            knots.append(curve.knots)
            heights.append(below + first + (of_part - first - last) * rise)
            below += of_part
        tail = 0.5 / (n + 1)
        return cls(np.concatenate(knots), tail + (1.0 - 2.0 * tail) * np.concatenate(heights) / n)

    @cached_property
    def _secants(self) -> Numbers:
        return np.maximum(np.diff(self.heights) / np.diff(self.knots), _LEAST_SLOPE)

    @cached_property
    def _ends(self) -> Numbers:
        """Slopes of F at the ends of each interval, over its mean slope. Shape: (2, K - 1)."""
        if len(self.knots) < 3:
            return np.ones((2, len(self.knots) - 1))
        slopes = _slopes(self.knots, self._secants)
        return np.stack([slopes[:-1], slopes[1:]]) / self._secants

    @cached_property
    def _knot_scores(self) -> Numbers:
        """Normal scores of the knots, preceded by -inf and followed by inf. Shape: (K + 2,)."""
        scores = ndtri(self.heights)
        scores = scores if self.repeated is None else self.repeated.raised(scores)
        return np.concatenate([[-np.inf], scores, [np.inf]])

    def scores_at(self, positions: Numbers) -> Numbers:
        """Returns the normal scores q = Phi^-1(F(x)) of n numbers x, computed from the nearer tail.
        Shape: (n,) -> (n,)."""
        if self.atom_cells is not None:
            positions = self.atom_cells.without_cells(positions)
        low, high, tail = self.knots[0], self.knots[-1], self.heights[0]
        below = tail / (1.0 + np.clip(low - positions, 0.0, _FARTHEST)) ** 2
        above = tail / (1.0 + np.clip(positions - high, 0.0, _FARTHEST)) ** 2
        u = np.where(positions < low, below, self._between_knots(positions))
        scores: Numbers = np.where(positions > high, -ndtri(above), ndtri(u))
        return scores if self.repeated is None else self.repeated.raised(scores)

    def positions_at(self, scores: Numbers) -> Numbers:
        """Returns the numbers x = F^-1(Phi(q)) at n normal scores q. Shape: (n,) -> (n,)."""
        scores = self._smooth_scores(scores)
        u, tail = ndtr(scores), self.heights[0]
        at, t = self._interval_of(u)
        inside = self.knots[at] + (self.knots[at + 1] - self.knots[at]) * t
        below = self.knots[0] + 1.0 - np.sqrt(tail / np.maximum(u, _TINY))
        above = self.knots[-1] - 1.0 + np.sqrt(tail / np.maximum(ndtr(-scores), _TINY))
        positions: Numbers = np.where(u < tail, below, np.where(u > 1.0 - tail, above, inside))
        return positions if self.atom_cells is None else self.atom_cells.with_cells(positions)

    def log_slopes(self, scores: Numbers) -> Numbers:
        """Returns the log density log F'(x) at the numbers with n given normal scores. Shape: (n,)
        -> (n,).

        At distance d beyond the outermost knots, the tail mass is u = t / (1 + d)^2, with t the
        mass beyond the knot, and the density 2 u sqrt(u / t).
        """
        log_steps = 0.0 if self.repeated is None else self.repeated.log_slopes(scores)
        scores = self._smooth_scores(scores)
        at, t = self._interval_of(ndtr(scores))
        first, last = self._ends[:, at]
        q = t * (1.0 - t)
        bent = last * t**2 + 2.0 * q + first * (1.0 - t) ** 2
        slopes = np.maximum(self._secants[at] * bent, _LEAST_SLOPE)  # 0 next to a far steeper step
        inside = np.log(slopes) - 2.0 * np.log1p((first + last - 2.0) * q)
        log_u, log_t = log_ndtr(-np.abs(scores)), np.log(self.heights[0])
        in_tail = np.log(2.0) + 1.5 * log_u - 0.5 * log_t
        log_slopes: Numbers = np.where(log_u < log_t, in_tail, inside) + log_steps
        return log_slopes

    def are_repeated(self, scores: Numbers) -> Mask:
        """Returns whether each of n normal scores belongs to a number that is rounded to a repeated
        number, at which F has a step. Shape: (n,) -> (n,)."""
        if self.repeated is None:
            return np.zeros(len(scores), dtype=bool)
        return self.repeated.are_inside(scores)

    def _smooth_scores(self, scores: Numbers) -> Numbers:
        return scores if self.repeated is None else self.repeated.lowered(scores)

    def bins(self, scores: Numbers) -> Numbers:
        """Returns the normal scores of the two knots around each of n scores; infinite beyond the
        outermost knots. Shape: (n,) -> (n, 2)."""
        at = np.searchsorted(self.heights, ndtr(self._smooth_scores(scores)), side="right")
        return np.stack([self._knot_scores[at], self._knot_scores[at + 1]], axis=-1)

    def log_likelihood(self, positions: Numbers, half_step: float) -> float:
        """Returns the sum of the log densities at n numbers. Shape: (n,).

        With rounding, the density of a number is the mean density in the interval of numbers that
        are rounded to it. `half_step` is half of the rounding step; NaN without rounding.
        """
        if not half_step > 0.0:
            return float(self.log_slopes(self.scores_at(positions)).sum())
        low, high = (self.scores_at(positions + step) for step in (-half_step, half_step))
        is_above = low > 0.0  # where the upper tail is more precise
        masses = ndtr(np.where(is_above, -low, high)) - ndtr(np.where(is_above, -high, low))
        is_wide = masses > _LEAST_MASS
        log_densities = np.empty(len(positions))
        log_densities[is_wide] = np.log(masses[is_wide] / (2.0 * half_step))
        log_densities[~is_wide] = self.log_slopes(self.scores_at(positions[~is_wide]))
        return float(log_densities.sum())

    def _between_knots(self, positions: Numbers) -> Numbers:
        """Returns F at positions, which are clipped to the range of the knots.

        With t in [0, 1] the relative position in the interval, and r_0, r_1 the slopes at its ends
        divided by its mean slope, the relative rise is
        (t^2 + r_0 t (1 - t)) / (1 + (r_0 + r_1 - 2) t (1 - t)).
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

    def _interval_of(self, u: Numbers) -> tuple[Codes, Numbers]:
        """Inverts `_between_knots`: returns (index of the interval for each height of F, relative
        position t in the interval).

        With p the relative rise, t solves a t^2 + b t = p with a = 1 - r_0 + p e, b = r_0 - p e and
        e = r_0 + r_1 - 2. The root is computed without cancellation.
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


def _best_curve(
    distinct: Numbers, counts: Codes, half_step: float, limits: KnotLimits
) -> tuple[int, bool]:
    """Returns the pair (number of intervals, whether F has steps) that has the best likelihood in
    five-fold cross-validation."""
    n = int(counts.sum())
    random = np.random.default_rng(0)
    rows = random.choice(n, min(n, _MOST_VALIDATION_ROWS), replace=False)
    tried = [k for k in _LADDER if k <= min(MOST_INTERVALS, len(rows) // LEAST_ROWS_PER_INTERVAL)]
    if len(tried) < 2:
        return 1, False
    at = np.searchsorted(np.cumsum(counts), rows, side="right")
    parts = [np.arange(len(at)) % _FOLDS == fold for fold in range(_FOLDS)]
    splits = [(*np.unique(at[~judge], return_counts=True), distinct[at[judge]]) for judge in parts]

    def best_of(tried: list[int], has_steps: bool) -> tuple[float, int]:
        likelihoods = [0.0] * len(tried)
        for i, n_intervals in enumerate(tried):
            for others, n_rows, own in splits:
                curve = NumberDistribution._fitted(
                    distinct[others], n_rows, half_step, limits, n_intervals, has_steps
                )
                likelihoods[i] += curve.log_likelihood(own, half_step)
        best = int(np.argmax(likelihoods))
        return likelihoods[best], tried[best]

    smooth, n_intervals = best_of(tried, has_steps=False)
    if half_step > 0 and counts[limits.are_repeated(counts)].sum() >= _LEAST_GAIN * n:
        fewer = [k for k in tried if k <= n_intervals]
        stepped, n_beside = best_of(fewer, has_steps=True)
        if stepped > smooth + _LEAST_GAIN * len(rows):
            return n_beside, True
    return n_intervals, False


def _gaps(distinct: Numbers) -> Codes:
    """Returns the index of the first number after each wide gap in ascending numbers."""
    n = _CLUSTER_NUMBERS
    at = np.arange(n, len(distinct) - n + 1)
    before, behind = distinct[at - 1] - distinct[at - n], distinct[at + n - 1] - distinct[at]
    is_gap = distinct[at] - distinct[at - 1] > _GAP * np.maximum(before, behind) / (n - 1)
    return at[is_gap]


def _merged_positions(distinct: Numbers, counts: Codes) -> tuple[Numbers, Codes]:
    """Merges ascending numbers that are too close for an edge between them, and adds up their
    counts."""
    least = _LEAST_STEP + 8.0 * np.spacing(np.abs(distinct))
    is_apart = np.diff(distinct, prepend=-np.inf) > least
    return distinct[is_apart], np.add.reduceat(counts, np.flatnonzero(is_apart))


def _nearest(below: Codes, targets: Numbers) -> Codes:
    """Returns, for each target, the index of the nearest of the integers `below`, which ascend."""
    at = np.clip(np.searchsorted(below, targets), 1, len(below) - 1)
    is_lower: Mask = targets - below[at - 1] < below[at] - targets
    return at - is_lower


def _slopes(knots: Numbers, secants: Numbers) -> Numbers:
    """Returns the slope of F at each knot, given its mean slopes between knots (`secants`): the
    weighted harmonic mean of the mean slopes on both sides. At the outermost knots, it is the slope
    of a parabola through three knots, but at least 1/3 and at most 3 times the mean slope."""
    steps = np.diff(knots)
    share = steps[1:] / (steps[1:] + steps[:-1])  # of the right one in two intervals
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
