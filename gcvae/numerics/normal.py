"""Standard normal distribution, accurate in the far tails.

Phi is its cumulative distribution function and phi its density. Tails are represented by
logarithms: at x = -10, Phi(x) is 8e-24 and at x = -40 it is below the smallest double, while
log Phi(x) is about -804.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_N_NEWTON_STEPS = 4
_SMALLEST_PLAIN_MASS = {torch.float64: 1e-280, torch.float32: 1e-30}


def log_normal_density(x: Tensor) -> Tensor:
    """Returns the standard normal log density -x^2/2 - log sqrt(2 pi). Shape: as x."""
    log_density: Tensor = -0.5 * x.square() - LOG_SQRT_2PI
    return log_density


def normal_cdf(x: Tensor) -> Tensor:
    """Returns Phi(x), accurate in the lower tail. torch.special.ndtr computes 1 + erf there and has
    no correct digits at x = -9. Shape: as x."""
    cdf: Tensor = 0.5 * torch.erfc(-x * math.sqrt(0.5))
    return cdf


def _mills_ratio(x: Tensor) -> Tensor:
    """Returns Phi(x) / phi(x), which does not underflow for negative x."""
    ratio: Tensor = math.sqrt(0.5 * math.pi) * torch.special.erfcx(-x * math.sqrt(0.5))
    return ratio


class _LogNormalCdf(torch.autograd.Function):
    """Computes log Phi(x); torch.special.log_ndtr has a wrong float32 gradient below x = -1e3."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        log_cdf: Tensor = torch.special.log_ndtr(x)
        return log_cdf

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradients[0] / _mills_ratio(x)


def log_normal_cdf(x: Tensor) -> Tensor:
    """Returns the log of the standard normal CDF, with a correct gradient at any x. Shape: as x."""
    log_cdf: Tensor = _LogNormalCdf.apply(x)  # type: ignore[no-untyped-call]
    return log_cdf


class _InverseLogNormalCdf(torch.autograd.Function):
    """Computes x with log Phi(x) = log_p, for log_p <= log(1/2)."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor) -> Tensor:
        x = _inverse_log_cdf(log_p.double()).to(log_p.dtype)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradients[0] * _mills_ratio(x)


def _inverse_log_cdf(log_p: Tensor) -> Tensor:
    """Returns x with log Phi(x) = log_p, by Newton's method where exp(log_p) underflows."""
    far = log_p < -300.0
    x: Tensor = torch.special.ndtri(log_p.clamp(min=-300.0).exp())
    return x.masked_scatter(far, _far_inverse_log_cdf(log_p[far])) if bool(far.any()) else x


def _far_inverse_log_cdf(log_p: Tensor) -> Tensor:
    """Solves log Phi(x) = log_p < -300 by Newton's method, starting from Phi(x) ~ phi(x) / |x|."""
    square = -2.0 * log_p - 2.0 * LOG_SQRT_2PI
    x = -(square - square.log()).sqrt()
    for _ in range(_N_NEWTON_STEPS):
        x = x - (torch.special.log_ndtr(x) - log_p) * _mills_ratio(x)
    return x


def normal_score_of_tails(log_below: Tensor, log_above: Tensor) -> Tensor:
    """Returns the standard normal quantile of u, computed from the smaller of log u and log(1 - u).

    Both tails are arguments because a probability near 1 does not determine its complement
    accurately. A tail of probability zero (log = -inf) gives an infinite score with a zero
    gradient. Shape: as the arguments, broadcast against each other.
    """
    in_lower_half = log_below <= log_above
    nearer = torch.minimum(log_below, log_above)
    is_end = torch.isneginf(nearer)
    score: Tensor = _InverseLogNormalCdf.apply(  # type: ignore[no-untyped-call]
        torch.where(is_end, -1.0, nearer.clamp(max=-math.log(2.0)))
    )
    score = torch.where(is_end, -torch.inf, score)
    return torch.where(in_lower_half, score, -score)


def log_interval(lower: Tensor, upper: Tensor) -> Tensor:
    """Returns the log probability of the interval (lower, upper) under a standard normal, lower <
    upper; the limits may be infinite.

    An interval in the upper half is reflected to the lower half, where the difference is accurate.
    If Phi underflows, the difference is computed in logarithms. Shape: as the arguments, broadcast.
    """
    lower, upper = torch.broadcast_tensors(lower, upper)
    flip = lower > -upper
    low, high = torch.where(flip, -upper, lower), torch.where(flip, -lower, upper)
    mass = normal_cdf(high) - normal_cdf(low)
    far = mass < _SMALLEST_PLAIN_MASS[mass.dtype]
    log_mass = torch.where(far, 1.0, mass).log()
    if not bool(far.any()):
        return log_mass
    return log_mass.masked_scatter(far, _log_far_interval(low[far], high[far]))


def _log_far_interval(low: Tensor, high: Tensor) -> Tensor:
    log_high = _log_cdf(high)
    return log_high + log_one_minus_exp(_log_cdf(low) - log_high)


def _log_cdf(x: Tensor) -> Tensor:
    """Returns log Phi(x), with a zero gradient at infinite x."""
    infinite = torch.isinf(x)
    finite = log_normal_cdf(torch.where(infinite, 0.0, x))
    at_the_end = torch.where(x > 0, 0.0, -torch.inf).to(x.dtype)
    return torch.where(infinite, at_the_end, finite)


def log_one_minus_exp(x: Tensor) -> Tensor:
    """Returns log(1 - e^x) for x < 0, accurate on both sides of x = -log 2. Shape: as x."""
    empty = torch.isneginf(x)
    x = torch.where(empty, -1.0, x).clamp(max=-torch.finfo(x.dtype).tiny)
    near_zero = x > -math.log(2.0)
    small = torch.log(-torch.expm1(torch.where(near_zero, x, -1.0)))
    large = torch.log1p(-torch.exp(torch.where(near_zero, -1.0, x)))
    return torch.where(empty, 0.0, torch.where(near_zero, small, large))
