"""Rows in the latent space: the posterior of each."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import torch

from gcvae.codec import EncodedTable
from gcvae.model import GenerativeModel

_ROWS_AT_ONCE = 4096


def encoding_blocks(model: GenerativeModel, rows: EncodedTable) -> Iterator[pd.DataFrame]:
    """Mean eta and standard deviation tau of q(z|x) = N(eta, diag tau^2), a line for each row.

    In units of z: under N(0, I) a prior standard deviation is 1. At least one block comes.

    Shape: n rows -> blocks of (., 2 K), `mean_1` .. `mean_K`, `standard_deviation_1` ..
    Source: Eqs. (vae3) and (vae4).
    """
    names = encoding_columns(model.prior.d_latent)
    for start in range(0, max(len(rows), 1), _ROWS_AT_ONCE):
        index = torch.arange(start, min(start + _ROWS_AT_ONCE, len(rows)))
        with torch.no_grad():
            eta, log_tau = model.encoder(rows.take(index))
        found = torch.cat([eta, log_tau.exp()], dim=1).double()
        yield pd.DataFrame(found.numpy(), columns=names)


def encoding_columns(d_latent: int) -> list[str]:
    """The names of the columns of encodings."""
    dimensions = range(1, d_latent + 1)
    return [
        *(f"mean_{k}" for k in dimensions),
        *(f"standard_deviation_{k}" for k in dimensions),
    ]
