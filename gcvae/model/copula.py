"""Gaussian copulas with covariance Psi = omega I + a a^T, evaluated without D x D matrices.

A copula does not depend on the marginals: its arguments are the normal scores q = Phi^-1(u) of
numbers (point cells), and intervals of normal scores for levels (interval cells).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.numerics.generators import normal
from gcvae.numerics.normal import log_interval, log_normal_density

_QUADRATURE_RANGE = 8.0
"""The standardised factor is integrated over [-8, 8]; 1e-15 of its mass lies outside."""
_NODES_PER_UNIT_SLOPE = 18.0
"""Number of trapezoid nodes on [-8, 8] for each unit of the slope sqrt(1 + sum_H b_h^2 / P) of the
integrand of `RankOneCopula.log_mixed`.

The rule's error falls as exp(-2 pi^2 / (step * slope)^2): 1e-10 at a step of 0.9 / slope.
"""
_MINIMUM_NODES = 24
_MAXIMUM_NODES = 8192
"""Maximum number of nodes, to limit memory. Steeper copulas are integrated less accurately, with a
warning."""
_NODES_PER_CHUNK = 64


class QuadratureWarning(UserWarning):
    """Warns that a likelihood is inaccurate, because an integral over the copula's factor needs
    more quadrature nodes than the maximum."""


@dataclass(frozen=True)
class RankOneCopula:
    """Gaussian copula of D columns with covariance Psi = omega I + a a^T.

    It depends only on b_i = a_i / sqrt(omega). With psi_i^2 = 1 + b_i^2 its correlations are R_ij =
    b_i b_j / (psi_i psi_j). Given the factor f ~ N(0, 1), the columns are independent.

    Attributes:
        loadings: Loadings a. Shape: (..., D).
        noise: Noise variance omega; None for 1. Shape: (...).

    Source: Section 4 (Psi) and Appendix A.
    """

    loadings: Tensor
    noise: Tensor | None = None

    def given(self, factor: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (b f, psi) given N factors f: the normal score of column i is (b_i f + e_i) /
        psi_i, with standard normal noise e_i. Shape: factor (N, 1) -> (N, D) each, float64."""
        b = self.scaled_loadings
        return b * factor, _psi(b)

    @property
    def scaled_loadings(self) -> Tensor:
        """Scaled loadings b = a / sqrt(omega), float64. Shape: (..., D)."""
        loadings = self.loadings.double()
        return loadings if self.noise is None else loadings * self.noise.double().rsqrt()[..., None]

    def correlation(self) -> Tensor:
        """Returns the correlation matrix of normal scores. Shape: (..., D, D)."""
        b = self.scaled_loadings
        direction = b / _psi(b)
        off_diagonal = direction[..., None] * direction[..., None, :]
        eye = torch.eye(b.shape[-1], dtype=b.dtype, device=b.device)
        return torch.where(eye.bool(), eye, off_diagonal)

    def log_density(self, score: Tensor, present: Tensor) -> Tensor:
        """Returns the log density log c(u) of the copula of the columns in `present`.

        log c = 1/2 sum log psi_i^2 - 1/2 log m - 1/2 [q^T R^-1 q - |q|^2],   m = 1 + |b|^2,
        q^T R^-1 q = sum (psi_i q_i - b_i s)^2 + s^2,   s = sum b_i psi_i q_i / m

        The sum of squares avoids the cancellation of the usual formula for large loadings.

        Args:
            score: Normal scores q. Shape: (..., D).
            present: True for columns to include; others are integrated out. Shape: (..., D).

        Shape: (...), in the dtype of `score`.
        Source: c_Psi of Section 4, by Sherman-Morrison-Woodbury.
        """
        b, q = self.scaled_loadings * present, score.double() * present
        psi_squared, norm_squared = 1.0 + b.square(), b.square().sum(-1)
        psi_q = psi_squared.sqrt() * q
        s = (b * psi_q).sum(-1) / (1.0 + norm_squared)
        quadratic = (psi_q - b * s[..., None]).square().sum(-1) + s.square()
        log_m = torch.log1p(norm_squared)
        log_c = psi_squared.log().sum(-1) - log_m - quadratic + q.square().sum(-1)
        return (0.5 * log_c).to(score.dtype)

    def log_mixed(
        self,
        score: Tensor,
        lower: Tensor,
        upper: Tensor,
        is_point: Tensor,
        present: Tensor,
    ) -> Tensor:
        """Returns the log likelihood of cells under the copula.

        Cells of numbers are points with a density; cells of levels are intervals of normal scores.
        The likelihood is the density of the points times the probability of the intervals given the
        points:

        c_R(q_G) int N(f; m, 1/P) prod_H [Phi(psi_h up_h - b_h f) - Phi(psi_h low_h - b_h f)] df,
        P = 1 + sum_G b_g^2,  m = sum_G b_g psi_g q_g / P,  G the points, H the intervals

        with f the factor, q the normal scores, and low and up the ends of an interval.

        The integral uses the trapezoid rule, which converges very fast. The steepest integrand in
        the batch determines the number of nodes.

        Args:
            score: Normal scores of points. Shape: (..., D).
            lower: Lower ends of intervals, as normal scores. Shape: (..., D).
            upper: Upper ends. Shape: (..., D).
            is_point: True for points, False for intervals. Shape: (..., D).
            present: True for columns to include; others are integrated out. Shape: (..., D).

        Shape: (...), in float64.
        Source: the value of Eq. (pmf_gcd) for mixed rows, given the factor f.
        """
        points, intervals = is_point & present, ~is_point & present
        log_c = self.log_density(score.double(), points)
        b = self.scaled_loadings
        psi = _psi(b)
        precision = 1.0 + (b.square() * points).sum(-1)
        mean = (b * psi * score.double() * points).sum(-1) / precision
        low, high = _scaled_ends(psi, lower, upper, intervals)
        slope = (1.0 + (b.square() * intervals).sum(-1) / precision).sqrt()
        y, step = _trapezoid(slope)
        chunks = []
        for nodes in y.split(_NODES_PER_CHUNK):
            f = mean[..., None] + nodes * precision.rsqrt()[..., None]
            shift = b[..., None, :] * f[..., None]
            log_masses = log_interval(low[..., None, :] - shift, high[..., None, :] - shift).sum(-1)
            chunks.append((log_normal_density(nodes) + log_masses).logsumexp(-1))
        return log_c + torch.stack(chunks).logsumexp(0) + math.log(step)

    def log_prefixes(
        self,
        score: Tensor,
        lower: Tensor,
        upper: Tensor,
        is_point: Tensor,
        present: Tensor,
    ) -> Tensor:
        """Returns the log likelihood of the first columns, for each number of columns: entry j is
        the result of `log_mixed` for columns 0 to j. The arguments are those of `log_mixed`.

        Entry j needs the integral int phi(f) prod_{i<=j} g_i(f) df, with g_i(f) the density or
        probability of cell i given the factor f. All integrals use the same grid. It covers the
        ranges of all integrands, and is fine enough for the steepest one, that of all columns. Rows
        in which all cells are points have a closed form. Shape: (..., D), in float64.
        """
        points, intervals = is_point & present, ~is_point & present
        are_points = ~intervals.any(-1, keepdim=True)
        if bool(are_points.all()):
            return self._log_prefixes_of_points(score, points)
        b = self.scaled_loadings
        psi = _psi(b)
        psi_q = torch.where(points, psi * score.double(), 0.0)
        f, log_step = _common_grid(b * present, (b * psi_q).cumsum(-1), (b.square() * points))
        low, high = _scaled_ends(psi, lower, upper, intervals)
        # A point adds psi phi(psi q - b f) / phi(q); its density p_g(x_g) is the marginals' part.
        log_start = torch.where(points, psi.log() + 0.5 * (psi_q / psi).square(), 0.0)
        total, prefixes = log_normal_density(f), []
        for j in range(b.shape[-1]):
            shifted = b[..., j, None] * f
            at_point = log_start[..., j, None] - 0.5 * (psi_q[..., j, None] - shifted).square()
            mass = log_interval(low[..., j, None] - shifted, high[..., j, None] - shifted)
            total = total + torch.where(points[..., j, None], at_point, mass)
            prefixes.append(total.logsumexp(-1) + log_step)
        found = torch.stack(prefixes, -1)
        if bool(are_points.any()):  # so that a row's value does not depend on other rows
            found = torch.where(are_points, self._log_prefixes_of_points(score, points), found)
        return found

    def _log_prefixes_of_points(self, score: Tensor, points: Tensor) -> Tensor:
        """Returns the log density of the points among the first columns, for each number of
        columns: entry j is that of columns 0 to j. It equals `log_prefixes` for rows without
        intervals.

        With the scaled loadings b and psi_i^2 = 1 + b_i^2, the factor given the normal scores q_g
        of the earlier points g is N(t / P, 1 / P), where P = 1 + sum b_g^2 and t = sum b_g psi_g
        q_g. Therefore psi_j q_j is N(b_j t / P, 1 + b_j^2 / P). With this, the log density of a
        point needs no difference of large numbers.

        Args:
            score: Normal scores q. Shape: (..., D).
            points: True for columns to include; others are integrated out. Shape: (..., D).

        Shape: (..., D), in float64.
        """
        b = self.scaled_loadings * points
        psi_squared = 1.0 + b.square()
        q = torch.where(points, score.double(), 0.0)
        psi_q = psi_squared.sqrt() * q
        before = 1.0 + _sums_before(b.square())
        mean = b * _sums_before(b * psi_q) / before
        variance = 1.0 + b.square() / before
        log_ratio = psi_squared.log() - variance.log()
        steps = log_ratio - (psi_q - mean).square() / variance + q.square()
        return 0.5 * steps.cumsum(-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Samples normal scores q = (b s + eps) / psi, with s ~ N(0, 1) and eps ~ N(0, I). Shape:
        (..., D), float32.

        Source: Appendix B.
        """
        b = self.scaled_loadings.float()
        s = normal((*b.shape[:-1], 1), generator)
        return (b * s + normal(tuple(b.shape), generator)) / _psi(b)


def _psi(b: Tensor) -> Tensor:
    """Returns sqrt(1 + b^2), the standard deviation of b f + e if f and e are standard normal."""
    return (1.0 + b.square()).sqrt()


def _sums_before(terms: Tensor) -> Tensor:
    sums: Tensor = torch.nn.functional.pad(terms.cumsum(-1)[..., :-1], (1, 0))
    return sums


def _scaled_ends(
    psi: Tensor, lower: Tensor, upper: Tensor, intervals: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the ends of interval cells times psi; -inf and inf for other cells. Infinite ends are
    not multiplied, because their gradient would be 0 * inf."""
    low, high = (
        torch.where(finite, psi * torch.where(finite, end.double(), 0.0), infinity)
        for end, infinity in ((lower, -torch.inf), (upper, torch.inf))
        for finite in [intervals & torch.isfinite(end)]
    )
    return low, high


def _common_grid(b: Tensor, t: Tensor, square: Tensor) -> tuple[Tensor, Tensor]:
    """Returns values of the factor f at which all integrals of `log_prefixes` are evaluated, and
    the log of the spacing of these values.

    Given the point cells of the first j columns, f is N(t_j / P_j, 1 / P_j), with P_j = 1 + sum b^2
    and t_j = sum b psi q over these cells. The values cover these distributions for all j.

    `square` contains b^2 for point cells, 0 for others. Shape: b, t and square (..., D) -> (...,
    n_nodes), (...).
    """
    precision = 1.0 + square.cumsum(-1)
    mean, reach = t / precision, _QUADRATURE_RANGE * precision.rsqrt()
    low = (mean - reach).amin(-1).clamp(max=-_QUADRATURE_RANGE)
    high = (mean + reach).amax(-1).clamp(min=_QUADRATURE_RANGE)
    slope = (1.0 + b.square().sum(-1)).sqrt()
    wanted = _NODES_PER_UNIT_SLOPE * (high - low) / (2.0 * _QUADRATURE_RANGE) * slope
    n = _n_nodes(wanted)
    step = (high - low) / (n - 1)
    places = torch.arange(n, dtype=b.dtype, device=b.device)
    return low[..., None] + places * step[..., None], step.log()


def _trapezoid(slope: Tensor) -> tuple[Tensor, float]:
    """Returns evenly spaced quadrature nodes on [-8, 8] and their spacing. `slope` is the steepness
    of each integrand; the number of nodes is proportional to the largest."""
    n = _n_nodes(_NODES_PER_UNIT_SLOPE * slope)
    ends = _QUADRATURE_RANGE
    y = torch.linspace(-ends, ends, n, dtype=torch.float64, device=slope.device)
    return y, 2.0 * ends / (n - 1)


def _n_nodes(wanted: Tensor) -> int:
    most = float(wanted.detach().amax()) if wanted.numel() else 0.0
    if most > _MAXIMUM_NODES:
        message = (
            f"the copula is so steep that its masses ask for {most:,.0f} nodes; {_MAXIMUM_NODES:,} "
            "are taken, so masses, and scores with them, are less exact: two columns are nearly "
            "functions of each other (drop one, or use the preset default)"
        )
        warnings.warn(message, QuadratureWarning, stacklevel=2)
    return int(min(max(most, _MINIMUM_NODES), _MAXIMUM_NODES))
