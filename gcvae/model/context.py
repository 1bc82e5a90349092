"""Context c of a conditional model p(x|z, c), such as the row of a parent table. The hidden vector
is h(z, c) = [trunk(z), f(c)].

The features f of the context's cells are concatenated to the output of the network `trunk` of z.
The outputs of the decoder depend linearly on h. A column of the context thus acts like a first
column of the chain rule: it shifts means and logits, and adds to every running sum. It is not
modelled itself, so it has no loss, and it is not an input of the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gcvae.model.autoregressive import CellFeatures
from gcvae.model.networks import ColumnShape
from gcvae.numerics.affine import through


class ContextTrunk(nn.Module):
    """Computes the decoder's hidden vector from a vector that packs the K dimensions of z and then
    the codes and values of the C columns of a context. Shape: (..., K + 2 C) -> (..., d_hidden +
    d_features)."""

    def __init__(self, trunk: nn.Sequential, d_latent: int, columns: Sequence[ColumnShape]) -> None:
        super().__init__()
        self.trunk, self.d_latent = trunk, d_latent
        self.columns, self.n_columns = tuple(columns), len(columns)
        self.features = CellFeatures(columns)

    @property
    def d_features(self) -> int:
        """Number of dimensions that the context's features add to the hidden vector."""
        return self.n_columns * self.features.width

    def forward(self, packed: Tensor) -> Tensor:
        """Returns the hidden vector [trunk(z), f(c)] of each packed vector of z and context c."""
        z, context = packed.split([self.d_latent, 2 * self.n_columns], dim=-1)
        codes, values = context.flatten(0, -2).split(self.n_columns, dim=-1)
        features = self.features(codes.long(), values).transpose(0, 1).flatten(1)
        flat = torch.cat([through(self.trunk, z.flatten(0, -2)), features], dim=-1)
        found: Tensor = flat.unflatten(0, packed.shape[:-1])
        return found
