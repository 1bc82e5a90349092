"""Selects the rows of a table that are set aside for a quality report. Training uses only their
keys and personal cells, so that these are not generated."""

from __future__ import annotations

import numpy as np
import torch

from gcvae.arrays import Codes
from gcvae.numerics.generators import generator_for

MOST_REPORT_ROWS = 20_000
"""Maximum number of rows that are set aside, and of rows generated for a report."""


def report_rows(n_rows: int, share: float, seed: int) -> Codes:
    """Returns the indices of the rows that are set aside for a report, ascending: `share` of the
    rows, rounded, but at most `MOST_REPORT_ROWS`. Equal arguments give equal results, so that a
    report can select the same rows again."""
    n_held_back = min(round(share * n_rows), MOST_REPORT_ROWS)
    order = torch.randperm(n_rows, generator=generator_for(seed, "report rows"))
    return np.sort(order[:n_held_back].numpy())
