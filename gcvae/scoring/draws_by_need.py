"""Bounds of rows to within an error: many draws where a row needs them, and few elsewhere.

A pilot of few draws says how far a row's weights spread, and so how many draws its score takes.
The score is made of fresh ones: draws that had chosen their own number would lean to where they
stopped.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.bounds import BoundEstimate, iwae_bound
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.row_noise import RowNoise
from gcvae.scoring.score_options import MOST_DRAWS, PILOT_DRAWS

_NUMBERS = (12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512, 768, MOST_DRAWS)
"""Rows have one of these numbers of draws, so that rows of one number go together."""


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
    pilot = iwae_bound(
        model, rows, noise.of("pilot"), n_draws=PILOT_DRAWS, n_jitters=n_jitters
    ).standard_error
    chosen = _numbers(pilot, tolerance)
    parts = [(n, (chosen == n).nonzero()[:, 0]) for n in chosen.unique().tolist()]
    found = [
        iwae_bound(model, rows.take(at), noise.take(at), n_draws=n, n_jitters=n_jitters)
        for n, at in parts
    ]
    return BoundEstimate.joined(found).take(torch.cat([at for _, at in parts]).argsort())


def _numbers(pilot: Tensor, tolerance: float) -> Tensor:
    """How many draws each row takes, by the standard error of its pilot. Shape: (n,) -> (n,)."""
    numbers = torch.tensor(_NUMBERS)
    needed = PILOT_DRAWS * (pilot / tolerance).square()
    return numbers[torch.searchsorted(numbers.to(needed), needed).clamp(max=len(numbers) - 1)]
