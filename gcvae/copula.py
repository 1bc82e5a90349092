"""Gaussian copulas with covariance Psi = omega I + A A^T, evaluated without any D x D matrix.

A copula knows nothing of marginals: it works on normal scores q = Phi^-1(u) of points, and on
intervals of normal scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.generators import normal
from gcvae.normal import log_interval, log_normal_density

_QUADRATURE_RANGE = 8.0
"""The standardised factor is integrated over [-8, 8]; beyond lies 1e-15 of its mass."""
_NODES_PER_UNIT_SLOPE = 18.0
"""Trapezoid nodes on that range for each unit of sqrt(1 + sum_H b_h^2 / P).

The rule's error falls as exp(-2 pi^2 / (step * slope)^2): 1e-10 at a step of 0.9 / slope.
"""
_MINIMUM_NODES = 24
_MAXIMUM_NODES = 8192
_NODES_PER_BLOCK = 64


@dataclass(frozen=True)
class LowRankCopula:
    """The Gaussian copula of Psi = omega I + A A^T.

    It depends on b_i = a_i / sqrt(omega) alone. With psi_i^2 = 1 + |b_i|^2 its correlations are
    R_ij = b_i . b_j / (psi_i psi_j).

    Shape: loadings (..., D, r); noise (...) or None, which stands for omega = 1.
    Source: Section 4 (Psi) and Appendix A.
    """

    loadings: Tensor
    noise: Tensor | None = None

    @property
    def scaled_loadings(self) -> Tensor:
        """B = A / sqrt(omega), in float64. Shape: (..., D, r)."""
        loadings = self.loadings.double()
        if self.noise is None:
            return loadings
        return loadings * self.noise.double().rsqrt()[..., None, None]

    def correlation(self) -> Tensor:
        """R: Psi scaled to ones on the diagonal. Shape: (..., D, D). For maps, not likelihoods."""
        b = self.scaled_loadings
        psi = (1.0 + b.square().sum(-1)).sqrt()
        directions = b / psi[..., None]
        off_diagonal = directions @ directions.mT
        eye = torch.eye(b.shape[-2], dtype=b.dtype, device=b.device)
        return torch.where(eye.bool(), eye, off_diagonal)

    def log_density(self, score: Tensor, present: Tensor) -> Tensor:
        """log c(u) at points whose normal scores are `score`; only columns in `present` take part.

        log c = 1/2 sum log psi_i^2 - 1/2 log|M| - 1/2 [q^T R^-1 q - |q|^2],
        q^T R^-1 q = sum (psi_i q_i - b_i . s)^2 + |s|^2,
        with s = M^-1 sum b_i psi_i q_i and M = I + B^T B.
        The sum of squares has no cancellation, where |q~|^2 - t^T M^-1 t would lose all digits at
        long loadings. Computed in float64.

        Shape: (..., D), bool (..., D) -> (...), in the dtype of `score`.
        Source: c_Psi of Section 4, by Sherman-Morrison-Woodbury.
        """
        b = self.scaled_loadings * present[..., None]
        q = score.double() * present
        psi_squared = 1.0 + b.square().sum(-1)
        psi_q = psi_squared.sqrt() * q
        s, log_m = _solve_factor(b, psi_q)
        residual = psi_q - (b * s[..., None, :]).sum(-1)
        quadratic = residual.square().sum(-1) + s.square().sum(-1)
        log_c = psi_squared.log().sum(-1) - log_m - quadratic + q.square().sum(-1)
        return (0.5 * log_c).to(score.dtype)

    def log_mixed(
        self, score: Tensor, lower: Tensor, upper: Tensor, is_point: Tensor, present: Tensor
    ) -> Tensor:
        """log of: density of the point cells' scores times probability of the interval cells.

        With G the point cells and H the interval cells (low_h, up_h),
        c_R(q_G) int N(f; m, 1/P) prod_H [Phi(psi_h up_h - b_h f) - Phi(psi_h low_h - b_h f)] df,
        P = 1 + sum_G b_g^2,  m = sum_G b_g psi_g q_g / P: no jitter, no sum over 2^D corners. The
        trapezoid rule converges faster than any power of its step here; the number of nodes follows
        from the steepest slope in the batch. Rank one only.

        Shape: (..., D) each -> (...), in float64.
        Raises: ValueError for loadings of a rank above one.
        Source: the value of Eq. (pmf_gcd) for mixed rows; derived in the mathematics page.
        """
        points, intervals = is_point & present, ~is_point & present
        log_c = self.log_density(score.double(), points)
        b = self.scaled_loadings
        if b.shape[-1] != 1:
            raise ValueError(f"the exact mixed likelihood is of rank one, not {b.shape[-1]}")
        b = b[..., 0]
        psi = (1.0 + b.square()).sqrt()
        precision = 1.0 + (b.square() * points).sum(-1)
        mean = (b * psi * score.double() * points).sum(-1) / precision
        low = _scaled_bound(psi, lower, intervals, end=-torch.inf)
        high = _scaled_bound(psi, upper, intervals, end=torch.inf)
        slope = (1.0 + (b.square() * intervals).sum(-1) / precision).sqrt()
        y, step = _trapezoid(slope)
        blocks = []
        for nodes in y.split(_NODES_PER_BLOCK):
            f = mean[..., None] + nodes * precision.rsqrt()[..., None]
            shift = b[..., None, :] * f[..., None]
            log_masses = log_interval(low[..., None, :] - shift, high[..., None, :] - shift).sum(-1)
            blocks.append((log_normal_density(nodes) + log_masses).logsumexp(-1))
        return log_c + torch.stack(blocks).logsumexp(0) + math.log(step)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Normal scores q = (B s + eps) / psi with s ~ N(0, I_r), eps ~ N(0, I_D).

        Shape: (..., D) in float32; each has a standard normal margin.
        Source: Appendix B.
        """
        b = self.scaled_loadings.float()
        s = normal((*b.shape[:-2], 1, b.shape[-1]), generator)
        noise = normal(tuple(b.shape[:-1]), generator)
        psi = (1.0 + b.square().sum(-1)).sqrt()
        return ((b * s).sum(-1) + noise) / psi


