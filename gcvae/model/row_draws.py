"""Generates rows from the autoregressive decoder without normalising probabilities.

A code is sampled by inversion of unnormalised probabilities (masses, see `ColumnWeights`): the
first code whose cumulative mass reaches u times the total, with u uniform noise. Numbers that are
not frequent values share one code; only in rows with this code is a number sampled from the
density. The terms that a cell adds to the running sum are looked up by its code.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.column_weights import columns_in_order
from gcvae.model.marginals import Marginals
from gcvae.model.walks import AutoregressiveWalk
from gcvae.numerics.affine import through
from gcvae.numerics.generators import uniform

_ROWS_AT_ONCE = 2048
"""Number of rows per block; its working memory fits a core's cache."""


class RowDraws:
    """Samples rows from an autoregressive decoder; valid until the decoder's weights change.

    Attributes:
        trunk: Network from the latent vector z to the hidden vector.
        network: Network that adds the dependence on earlier columns.
        marginals: Marginals of the copula head.
        columns: Weights of the columns, in the order of the chain rule.
    """

    def __init__(
        self, trunk: nn.Module, network: AutoregressiveNetwork, marginals: Marginals
    ) -> None:
        self.trunk, self.network, self.marginals = trunk, network, marginals
        self.columns = columns_in_order(network, marginals)

    @torch.no_grad()
    def __call__(self, z: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates one row for each z.

        Returns:
            Integer code of each cell, and the value of each number without a code of its own (else
            0). Shape: (n, D) each.
        """
        return self.draw(through(self.trunk, z), generator)

    @torch.no_grad()
    def draw(self, context: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates one row for each of n hidden vectors of z. Returns the integer code of each
        cell, and the value of each number without a code of its own (else 0). Shape: (n, d_context)
        -> (n, D) each."""
        n, n_columns, n_real = len(context), len(self.columns), len(self.network.real)
        noise = uniform((n_columns, n), generator)
        noise_of_numbers = uniform((n_real, n), generator, torch.float64)
        codes = torch.zeros(n_columns, n, dtype=torch.long, device=context.device)
        values = torch.zeros(n_columns, n, dtype=torch.float64, device=context.device)
        for start in range(0, n, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            block = (t[:, rows] for t in (noise, noise_of_numbers, codes, values))
            self._draw(context[rows], *block)
        return codes.int().T, values.T

    def _draw(
        self,
        context: Tensor,
        noise: Tensor,
        noise_of_numbers: Tensor,
        codes: Tensor,
        values: Tensor,
    ) -> None:
        """Samples the cells of n rows from uniform noise and writes them to `codes` and `values`.
        Shape: noise, codes and values (D, n), noise_of_numbers (D_real, n)."""
        walk = AutoregressiveWalk(self.network, self.marginals, context, codes, self.columns)
        for column in self.columns:
            j, outputs = column.number, walk.outputs(column)
            if column.n_logits:
                codes[j] = _drawn(column.masses(outputs, codes), noise[j])
            at = (codes[j] == column.point_code).nonzero()[:, 0]
            if len(at) and column.number_index is not None:
                drawn = column.marginal(outputs[at]).sample(
                    noise_of_numbers[column.number_index, at]
                )
                values[j, at] = self.network.warps.column(column.number_index).inverse(drawn)
            walk.step(j, codes[j], values[j])


def _drawn(masses: Tensor, noise: Tensor) -> Tensor:
    """Samples codes by inversion of uniform noise; none has probability zero. Shape: (n, K), (n,)
    -> (n,)."""
    upper = masses.cumsum(-1)
    height = noise[:, None] * upper[:, -1:]
    return torch.searchsorted(upper, height)[:, 0]
