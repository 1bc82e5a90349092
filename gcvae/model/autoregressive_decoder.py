"""The autoregressive decoder: a copula model (the head) and a network for dependence on earlier
columns."""

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
from gcvae.numerics.generators import uniform


class AutoregressiveDecoder(Decoder):
    """Maps z to the copula head and the autoregressive network, which share a hidden vector.

    Shape: z (..., K).
    """

    is_autoregressive = True
    evaluations_at_once = 4096
    """Batch whose working memory fits a core's cache."""

    def __init__(self, head: CopulaDecoder, refinement: AutoregressiveNetwork) -> None:
        super().__init__()
        self.head = head
        self.refinement = refinement

    @property
    def trunk(self) -> nn.Module:  # type: ignore[override]
        """The head's trunk, which the network shares."""
        return self.head.trunk

    @property
    def functions(self) -> tuple[LevelFunction, ...]:  # type: ignore[override]
        """Functional dependencies that the network enforces, in order of application."""
        return tuple(step.function for step in self.refinement.function_steps)

    @property
    def change_points(self) -> tuple[ChangePoints, ...]:  # type: ignore[override]
        """Change points of the columns that have any."""
        return tuple(self.refinement.steps.found)

    @property
    def marginals(self) -> Marginals:  # type: ignore[override]
        """The head's marginals, whose outputs the network adds to."""
        return self.head.marginals

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> AutoregressiveConditional:
        """Returns p(x|z). `dropout` is for training steps only."""
        hidden = self.head.trunk(z)
        return AutoregressiveConditional(self.marginals, self, hidden, dropout)

    def row_draws(self) -> RowDraws:
        """Returns a sampler of rows at z."""
        return RowDraws(self.head.trunk, self.refinement, self.marginals)

    def row_likelihoods(self) -> RowLikelihoods:
        """Returns an evaluator of rows at z."""
        return RowLikelihoods(self.head.trunk, self.refinement, self.marginals)

    @property
    def order(self) -> Sequence[int]:
        """Order of the columns in the chain rule."""
        return self.refinement.order

    def ordered_walk(self, z: Tensor) -> AutoregressiveWalk:
        """Returns an autoregressive pass at z. Shape: (N, K)."""
        return self.forward(z).walk()


@dataclass(frozen=True)
class AutoregressiveConditional(Conditional):
    """p(x|z) = prod_j p_j(x_j | x_<j, z), with exact probabilities and densities, without jitter.

    Attributes:
        context: The decoder's hidden vector at z. Shape: (..., d_context).
    """

    marginals: Marginals
    decoder: AutoregressiveDecoder
    context: Tensor
    dropout: Dropout | None = None

    @cached_property
    def outputs(self) -> MarginalOutputs:
        """Outputs of the marginals at z, before the network's contribution."""
        return self.marginals.outputs(self.context)

    @property
    def network(self) -> AutoregressiveNetwork:
        """The network r."""
        return self.decoder.refinement

    @property
    def head(self) -> CopulaConditional:
        """The copula model at the same z."""
        return self.decoder.head.at(self.context, self.outputs)

    @property
    def alone(self) -> MarginalParameters:
        """The marginals of the copula head."""
        return self.head.parameters

    def log_head(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z) under the copula head, for the first rows of z. Shape: (n,)."""
        n = len(rows)
        head = self.decoder.head.at(self.context[:n], self.outputs.first(n))
        return head.log_prob(rows, jitter)

    @property
    def loadings(self) -> Tensor | None:
        """Loadings of the copula head, which is trained on the same z."""
        return self.head.loadings

    def correlation(self) -> Tensor:
        """Correlations of the copula head. Shape: (..., D, D)."""
        return self.head.correlation()

    def log_prob(self, rows: EncodedTable, noise: Tensor | None) -> Tensor:
        """Returns log p(x|z) of the observed cells.

        Rows with unobserved cells are scored by sequential importance sampling: these cells are
        sampled in column order from `noise`, and only observed cells count.

        Shape: rows (n, D), noise (..., n, D) -> (..., n).

        Raises:
            ValueError: There are unobserved cells and no noise.
        """
        return self._log_known(rows, noise).sum(-1)

    def log_exact(self, rows: EncodedTable, generator: torch.Generator) -> Tensor:
        """Returns log p(x|z), with noise for unobserved cells. Shape: (..., n)."""
        if bool(rows.observed.all()):
            return self.log_prob(rows, None)
        shape = (*self.context.shape[:-1], rows.codes.shape[-1])
        return self.log_prob(rows, uniform(shape, generator, torch.float64))

    @property
    def order(self) -> Sequence[int]:
        """Order of the columns in the chain rule."""
        return self.network.order

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """Returns `log_prob` of the first column in `order`, of the first two, and so on.

        `jitter` is not used. Shape: rows (n, D), noise (..., n, D) -> (..., n, D).
        """
        return self._log_known(rows, noise)[..., self.order].double().cumsum(-1)

    def _log_known(self, rows: EncodedTable, noise: Tensor | None) -> Tensor:
        """Returns log p_j of each observed cell, 0 for others. Shape: (..., n, D)."""
        if rows.intervals is None and bool(rows.observed.all()):
            added = self.network(self.context, rows, self.dropout)
            return self._log_cells(self.outputs + added, rows)
        if noise is None:
            raise ValueError("rows with blank cells or intervals need noise to draw them")
        context = self.context.expand(*noise.shape[:-1], -1)
        cells = self.decoder.row_likelihoods().through(rows, context, noise)
        return cells.log_prob.T.view(noise.shape).to(self.context.dtype)

    def _log_cells(self, outputs: MarginalOutputs, rows: EncodedTable) -> Tensor:
        """Returns log p_j of each cell. Shape: (..., n, D)."""
        parameters = self.marginals.parameters_of(outputs)
        log_prob = self.marginals.log_codes(parameters, rows.codes)
        for i, kept in self.network.kept_cells(parameters.log_beta, rows.codes).items():
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
        """Returns (codes, values) of one row for each z, generated column by column. Shape: two of
        (..., D)."""
        codes, values = self.decoder.row_draws().draw(self.context.flatten(0, -2), generator)
        shape = (*self.context.shape[:-1], len(self.marginals.columns))
        return codes.view(shape), values.view(shape)

    def walk(self, factor: Tensor | None = None) -> AutoregressiveWalk:
        """Returns an autoregressive pass at z. `factor` is not used."""
        return AutoregressiveWalk(self.marginals, self.network, self.outputs, self.context)
