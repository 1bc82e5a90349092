"""Particles: latent vectors with columns drawn within regions, and importance weights.

    w = p(l) / g(l)  prod_j p_j(region_j | l, columns before j)

A particle's latent vector l is drawn from a proposal g instead of the prior p(l); its columns are
drawn in order from the decoder's conditionals p_j, each within its region (set of possible cells).
The weighted particles follow p(l, x | x in the regions), and the mean of w is an unbiased estimate
of the probability of the regions (of their density, if a region is a point). Columns after the last
conditioned one do not change the weight, and are drawn only for the chosen particles.

Source: sequential importance sampling; Liu 2001, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.model.decoders import GenerativeModel
from gcvae.model.walks import ColumnWalk
from gcvae.numerics.generators import AnyGenerator, uniform
from gcvae.sampling.lookahead_columns import lookahead_regions
from gcvae.sampling.regions import Regions


@dataclass(frozen=True)
class Particles:
    """N particles: latent vectors with importance weights, and the cells drawn from them so far.

    Attributes:
        latent: Latent vectors of K dimensions, followed by F latent factors of the Gaussian copula.
            Shape: (N, K + F).
        codes, values: Integer codes and numbers of the cells of D columns. Shape: (N, D) each.
        log_weight: Log importance weights. Shape: (N,).
    """

    latent: Tensor
    codes: Tensor
    values: Tensor
    log_weight: Tensor

    def take(self, at: Tensor) -> Particles:
        """Returns the particles with the given indices, in that order."""
        parts = self.latent, self.codes, self.values, self.log_weight
        return Particles(*(part[at] for part in parts))

    @staticmethod
    def joined(parts: Sequence[Particles]) -> Particles:
        """Concatenates particles, in order."""
        names = ("latent", "codes", "values", "log_weight")
        return Particles(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def draw_particles(
    model: GenerativeModel,
    regions: Regions,
    latent: Tensor,
    log_ratio: Tensor,
    generator: AnyGenerator,
    rows: Tensor | None = None,
) -> Particles:
    """Draws the cells of N particles (weighted draws of a row) at given latent vectors, each within
    its column's region of possible cells, up to the last column that has one.

    Args:
        model: Model from which the columns are drawn.
        regions: Region of each column; None for an unconditioned one.
        latent: Latent vectors of K dimensions, with F factors of the copula. Shape: (N, K + F).
        log_ratio: log p - log g of each vector, with the prior p and the proposal g it was drawn
            from. Shape: (N,).
        rows: Index of the row whose regions apply to each particle; None if all share them.
    """
    walk = model.walk(latent)
    noise = uniform((len(latent), len(regions)), generator, torch.float64)
    codes = torch.zeros(noise.shape, dtype=torch.int32)
    values = torch.zeros_like(noise)
    log_weight = log_ratio.double()
    ahead = lookahead_regions(model, walk.order, regions)
    for j in _conditioned(walk, regions):
        region, column = ahead.get(j, regions[j]), walk.column(j)
        if region is None:
            drawn = column.draw_within(None, noise[:, j])
        else:
            drawn = region.take(rows).draw(column, noise[:, j], codes, values)
        codes[:, j], values[:, j] = drawn.codes, drawn.values
        log_weight = log_weight + drawn.log_prob
        walk.step(j, drawn.codes, drawn.values)
    return Particles(latent, codes, values, log_weight)


def complete(
    model: GenerativeModel, regions: Regions, particles: Particles, generator: AnyGenerator
) -> tuple[Tensor, Tensor]:
    """Draws the columns that N particles (weighted draws of a row) lack. Returns (integer codes,
    numbers) of all D columns. Shape: (N, D) each."""
    walk = model.walk(particles.latent)
    codes, values = particles.codes.clone(), particles.values.clone()
    noise = uniform(tuple(codes.shape), generator, torch.float64)
    done = _conditioned(walk, regions)
    for j in done:
        walk.step(j, codes[:, j], values[:, j])
    for j in _order(walk, regions)[len(done) :]:
        drawn = walk.column(j).draw_within(None, noise[:, j])
        codes[:, j], values[:, j] = drawn.codes, drawn.values
        walk.step(j, drawn.codes, drawn.values)
    return codes, values


def _order(walk: ColumnWalk, regions: Regions) -> Sequence[int]:
    by_region = sorted(range(len(regions)), key=lambda j: regions[j] is None)
    return by_region if walk.order is None else walk.order


def _conditioned(walk: ColumnWalk, regions: Regions) -> Sequence[int]:
    """Returns the columns in the decoder's order up to the last one with a region."""
    order = _order(walk, regions)
    last = max((i for i, j in enumerate(order) if regions[j] is not None), default=-1)
    return order[: last + 1]


def effective_size(log_weight: Tensor) -> Tensor:
    """Returns the effective sample size (sum w)^2 / sum w^2 of N importance weights w, or 0 if all
    are 0. Shape: log_weight (..., N) -> (...).
    """
    size = (2.0 * log_weight.logsumexp(-1) - (2.0 * log_weight).logsumexp(-1)).exp()
    return torch.where(torch.isneginf(log_weight).all(-1), 0.0, size)


def log_mean(log_weight: Tensor) -> Tensor:
    """Returns the log of the mean of N weights. Shape: log_weight (..., N) -> (...)."""
    return log_weight.logsumexp(-1) - math.log(log_weight.shape[-1])


def systematic(log_weight: Tensor, n: int, generator: AnyGenerator) -> Tensor:
    """Resamples n particles (weighted draws) of each group by systematic resampling. Returns their
    indices, in random order.

    A particle of weight w is chosen n w / (sum of the group's weights) times, rounded up or down.
    Shape: G groups of N particles, log_weight (G, N) -> (G, n).
    """
    weight = torch.softmax(log_weight, dim=-1)
    n_groups = len(weight)
    start = uniform((n_groups, 1), generator, torch.float64)
    ticks = (torch.arange(n, dtype=torch.float64) + start) / n
    upper = weight.cumsum(-1)
    at = torch.searchsorted(upper / upper[:, -1:], ticks).clamp(max=weight.shape[-1] - 1)
    order = uniform((n_groups, n), generator, torch.float64).argsort(-1)
    return at.gather(-1, order)
