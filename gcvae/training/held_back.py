"""Rows of a table that are set aside for its report. No part of training uses them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from gcvae.numerics.generators import generator_for

MOST_REPORT_ROWS = 20_000
"""Maximum number of rows set aside, and of generated rows; more do not improve a report."""


def report_rows(n_rows: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Returns the indices of the rows set aside for the report, ascending. Shape: (m,).

    m = share * n_rows, rounded, at most `MOST_REPORT_ROWS`. The arguments determine the result, so
    the rows can be found again from the table and the training record.
    """
    n_held_back = min(round(share * n_rows), MOST_REPORT_ROWS)
    order = torch.randperm(n_rows, generator=generator_for(seed, "report rows"))
    return np.sort(order[:n_held_back].numpy())