@dataclass(frozen=True)
class IndependenceCopula:
    """c = 1: columns are independent given z. With it the GCVAE is the plain VAE.

    Shape: batch (..., D) is the shape of the scores that it draws.
    """

    batch: torch.Size

    def correlation(self) -> Tensor:
        """The identity. Shape: (..., D, D)."""
        eye = torch.eye(self.batch[-1], dtype=torch.float64)
        return eye.expand(*self.batch, self.batch[-1])

    def log_density(self, score: Tensor, present: Tensor) -> Tensor:
        """Zero. Shape: (..., D) -> (...)."""
        return torch.zeros_like(score[..., 0])

    def sample(self, generator: torch.Generator) -> Tensor:
        """Independent standard normal scores. Shape: (..., D)."""
        return normal(tuple(self.batch), generator)


Copula = LowRankCopula | IndependenceCopula


def _solve_factor(b: Tensor, psi_q: Tensor) -> tuple[Tensor, Tensor]:
    """(M^-1 B^T (psi q), log|M|) with M = I + B^T B. Shape: (..., D, r) -> (..., r), (...)."""
    t = (b * psi_q[..., None]).sum(-2)
    if b.shape[-1] == 1:
        norm_squared = b.square().sum((-2, -1))
        return t / (1.0 + norm_squared)[..., None], torch.log1p(norm_squared)
    m = torch.eye(b.shape[-1], dtype=b.dtype, device=b.device) + b.mT @ b
    factor = torch.linalg.cholesky(m)
    s = torch.cholesky_solve(t[..., None], factor)[..., 0]
    return s, 2.0 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _scaled_bound(psi: Tensor, bound: Tensor, intervals: Tensor, end: float) -> Tensor:
    """psi * bound of interval cells; `end` where a cell takes no part or has no bound on that side.

    An infinite bound is not multiplied: its gradient would be 0 * inf.
    """
    finite = intervals & torch.isfinite(bound)
    return torch.where(finite, psi * torch.where(finite, bound.double(), 0.0), end)


def _trapezoid(slope: Tensor) -> tuple[Tensor, float]:
    """Nodes on [-8, 8], as many as the steepest slope asks for, and their distance. Shape: (S,)."""
    wanted = _NODES_PER_UNIT_SLOPE * float(slope.detach().amax()) if slope.numel() else 0.0
    n = int(min(max(wanted, _MINIMUM_NODES), _MAXIMUM_NODES))
    ends = _QUADRATURE_RANGE
    y = torch.linspace(-ends, ends, n, dtype=torch.float64, device=slope.device)
    return y, 2.0 * ends / (n - 1)
