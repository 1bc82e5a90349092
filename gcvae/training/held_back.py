"""The rows of a table that are held back for its report: nothing in training touches them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from gcvae.numerics.generators import generator_for

MOST_REPORT_ROWS = 20_000
"""Rows that training holds back, and rows that are drawn: more make a report no better."""


def report_rows(n_rows: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Returns the numbers of the rows that are held back, in ascending order. Shape: (m,).

    m = share * n_rows, rounded, at most `MOST_REPORT_ROWS`. The same for the same three numbers:
    who knows the table and the training's record knows which rows these were.
    """
    n_held_back = min(round(share * n_rows), MOST_REPORT_ROWS)
    order = torch.randperm(n_rows, generator=generator_for(seed, "report rows"))
    return np.sort(order[:n_held_back].numpy())
