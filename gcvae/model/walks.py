"""Passes that visit the columns of a decoder one by one, for N rows, each with its latent vector.

    autoregressive decoder   p_j(x_j | x_<j, z)
    Gaussian copula          q_j = (b_j . f + e_j) / psi_j,  f ~ N(0, I_r)
    principal direction      x_j = mu_j + a_j f + sqrt(omega) e_j,  f ~ N(0, 1)

Given z and the factors f of the copula or principal direction, the columns are independent; those
of an autoregressive decoder depend on earlier columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from gcvae.codec.region import WalkedColumn
from gcvae.model.autoregressive import AutoregressiveNetwork, with_means_moved
from gcvae.model.change_points import PiecewiseMarginal
from gcvae.model.column_distribution import ColumnDistribution
from gcvae.model.copula_column import CopulaColumn
from gcvae.model.marginals import MarginalOutputs, MarginalParameters, Marginals
from gcvae.model.number_marginals import Marginal


class ColumnWalk(Protocol):
    """Interface of objects that score or generate N rows column by column."""

    @property
    def order(self) -> Sequence[int] | None:
        """Column indices in the order in which to visit them; None if the order does not matter."""

    def column(self, j: int) -> WalkedColumn:
        """Returns the distribution of column j given the columns visited before."""

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Sets the codes and values of column j for N rows; later columns may depend on them.
        Shape: (N,), (N,)."""


@dataclass(frozen=True)
class IndependentWalk:
    """Scores or generates N rows column by column, where the columns are independent given z and
    the factor f of a copula.

    Attributes:
        marginals: Output layers of the decoder.
        parameters: Parameters of the marginals given z.
        pull: B f, with B the copula's loadings; None without a copula. Shape: (N, D).
        scale: Standard deviations of B f + e; None without a copula. Shape: (N, D).
    """

    marginals: Marginals
    parameters: MarginalParameters
    pull: Tensor | None = None
    scale: Tensor | None = None

    @property
    def order(self) -> None:
        """None, because the order does not matter."""

    def column(self, j: int) -> WalkedColumn:
        alone = self.marginals.column(self.parameters, j)
        if self.pull is None or self.scale is None:
            return alone
        places = self.marginals.places_of(j)
        return CopulaColumn(alone, places, self.pull[:, j], self.scale[:, j])

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Does nothing, because columns are independent."""


class AutoregressiveWalk:
    """Scores or generates N rows column by column under an autoregressive decoder.

    Attributes:
        marginals: Marginals of the copula head.
        network: Autoregressive network.
        outputs: Outputs of the marginals, with all batch dimensions flattened to N.
        total: Sum of the contributions of z and of the columns visited so far. Shape: (N, d_sum).
        lines: Linear terms of the columns visited so far. Shape: (N, n_lines).
    """

    def __init__(
        self,
        marginals: Marginals,
        network: AutoregressiveNetwork,
        outputs: MarginalOutputs,
        context: Tensor,
    ) -> None:
        """Begins before the first column. `outputs` are those of the marginals given z, and
        `context` is the hidden vector of each z. Shape: context (..., d_context)."""
        self.marginals, self.network = marginals, network
        self.outputs = outputs.flattened()
        self.total: Tensor = network.read(context.reshape(-1, context.shape[-1]))
        self.lines = self.total.new_zeros(len(self.total), self.network.n_lines)
        self._came: dict[int, Tensor] = {}

    @property
    def order(self) -> Sequence[int]:
        return self.network.order

    def column(self, j: int) -> ColumnDistribution:
        """Returns the distribution p_j( . | x_<j, z) of column j given the earlier columns."""
        return self.with_functions(j, self.column_alone(j))

    def with_functions(
        self, j: int, column: ColumnDistribution, rows: Tensor | slice = slice(None)
    ) -> ColumnDistribution:
        """Enforces functional dependencies on earlier columns in a distribution of column j, for
        the rows with these indices."""
        log_beta = column.log_beta
        for step in self.network.function_steps:
            if step.last == j:
                given = torch.stack([self._came[i][rows] for i in step.given], dim=-1)
                log_beta = step(log_beta, given)
        return replace(column, log_beta=log_beta)

    def column_alone(self, j: int) -> ColumnDistribution:
        """Returns the distribution of column j, ignoring functional dependencies."""
        network, steps = self.network, self.network.steps
        h, offsets = network.layers(j)(self.total), self.lines[:, len(network.real) :]
        log_beta = self.total.new_zeros(len(self.total), 1)
        mixture = transform = None
        marginal: Marginal | PiecewiseMarginal | None = None
        if j in network.real:
            place = network.real.index(j)
            mixture = self.outputs.mixture[:, place] + h @ network.to_mixture[place]
            mixture = with_means_moved(mixture, self.lines[:, place])
            marginal = self.marginals.numbers_of(mixture)
            if steps.has_numbers(j):
                weight, bias = steps.weights(j)
                bins = h @ weight + bias + steps.bin_offsets(j, offsets)
                marginal = steps.marginal(marginal, j, bins)
            transform = network.warps.column(place)
        g, at = network.group_of(j)
        if g is not None:
            added = h @ network.to_logits[g][at] + network.shifts[g][at]
            logits = self.outputs.logits[g][:, at] + added
            of_codes = steps.code_logits(j, offsets)
            if of_codes is not None:
                logits[:, : of_codes.shape[1]] += of_codes
            logits = self.marginals.atom_shapes[g].add_to_row(logits, mixture, at)
            padding = self.marginals.code_groups[g].padding[at]
            log_beta = torch.log_softmax(logits + padding, dim=-1)
        return ColumnDistribution(log_beta, int(self.marginals.point_codes[j]), marginal, transform)

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        self._came[j] = codes
        at = (codes == self.marginals.point_codes[j]).nonzero()[:, 0]
        added, moved = self.network.added_by(codes, values, j, at)
        self.total, self.lines = self.total + added, self.lines + moved
