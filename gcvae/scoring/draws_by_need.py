"""Bounds of rows to within an error: many draws where a row needs them, and few elsewhere.

A row has two halves of draws to begin with, and how far the weights of one half spread says how
many draws the other half takes. So no draw is thrown away, and none had a say in its own number:
draws that choose their own lean to where they stopped. The score is the mean of both halves.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.bounds import BoundEstimate, iwae_bounds
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.row_noise import RowNoise
from gcvae.scoring.score_options import FIRST_DRAWS, MOST_DRAWS

_OF_HALF = FIRST_DRAWS // 2
_FURTHER = (0, 6, 10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, MOST_DRAWS // 2 - _OF_HALF)
"""Halves take one of these numbers of further draws, so that halves of one number go together."""


def bound_by_need(
    model: GenerativeModel,
    rows: EncodedTable,
    noise: RowNoise,
    *,
    tolerance: float,
    n_jitters: int = 0,
) -> BoundEstimate:
    """`iwae_bound` of each row, with the draws that bring its standard error near the tolerance.

    Args:
        model: Of the rows.
        rows: Each has a number of draws of its own, that follows from nothing but it.
        noise: Of the rows.
        tolerance: In nats.
        n_jitters: As in `iwae_bound`.
    """
    bounds = partial(
        iwae_bounds, model, n_jitters=n_jitters, likelihoods=model.decoder.row_likelihoods()
    )
    halves = [noise.of("half"), noise.of("other half")]
    first = BoundEstimate.joined(bounds(rows, halves, n_draws=_OF_HALF))
    n = len(rows)
    further = _further(first.variance, tolerance).roll(n)
    items, more = torch.arange(2 * n), RowNoise.joined(halves).of("further")
    whole = first
    for n_draws in further.unique().tolist():
        at = items[further == n_draws]
        if not n_draws or not len(at):
            continue
        [found] = bounds(rows.take(at % n), [more.take(at)], n_draws=n_draws)
        share = torch.full_like(found.bound, n_draws / (n_draws + _OF_HALF))
        whole = whole.with_rows(at, whole.take(at).mixed(found, share))
    half = torch.full_like(whole.bound[:n], 0.5)
    return whole.take(items[:n]).mixed(whole.take(items[n:]), half)


def _further(variance: Tensor, tolerance: float) -> Tensor:
    """How many more draws a half needs beside a half of this variance. Shape: (n,) -> (n,).

    It goes without where it lacks less than half of the fewest that it could take.
    """
    needed = _OF_HALF * variance / (2.0 * tolerance**2) - _OF_HALF
    needed = torch.where(needed < 0.5 * _FURTHER[1], 0.0, needed)
    numbers = torch.tensor(_FURTHER)
    return numbers[torch.searchsorted(numbers.to(needed), needed).clamp(max=len(numbers) - 1)]
