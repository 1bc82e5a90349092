"""Adaptive number of draws: scores rows to within a standard error.

The first draws of a row are divided into two groups of equal size, A and B. The variance within A
determines how many draws are added to B, and the variance within B how many are added to A. A draw
thus never influences the size of its own group, which would bias the score (optional stopping). The
score is the mean of the estimates from A and from B, so no draw is discarded.
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
"""Numbers of draws that can be added to a group of first draws. Groups to which the same number is
added form a batch."""
_WITHOUT_HIT = 48
"""Number of draws that are added to a group if, in a row with unknown cells, no draw of the other
group satisfies the rules. If only the weekday of an unknown date is known, for example, a seventh
of the draws satisfies them."""


def bound_by_need(
    model: GenerativeModel,
    rows: EncodedTable,
    noise: RowNoise,
    *,
    tolerance: float,
) -> BoundEstimate:
    """Returns a lower bound on the log-likelihood of each row, from as many draws of the latent
    vector as its standard error requires.

    Args:
        rows: Encoded rows; the number of draws of each depends on that row alone.
        noise: Random numbers of each row.
        tolerance: Target standard error, nats.
    """
    bounds = partial(iwae_bounds, model, likelihoods=model.decoder.row_likelihoods())
    halves = [noise.of("half"), noise.of("other half")]
    first = BoundEstimate.joined(bounds(rows, halves, n_draws=_OF_HALF))
    n = len(rows)
    may_be_missed = first.bound.isneginf() & ~rows.observed.all(dim=1).repeat(2)
    further = _further(first.variance, tolerance).masked_fill(may_be_missed, _WITHOUT_HIT).roll(n)
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
    """Returns numbers of draws to add, given the variances of estimates. The first draws of a row
    form two groups; the variance in one group determines how many draws are added to the other.

    The required number is rounded up to an entry of `_FURTHER`, but to 0 if it is less than half of
    the second entry. The last entry is the maximum. Shape: (n,) -> (n,).
    """
    needed = _OF_HALF * variance / (2.0 * tolerance**2) - _OF_HALF
    needed = torch.where(needed < 0.5 * _FURTHER[1], 0.0, needed)
    numbers = torch.tensor(_FURTHER)
    return numbers[torch.searchsorted(numbers.to(needed), needed).clamp(max=len(numbers) - 1)]
