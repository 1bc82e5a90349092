"""The autoregressive decoder: a copula decoder, called the head, and a network that adds the
dependence of each column on earlier columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.change_points import ChangePoints
from gcvae.model.decoders import Conditional, CopulaConditional, CopulaDecoder, Decoder
from gcvae.model.level_functions import LevelFunction
from gcvae.model.marginals import MarginalOutputs, MarginalParameters, Marginals
from gcvae.model.networks import Dropout
from gcvae.model.row_draws import RowDraws
from gcvae.model.row_likelihoods import RowLikelihoods
from gcvae.model.walks import AutoregressiveWalk


class AutoregressiveDecoder(Decoder):
    """Decoder that models each column given z and the earlier columns.

    It adds the outputs of a network, `refinement`, to the outputs of a copula decoder, `head`. Both
    use the same hidden vector, which the trunk of `head` computes from z."""

    is_autoregressive = True
    evaluations_at_once = 4096
    """Number of rows times samples of z evaluated together; their memory fits a core's cache."""

    def __init__(self, head: CopulaDecoder, refinement: AutoregressiveNetwork) -> None:
        super().__init__()
        self.head = head
        self.refinement = refinement

    @property
    def trunk(self) -> nn.Module:  # type: ignore[override]
        return self.head.trunk

    @property
    def functions(self) -> tuple[LevelFunction, ...]:  # type: ignore[override]
        return tuple(step.function for step in self.refinement.function_steps)

    @property
    def change_points(self) -> tuple[ChangePoints, ...]:  # type: ignore[override]
        return tuple(self.refinement.steps.change_points)

    @property
    def marginals(self) -> Marginals:  # type: ignore[override]
        return self.head.marginals

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> AutoregressiveConditional:
        hidden = self.head.trunk(z)
        return AutoregressiveConditional(self.marginals, self, hidden, dropout)

    def row_draws(self) -> RowDraws:
        return RowDraws(self.head.trunk, self.refinement, self.marginals)

    def row_likelihoods(self) -> RowLikelihoods:
        return RowLikelihoods(self.head.trunk, self.refinement, self.marginals)

    @property
    def order(self) -> Sequence[int]:
        return self.refinement.order


@dataclass(frozen=True)
class AutoregressiveConditional(Conditional):
    """Distribution p(x|z) = prod_j p_j(x_j | x_<j, z) at given z.

    Likelihoods are exact. They need no jitter (the random numbers with which a copula treats levels
    in training), because each p_j is a probability or a density.

    Attributes:
        marginals: Output layers of the copula head.
        decoder: The decoder that returned this distribution.
        context: Hidden vector of z. Shape: (..., d_context).
        dropout: Dropout of a training step; None outside of training.
    """

    marginals: Marginals
    decoder: AutoregressiveDecoder
    context: Tensor
    dropout: Dropout | None = None

    @cached_property
    def outputs(self) -> MarginalOutputs:
        """Outputs of the head's layers, to which the outputs of the autoregressive network are
        added."""
        return self.marginals.outputs(self.context)

    @property
    def network(self) -> AutoregressiveNetwork:
        return self.decoder.refinement

    @property
    def head(self) -> CopulaConditional:
        """Distribution p(x|z) under the copula head alone, without the autoregressive network."""
        return self.decoder.head.at(self.context, self.outputs)

    @property
    def marginal_parameters(self) -> MarginalParameters:
        return self.head.parameters

    def log_head(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        n = len(rows)
        head = self.decoder.head.at(self.context[:n], self.outputs.first(n))
        return head.log_prob(rows, jitter)

    @property
    def loadings(self) -> Tensor | None:
        return self.head.loadings

    def correlation(self) -> Tensor:
        return self.head.correlation()

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns the exact log p(x|z) of complete rows. `jitter` belongs to the interface of
        `Conditional` and is not used.

        Raises:
            ValueError: Rows have unobserved cells or cells that stand for intervals.
                `Decoder.row_likelihoods` integrates over them.
        """
        return self._log_cells(rows).sum(-1)

    def log_prefixes(self, rows: EncodedTable) -> Tensor:
        """Returns cumulative log densities of complete rows: entry j is log p(x|z) of the first
        j + 1 columns in the order of the chain rule. Raises ValueError if rows have unobserved
        cells or cells that stand for intervals. Shape: n rows -> (..., n, D)."""
        return self._log_cells(rows)[..., self.network.order].double().cumsum(-1)

    def _log_cells(self, rows: EncodedTable) -> Tensor:
        """Returns log p_j(x_j | x_<j, z) of each cell, for all columns at once. Shape: (..., n,
        D)."""
        if rows.intervals is not None or not bool(rows.observed.all()):
            raise ValueError("the parallel pass needs complete rows")
        outputs = self.outputs + self.network(self.context, rows, self.dropout)
        parameters = self.marginals.parameters_of(outputs)
        log_prob = self.marginals.log_codes(parameters, rows.codes)
        for i, kept in self.network.constrained_log_probs(parameters.log_beta, rows.codes).items():
            at = torch.tensor([i], device=kept.device)
            log_prob = log_prob.index_copy(-1, at, kept[..., None])
        j = self.marginals.real_columns
        found = self.network.warps(rows.values[..., j])
        transformed, log_slope = (x.to(log_prob.dtype) for x in found)
        log_density = parameters.numbers.log_prob(transformed) + log_slope
        if outputs.bins is not None:
            steps = self.network.steps
            base = parameters.numbers[..., steps.numbers, :, :]
            factors = steps.log_factors(base, outputs.bins, transformed[..., steps.numbers])
            log_density = log_density.index_add(-1, steps.numbers, factors.to(log_density.dtype))
        is_point = (rows.codes == self.marginals.point_codes)[..., j]
        return log_prob.index_add(-1, j, torch.where(is_point, log_density, 0.0))

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        codes, values = self.decoder.row_draws().draw(self.context.flatten(0, -2), generator)
        shape = (*self.context.shape[:-1], len(self.marginals.columns))
        return codes.view(shape), values.view(shape)

    def walk(self, factor: Tensor | None = None) -> AutoregressiveWalk:
        context = self.context.flatten(0, -2)
        return AutoregressiveWalk(self.network, self.marginals, context)
