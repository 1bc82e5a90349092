"""Encodings: means and standard deviations of the encoder's posterior for each row."""

from __future__ import annotations

import pandas as pd
import torch

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.decoders import GenerativeModel


def encoding_block(model: GenerativeModel, rows: EncodedTable) -> pd.DataFrame:
    """Returns the mean eta and standard deviation tau of q(z|x) = N(eta, diag tau^2) of each row.

    Both are in units of z; a standard normal prior has the standard deviation 1.

    The columns are `mean_1` to `mean_K`, then `standard_deviation_1` to `standard_deviation_K`.

    Shape: (n, 2 K), for n rows and K latent dimensions.
    Source: Eqs. (vae3) and (vae4).
    """
    names = encoding_columns(model.prior.d_latent)
    with torch.no_grad():
        eta, log_tau = model.encoder(rows)
    found = torch.cat([eta, log_tau.exp()], dim=1).double()
    return pd.DataFrame(found.numpy(), columns=names)


def encoding_columns(d_latent: int) -> list[str]:
    """Returns the column names of encodings with K = `d_latent` dimensions: `mean_1` to `mean_K`,
    then `standard_deviation_1` to `standard_deviation_K`."""
    dimensions = range(1, d_latent + 1)
    return [
        *(f"mean_{k}" for k in dimensions),
        *(f"standard_deviation_{k}" for k in dimensions),
    ]
