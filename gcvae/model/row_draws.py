"""Generates rows from the autoregressive decoder without normalising probabilities.

A code is sampled by inversion of unnormalised probabilities (masses, see `ColumnWeights`): the
first code whose cumulative mass reaches u times the total. Numbers are computed only for rows with
the code of numbers. Contributions of codes to the running sum are looked up in a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.column_weights import ColumnWeights, columns_in_order
from gcvae.model.marginals import Marginals
from gcvae.numerics.affine import through
from gcvae.numerics.generators import uniform

_ROWS_AT_ONCE = 2048
"""Number of rows per block; its working memory fits a core's cache."""


@dataclass(frozen=True)
class _Noise:
    """Uniform noise for a block of n rows. Shape: codes (D, n) float32, numbers (D_real, n)."""

    codes: Tensor
    numbers: Tensor


class RowDraws:
    """Samples rows from an autoregressive decoder; valid until the decoder's weights change."""

    def __init__(
        self, trunk: nn.Module, network: AutoregressiveNetwork, marginals: Marginals
    ) -> None:
        """Combines the weights of network and marginals for each column.

        Args:
            trunk: Network from the latent vector z to the hidden vector.
            network: Network that adds the dependence on earlier columns.
            marginals: Output layers of the columns' distributions given z alone.
        """
        self.trunk, self.network, self.marginals = trunk, network, marginals
        self.columns = columns_in_order(network, marginals)

    @torch.no_grad()
    def __call__(self, z: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates one row for each z.

        Returns:
            Integer code of each cell, and its value if it is a number (else 0). Shape: (n, D) each.
        """
        context = through(self.trunk, z)
        return self.draw(context, generator)

    @torch.no_grad()
    def draw(self, context: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates one row of D columns for each of n hidden vectors, computed from latent vectors
        z.

        Args:
            context: Hidden vectors. Shape: (n, d_context).

        Returns:
            Integer code of each cell, and its value if it is a number (else 0). Shape: (n, D) each.
        """
        n, n_columns, n_real = len(context), len(self.columns), len(self.network.real)
        noise = _Noise(
            uniform((n_columns, n), generator), uniform((n_real, n), generator, torch.float64)
        )
        codes = torch.zeros(n_columns, n, dtype=torch.long, device=context.device)
        values = torch.zeros(n_columns, n, dtype=torch.float64, device=context.device)
        for start in range(0, n, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            some = _Noise(noise.codes[:, rows], noise.numbers[:, rows])
            self._draw(context[rows], some, codes[:, rows], values[:, rows])
        return codes.int().T, values.T

    def _draw(self, context: Tensor, noise: _Noise, codes: Tensor, values: Tensor) -> None:
        """Writes sampled cells to `codes` and `values`. Shape: (n, d_context), two of (D, n)."""
        total = through(self.network.read, context)
        lines = total.new_zeros(len(total), self.network.n_lines)
        for column in self.columns:
            j = column.number
            outputs, mixture = column.outputs(context, total, lines)
            if column.n_logits:
                codes[j] = _drawn(column.masses(outputs, mixture, codes), noise.codes[j])
            at = self._draw_numbers(column, outputs, noise, codes, values)
            if column is not self.columns[-1]:
                added, moved = self.network.added_by(codes[j], values[j], j, at, column.additions)
                total, lines = total.add_(added), lines.add_(moved)

    def _draw_numbers(
        self, column: ColumnWeights, outputs: Tensor, noise: _Noise, codes: Tensor, values: Tensor
    ) -> Tensor:
        """Writes sampled numbers of a column to `values`; returns the indices of their rows."""
        j, place = column.number, column.place
        if place is None:
            return codes.new_zeros(0, dtype=torch.long)
        at = (codes[j] == column.point_code).nonzero()[:, 0]
        if not len(at):
            return at
        drawn = column.marginal(outputs[at]).sample(noise.numbers[place, at])
        values[j, at] = self.network.warps.column(place).inverse(drawn)
        return at


def _drawn(masses: Tensor, noise: Tensor) -> Tensor:
    """Returns codes sampled by inversion of uniform noise, never one of probability zero.

    Shape: masses (n, K), noise (n,) -> (n,).
    """
    upper = masses.cumsum(-1)
    # The first code whose cumulative mass reaches the target, at most the last one with mass.
    height = noise[:, None] * upper[:, -1:]
    return torch.searchsorted(upper, height)[:, 0]
