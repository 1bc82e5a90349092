"""Rows drawn from the autoregressive decoder, without the probabilities that no draw asks for.

A code is drawn by inversion of masses that are not normalised: of u times their sum, the first code
whose cumulated mass reaches it. So a column's masses are exponentials of its logits and no more,

    mass_k = 2^(l_k / log 2) (sum_m w_m N(s_k; mu_m, sigma_m^2) + a little),

the second factor at atoms only; numbers are drawn in the rows alone that have one. What a cell adds
to the running sum is read from a table of its column's codes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.model.autoregressive import (
    AutoregressiveNetwork,
    ColumnLayers,
)
from gcvae.model.level_functions import FunctionStep
from gcvae.model.marginals import AtomDensities, Marginals
from gcvae.model.number_marginals import Triple
from gcvae.numerics.generators import uniform

_ROWS_AT_ONCE = 1024
"""Rows that go through the columns together: what they need stays in a core's cache."""
_MOST_BITS = 100.0
"""Powers of two up to this, and their sums, are ordinary numbers of float32."""
_LOG2_E = 1.0 / math.log(2.0)


@dataclass(frozen=True)
class _Noise:
    """Uniform noise of a block of rows. Shape: codes (D, n) float32, numbers (D_real, n)."""

    codes: Tensor
    numbers: Tensor


@dataclass(frozen=True)
class _Column:
    """One column, ready to be drawn.

    Shape: of_context (d_context, K + 3 M), of_hidden (d_column, K + 3 M), bias (K + 3 M,), to the
    logits in bits and the mixture's outputs; additions of `AutoregressiveNetwork.code_additions`.

    Attributes:
        number: Of the column.
        layers: Of the network.
        n_codes: K; 1 has no logits.
        point_code: The code whose cells hold a number; -1 with a column of levels.
        place: Among the columns with numbers.
        densities: Of the atoms, where a mixture shapes them.
        steps: Functions that end at this column.
    """

    number: int
    layers: ColumnLayers
    n_codes: int
    point_code: int
    place: int | None
    of_context: Tensor
    of_hidden: Tensor
    bias: Tensor
    additions: tuple[Tensor, Tensor]
    densities: AtomDensities | None
    steps: Sequence[FunctionStep]

    @property
    def n_logits(self) -> int:
        """The number of its logits."""
        return self.n_codes if self.n_codes > 1 else 0

    def masses(self, outputs: Tensor, mixture: Tensor, codes: Tensor) -> Tensor:
        """The codes' masses, not normalised. Shape: (n, K + 3 M), (n, 3 M), (D, n) -> (n, K)."""
        masses = _powers_of_two(outputs[:, : self.n_codes])
        if self.densities is not None:
            masses = self.densities.times(masses, mixture)
        for step in self.steps:
            # In logs: a demanded function holds where the masses of all that keep it underflow.
            log_masses = torch.log_softmax(masses.log(), -1)
            masses = step(log_masses, codes[step.given].T).exp()
        return masses


