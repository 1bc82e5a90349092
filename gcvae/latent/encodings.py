"""Encodings: the posterior of rows in the latent space."""

from __future__ import annotations

import pandas as pd
import torch

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import GenerativeModel


def encoding_block(model: GenerativeModel, rows: EncodedTable) -> pd.DataFrame:
    """Returns mean eta and standard deviation tau of q(z|x) = N(eta, diag tau^2), a line for each
    row.

    In units of z; the standard deviation of the prior N(0, I) is 1.

    Shape: (n, 2 K), columns `mean_1` .. `mean_K`, `standard_deviation_1` ..
    Source: Eqs. (vae3) and (vae4).
    """
    names = encoding_columns(model.prior.d_latent)
    with torch.no_grad():
        eta, log_tau = model.encoder(rows)
    found = torch.cat([eta, log_tau.exp()], dim=1).double()
    return pd.DataFrame(found.numpy(), columns=names)


def encoding_columns(d_latent: int) -> list[str]:
    """Returns the names of the columns of encodings."""
    dimensions = range(1, d_latent + 1)
    return [
        *(f"mean_{k}" for k in dimensions),
        *(f"standard_deviation_{k}" for k in dimensions),
    ]
