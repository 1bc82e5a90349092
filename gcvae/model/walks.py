"""Scores or generates N rows column by column, given their latent vectors z. For column j, the
decoders have the models

    autoregressive decoder   p_j(x_j | x_<j, z)
    Gaussian copula          q_j = (b_j f + e_j) / psi_j,  f ~ N(0, 1)
    principal direction      x_j = mu_j + a_j f + sqrt(omega) e_j,  f ~ N(0, 1)

with q_j the normal score of cell x_j, f a factor that all columns of a row share, and e_j standard
normal noise of the column. The decoder computes the other parameters from z. Given z and f, the
columns are independent. The columns of an autoregressive decoder depend on earlier columns instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from gcvae.codec.region import ConditionalColumn
from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.column_distribution import ColumnDistribution
from gcvae.model.column_weights import ColumnWeights
from gcvae.model.copula_column import CopulaColumn
from gcvae.model.marginals import MarginalParameters, Marginals
from gcvae.numerics.affine import through


class ColumnWalk(Protocol):
    """Interface of objects that score or generate N rows column by column."""

    @property
    def order(self) -> Sequence[int] | None:
        """Column indices in the order in which to visit them; None if the order does not matter."""

    def column(self, j: int) -> ConditionalColumn:
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
        factor_shift: b f, with b the scaled loadings of the copula; None without a copula. Shape:
            (N, D).
        score_deviation: psi = sqrt(1 + b^2), the standard deviation of b f + e with standard normal
            noise e; None without a copula. Shape: (N, D).
    """

    marginals: Marginals
    parameters: MarginalParameters
    factor_shift: Tensor | None = None
    score_deviation: Tensor | None = None

    @property
    def order(self) -> None:
        """None, because the order does not matter."""

    def column(self, j: int) -> ConditionalColumn:
        distribution = self.marginals.column(self.parameters, j)
        if self.factor_shift is None or self.score_deviation is None:
            return distribution
        code_values = self.marginals.code_values_of(j)
        return CopulaColumn(
            distribution, code_values, self.factor_shift[:, j], self.score_deviation[:, j]
        )

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Does nothing, because columns are independent."""


class AutoregressiveWalk:
    """Visits the columns of an autoregressive decoder in order, for N rows, to generate them
    (`RowDraws`), to score them (`RowLikelihoods`) or to sample them under conditions (`column`).

    Attributes:
        network: Autoregressive network.
        marginals: Marginals of the copula head.
        context: Hidden vectors of z. Shape: (N, d_context).
        codes: Codes of the columns visited so far, of m rows at N / m latent vectors each. Shape:
            (D, m).
        total: Sum of the terms of z and of the columns visited so far. Shape: (N, d_sum).
        linear_terms: Sums of the linear terms of the columns visited so far (see
            `AutoregressiveNetwork.n_linear_terms`). Shape: (N, n_linear_terms).
    """

    @torch.no_grad()
    def __init__(
        self,
        network: AutoregressiveNetwork,
        marginals: Marginals,
        context: Tensor,
        codes: Tensor | None = None,
        columns: Sequence[ColumnWeights] = (),
    ) -> None:
        """Begins before the first column.

        Args:
            network, marginals, context: The attributes with these names.
            codes: Tensor in which to store the codes; None to create one with m = N. Shape: (D, m).
            columns: Precomputed weights of all columns; by default those of a column are computed
                when it is visited, from the network's parameters at that time.
        """
        shape = len(network.order), len(context)
        self.network, self.marginals, self.context = network, marginals, context
        self.codes = context.new_zeros(shape, dtype=torch.long) if codes is None else codes
        self.total = through(network.read, context)
        self.linear_terms = self.total.new_zeros(len(context), network.n_linear_terms)
        self._prepared = {column.number: column for column in columns}

    @property
    def order(self) -> Sequence[int]:
        return self.network.order

    def outputs(self, weights: ColumnWeights) -> Tensor:
        """Returns the w outputs of a column (see `ColumnWeights`), given the columns visited
        before. Shape: (N, w)."""
        return weights.outputs(self.context, self.total, self.linear_terms)

    @torch.no_grad()
    def column(self, j: int) -> ColumnDistribution:
        """Returns the distribution p_j( . | x_<j, z) of column j given the earlier columns."""
        return self.with_functions(j, self.column_alone(j))

    @torch.no_grad()
    def column_alone(self, j: int) -> ColumnDistribution:
        """Returns the distribution of column j, ignoring functional dependencies."""
        weights = self._prepared.get(j) or ColumnWeights(self.network, self.marginals, j)
        return weights.distribution(self.outputs(weights))

    def with_functions(
        self, j: int, column: ColumnDistribution, rows: Tensor | slice = slice(None)
    ) -> ColumnDistribution:
        """Returns a distribution of column j with functional dependencies on earlier columns
        enforced.

        Args:
            j: Index of the column.
            column: The distribution without dependencies, for some or all of the N rows.
            rows: Indices of these rows among the N rows; all by default.
        """
        log_beta = column.log_beta
        for step in self.network.function_steps:
            if step.last == j:
                log_beta = step(log_beta, self.codes[step.given][:, rows].T)
        return replace(column, log_beta=log_beta)

    @torch.no_grad()
    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Stores the codes of column j in m rows, and adds the terms of these cells to the inputs
        of later columns. Shape: (m,), (m,)."""
        self.codes[j] = codes
        if j == self.order[-1]:
            return
        prepared = self._prepared.get(j)
        additions = None if prepared is None else prepared.additions
        added = self.network.added_by(self.codes[j], values, j, additions)
        for whole, part in zip((self.total, self.linear_terms), added, strict=True):
            whole.unflatten(0, (-1, len(codes))).add_(part)
