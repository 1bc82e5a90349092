"""Autoregressive passes over a decoder's columns, for N particles at their own latent vectors.

    autoregressive decoder   p_j(x_j | x_<j, z)
    Gaussian copula          q_j = (b_j . f + e_j) / psi_j,  f ~ N(0, I_r)
    principal direction      x_j = mu_j + a_j f + sqrt(omega) e_j,  f ~ N(0, 1)

The latent vector is z and, if a factor f couples the columns, f. Given both, the columns are
independent (copula, principal direction) or depend on earlier ones (autoregressive decoder).
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
    """Pass of N particles over the columns."""

    @property
    def order(self) -> Sequence[int] | None:
        """Order of the columns; None if it does not matter."""

    def column(self, j: int) -> WalkedColumn:
        """Returns column j, given the earlier columns."""

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Sets the cells of column j. Shape: (N,), (N,)."""


@dataclass(frozen=True)
class IndependentWalk:
    """Pass over columns that are independent given the latent vector.

    For a Gaussian copula with factor f, `pull` = B f and `scale` = psi shift and scale each
    column's normal score.

    Shape: pull, scale (N, D), or None without a copula.
    """

    marginals: Marginals
    parameters: MarginalParameters
    pull: Tensor | None = None
    scale: Tensor | None = None

    @property
    def order(self) -> None:
        """None: the order does not matter."""

    def column(self, j: int) -> WalkedColumn:
        """Returns the distribution of column j given z and f."""
        alone = self.marginals.column(self.parameters, j)
        if self.pull is None or self.scale is None:
            return alone
        places = self.marginals.places_of(j)
        return CopulaColumn(alone, places, self.pull[:, j], self.scale[:, j])

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Does nothing, because columns are independent."""


class AutoregressiveWalk:
    """Pass of N rows over the columns, each at its z.

    Shape: the leading dimensions of the conditional are flattened to N.
    """

    def __init__(
        self,
        marginals: Marginals,
        network: AutoregressiveNetwork,
        outputs: MarginalOutputs,
        context: Tensor,
    ) -> None:
        """Starts before the first column."""
        self.marginals, self.network = marginals, network
        self.outputs = outputs.flattened()
        self.total: Tensor = network.read(context.reshape(-1, context.shape[-1]))
        self.lines = self.total.new_zeros(len(self.total), self.network.n_lines)
        self._came: dict[int, Tensor] = {}

    @property
    def order(self) -> Sequence[int]:
        """The network's order."""
        return self.network.order

    def column(self, j: int) -> ColumnDistribution:
        """Returns p_j( . | x_<j, z) given the earlier columns."""
        return self.with_functions(j, self.column_alone(j))

    def with_functions(
        self, j: int, column: ColumnDistribution, rows: Tensor | slice = slice(None)
    ) -> ColumnDistribution:
        """Applies functional dependencies on earlier columns to column j of these rows."""
        log_beta = column.log_beta
        for step in self.network.function_steps:
            if step.last == j:
                given = torch.stack([self._came[i][rows] for i in step.given], dim=-1)
                log_beta = step(log_beta, given)
        return replace(column, log_beta=log_beta)

    def column_alone(self, j: int) -> ColumnDistribution:
        """Returns column j without functional dependencies."""
        added, steps = self.network.column_outputs(self.total, j), self.network.steps
        offsets = self.lines[:, len(self.network.real) :]
        log_beta = self.total.new_zeros(len(self.total), 1)
        g, at = self.network.group_of(j)
        mixture = transform = None
        marginal: Marginal | PiecewiseMarginal | None = None
        if added.mixture is not None:
            place = self.network.real.index(j)
            mixture = self.outputs.mixture[:, place] + added.mixture
            mixture = with_means_moved(mixture, self.lines[:, place])
            marginal = self.marginals.numbers_of(mixture)
            if added.bins is not None:
                marginal = steps.marginal(marginal, j, added.bins + steps.bin_offsets(j, offsets))
            transform = self.network.warps.column(place)
        if g is not None and added.logits is not None:
            logits = self.outputs.logits[g][:, at] + added.logits
            of_codes = steps.code_logits(j, offsets)
            if of_codes is not None:
                logits[:, : of_codes.shape[1]] += of_codes
            logits = self.marginals.atom_shapes[g].add_to_row(logits, mixture, at)
            padding = self.marginals.code_groups[g].padding[at]
            log_beta = torch.log_softmax(logits + padding, dim=-1)
        return ColumnDistribution(log_beta, int(self.marginals.point_codes[j]), marginal, transform)

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Sets the cells of column j. Shape: (N,), (N,)."""
        self._came[j] = codes
        at = (codes == self.marginals.point_codes[j]).nonzero()[:, 0]
        added, moved = self.network.added_by(codes, values, j, at)
        self.total, self.lines = self.total + added, self.lines + moved
