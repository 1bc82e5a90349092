"""Particles: latents with their columns drawn within regions, weighted by what the regions ask.

A particle's latent l comes from a proposal g; its columns are drawn one after the other, each
within its region. Its weight

    w = p(l) / g(l)  prod_j p_j(region_j | l, columns before j)

makes the weighted particles those of p(l, x | x in the regions), and the mean of w estimates the
probability (for points the density) of the regions without bias. The columns after the last one
that is conditioned do not touch the weight: they are drawn for the chosen particles only.

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
from gcvae.numerics.generators import uniform
from gcvae.sampling.foresight import foreseen
from gcvae.sampling.regions import Regions


@dataclass(frozen=True)
class Particles:
    """Latents, the cells drawn so far, and log weights. Shape: (N, K + F), (N, D) twice, (N,)."""

    latent: Tensor
    codes: Tensor
    values: Tensor
    log_weight: Tensor

    def take(self, at: Tensor) -> Particles:
        """These particles, in this order."""
        parts = self.latent, self.codes, self.values, self.log_weight
        return Particles(*(part[at] for part in parts))

    @staticmethod
    def joined(parts: Sequence[Particles]) -> Particles:
        """All of them."""
        names = ("latent", "codes", "values", "log_weight")
        return Particles(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def draw_particles(
    model: GenerativeModel,
    regions: Regions,
    latent: Tensor,
    log_ratio: Tensor,
    generator: torch.Generator,
    rows: Tensor | None = None,
) -> Particles:
    """Particles at these latents, their columns drawn up to the last one with a region.

    Args:
        model: Of the columns.
        regions: Of all columns.
        latent: Of each particle. Shape: (N, K + F).
        log_ratio: log p(latent) - log g(latent). Shape: (N,).
        generator: Of the noise.
        rows: Which row's regions each particle is of; None where they are those of all rows.
    """
    walk = model.walk(latent)
    noise = uniform((len(latent), len(regions)), generator, torch.float64)
    codes = torch.zeros(noise.shape, dtype=torch.int32)
    values = torch.zeros_like(noise)
    log_weight = log_ratio.double()
    ahead = foreseen(model, walk.order, regions)
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
    model: GenerativeModel, regions: Regions, particles: Particles, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(codes, values) of the particles with the rest of their columns drawn.

    Shape: two of (N, D).
    """
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
    """The walk's own order; where any will do, the conditioned columns first."""
    by_region = sorted(range(len(regions)), key=lambda j: regions[j] is None)
    return by_region if walk.order is None else walk.order


def _conditioned(walk: ColumnWalk, regions: Regions) -> Sequence[int]:
    """The columns in their order up to the last one with a region."""
    order = _order(walk, regions)
    last = max((i for i, j in enumerate(order) if regions[j] is not None), default=-1)
    return order[: last + 1]


def effective_size(log_weight: Tensor) -> Tensor:
    """(sum w)^2 / sum w^2; 0 where every weight is 0. Shape: (..., N) -> (...)."""
    size = (2.0 * log_weight.logsumexp(-1) - (2.0 * log_weight).logsumexp(-1)).exp()
    return torch.where(torch.isneginf(log_weight).all(-1), 0.0, size)


def log_mean(log_weight: Tensor) -> Tensor:
    """log of the mean weight. Shape: (..., N) -> (...)."""
    return log_weight.logsumexp(-1) - math.log(log_weight.shape[-1])


def systematic(log_weight: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Which particles are chosen, n of each group, by their weights; in random order.

    Each is chosen as often as n w / sum w says, rounded up or down. Shape: (G, N) -> (G, n).
    """
    weight = torch.softmax(log_weight, dim=-1)
    n_groups = len(weight)
    start = uniform((n_groups, 1), generator, torch.float64)
    ticks = (torch.arange(n, dtype=torch.float64) + start) / n
    upper = weight.cumsum(-1)
    at = torch.searchsorted(upper / upper[:, -1:], ticks).clamp(max=weight.shape[-1] - 1)
    order = uniform((n_groups, n), generator, torch.float64).argsort(-1)
    return at.gather(-1, order)