class RowDraws:
    """The decoder's columns, ready to be drawn for as long as its weights stay as they are."""

    def __init__(
        self, trunk: nn.Module, network: AutoregressiveNetwork, marginals: Marginals
    ) -> None:
        """Gathers the weights of each column; the trunk leads from z to the context."""
        self.trunk, self.network, self.marginals = trunk, network, marginals
        with torch.no_grad():
            self.columns = [_column(self.network, self.marginals, j) for j in self.network.order]

    @torch.no_grad()
    def __call__(self, z: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(codes, values) of one row for each z. Shape: (n, K) -> two of (n, D)."""
        context: Tensor = self.trunk(z)
        return self.draw(context, generator)

    @torch.no_grad()
    def draw(self, context: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(codes, values) of one row for each context. Shape: (n, d_context) -> two of (n, D)."""
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
        """Fills in `codes` and `values`. Shape: (n, d_context), two of (D, n)."""
        total = self.network.read(context)
        lines = total.new_zeros(len(total), len(self.network.real))
        for column in self.columns:
            j = column.number
            outputs = torch.addmm(column.bias, context, column.of_context)
            outputs = outputs.addmm_(column.layers(total), column.of_hidden)
            mixture = outputs[:, column.n_logits :]
            if column.place is not None:
                means = mixture.unflatten(-1, (3, -1))[:, 1]
                means += lines[:, column.place, None]
            if column.n_logits:
                codes[j] = _drawn(column.masses(outputs, mixture, codes), noise.codes[j])
            at = self._draw_numbers(column, mixture, noise, codes, values)
            if column is not self.columns[-1]:
                added, moved = self.network.added_by(codes[j], values[j], j, at, column.additions)
                total, lines = total.add_(added), lines.add_(moved)

    def _draw_numbers(
        self, column: _Column, mixture: Tensor, noise: _Noise, codes: Tensor, values: Tensor
    ) -> Tensor:
        """Draws the numbers of a column into `values`. Returns the rows that have one, (m,)."""
        j, place = column.number, column.place
        if place is None:
            return codes.new_zeros(0, dtype=torch.long)
        at = (codes[j] == column.point_code).nonzero()[:, 0]
        if not len(at):
            return at
        drawn = self.marginals.numbers_of(mixture[at]).sample(noise.numbers[place, at])
        values[j, at] = self.network.warps.column(place).inverse(drawn)
        return at


def _column(network: AutoregressiveNetwork, marginals: Marginals, j: int) -> _Column:
    """Column j, ready to be drawn."""
    shape = marginals.columns[j]
    g, row = network.group_of(j)
    place = network.real.index(j) if j in network.real else None
    d_context, d_column = network.read.in_features, network.narrow.shape[-1]
    # A column of one level has no outputs.
    nothing = network.start.new_zeros(0)
    parts: list[Triple] = [(nothing.expand(d_context, 0), nothing.expand(d_column, 0), nothing)]
    if g is not None:
        group, own = marginals.code_groups[g], slice(row * marginals.code_groups[g].shape[1], None)
        weight, bias = (part[own][: shape.n_codes] for part in group.logits.parameters())
        of_hidden = network.to_logits[g][row][:, : shape.n_codes]
        bias = bias + network.shifts[g][row][: shape.n_codes]
        parts.append((weight.T * _LOG2_E, of_hidden * _LOG2_E, bias * _LOG2_E))
    if place is not None:
        width = 3 * marginals.n_components
        own = slice(place * width, (place + 1) * width)
        weight, bias = marginals.mixture.weight[own], marginals.mixture.bias[own]
        parts.append((weight.T, network.to_mixture[place], bias))
    of_context, of_hidden, bias = (torch.cat(part, -1) for part in zip(*parts, strict=True))
    return _Column(
        number=j,
        layers=network.layers(j),
        n_codes=shape.n_codes,
        point_code=int(marginals.point_codes[j]),
        place=place,
        of_context=of_context,
        of_hidden=of_hidden,
        bias=bias,
        additions=network.code_additions(j),
        densities=None if g is None else marginals.atom_shapes[g].densities(row, shape),
        steps=[step for step in network.function_steps if step.last == j],
    )


def _powers_of_two(bits: Tensor) -> Tensor:
    """2^bits, up to a factor of each row where they leave the ordinary numbers. (n, K), as bits."""
    low, high = bits.aminmax()
    if float(low) > -_MOST_BITS and float(high) < _MOST_BITS:
        return bits.exp2()
    return torch.softmax(bits * math.log(2.0), -1)


def _drawn(masses: Tensor, noise: Tensor) -> Tensor:
    """Codes at uniform noise: never one without mass. Shape: (n, K), (n,) -> (n,)."""
    upper = masses.cumsum(-1)
    # The first that reaches a positive height; rounding takes none above the last of them.
    height = noise[:, None] * upper[:, -1:]
    return torch.searchsorted(upper, height)[:, 0]
