"""The autoregressive decoder: a copula decoder (the head), and a network that adds the dependence
of each column on earlier columns."""

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
    """Decoder p(x|z) by the chain rule over columns, with a copula decoder as its head.

    Head and autoregressive network share the hidden vector that the trunk computes from z. Shape: z
    (..., K), for K latent dimensions.
    """

    is_autoregressive = True
    evaluations_at_once = 4096
    """Number of rows times samples evaluated together; their working memory fits a core's cache."""

    def __init__(self, head: CopulaDecoder, refinement: AutoregressiveNetwork) -> None:
        super().__init__()
        self.head = head
        self.refinement = refinement

    @property
    def trunk(self) -> nn.Module:  # type: ignore[override]
        """Network from z to the hidden vector, which head and autoregressive network share."""
        return self.head.trunk

    @property
    def functions(self) -> tuple[LevelFunction, ...]:  # type: ignore[override]
        """Functional dependencies that the network enforces, in order of application."""
        return tuple(step.function for step in self.refinement.function_steps)

    @property
    def change_points(self) -> tuple[ChangePoints, ...]:  # type: ignore[override]
        """Change points, the numbers at which a column's density has steps, for each column that
        has any."""
        return tuple(self.refinement.steps.found)

    @property
    def marginals(self) -> Marginals:  # type: ignore[override]
        """Output layers of the copula head, to which the autoregressive network's are added."""
        return self.head.marginals

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> AutoregressiveConditional:
        """Returns the distribution p(x|z). `dropout` is that of a training step, None outside of
        training."""
        hidden = self.head.trunk(z)
        return AutoregressiveConditional(self.marginals, self, hidden, dropout)

    def row_draws(self) -> RowDraws:
        """Returns an object that samples rows given z."""
        return RowDraws(self.head.trunk, self.refinement, self.marginals)

    def row_likelihoods(self) -> RowLikelihoods:
        """Returns an object that evaluates log p(x|z) for rows x."""
        return RowLikelihoods(self.head.trunk, self.refinement, self.marginals)

    @property
    def order(self) -> Sequence[int]:
        """Column indices in the order of the chain rule."""
        return self.refinement.order

    def ordered_walk(self, z: Tensor) -> AutoregressiveWalk:
        """Returns an object that scores or generates the columns one by one in `order`, given z.

        Shape: z (N, K), for N rows and K latent dimensions.
        """
        return self.forward(z).walk()


@dataclass(frozen=True)
class AutoregressiveConditional(Conditional):
    """Distribution p(x|z) = prod_j p_j(x_j | x_<j, z) at given z.

    Probabilities and densities are exact; no jitter (continuous extension of levels) is needed.

    Attributes:
        marginals: Output layers of the copula head.
        decoder: The decoder that returned this distribution.
        context: Hidden vector of the decoder at z. Shape: (..., d_context).
        dropout: Dropout of a training step; None outside of training.
    """

    marginals: Marginals
    decoder: AutoregressiveDecoder
    context: Tensor
    dropout: Dropout | None = None

    @cached_property
    def outputs(self) -> MarginalOutputs:
        """Outputs of the marginals at z, without the contribution of the autoregressive network."""
        return self.marginals.outputs(self.context)

    @property
    def network(self) -> AutoregressiveNetwork:
        """The autoregressive network, which adds the dependence on earlier columns."""
        return self.decoder.refinement

    @property
    def head(self) -> CopulaConditional:
        """Distribution p(x|z) under the copula head, at the same z."""
        return self.decoder.head.at(self.context, self.outputs)

    @property
    def alone(self) -> MarginalParameters:
        """Parameters of the marginals p_j(x_j|z) of the copula head."""
        return self.head.parameters

    def log_head(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z) of n rows under the copula head, at the first n latent vectors z.

        Args:
            rows: Rows, with D columns. Shape: (n, D).
            jitter: Uniform samples, which place each level within its interval of probabilities
                (continuous extension); None for the exact likelihood. Shape: (..., n, D).

        Shape: (n,).
        """
        n = len(rows)
        head = self.decoder.head.at(self.context[:n], self.outputs.first(n))
        return head.log_prob(rows, jitter)

    @property
    def loadings(self) -> Tensor | None:
        """Loadings of the D columns on the copula head's r factors; None for independence. Shape:
        (..., D, r)."""
        return self.head.loadings

    def correlation(self) -> Tensor:
        """Returns the correlation matrix of the copula head, for D columns. Shape: (..., D, D)."""
        return self.head.correlation()

    def log_prob(self, rows: EncodedTable, noise: Tensor | None) -> Tensor:
        """Returns log p(x|z) of the observed cells.

        Rows with unobserved cells are scored by sequential importance sampling: unobserved cells
        are sampled in `order` from the uniform `noise`, and only observed cells count. Shape: n
        rows of D columns (n, D), noise (..., n, D) -> (..., n).

        Raises:
            ValueError: `noise` is None, and a cell is unobserved or stands for an interval of
                numbers.
        """
        return self._log_known(rows, noise).sum(-1)

    def log_exact(self, rows: EncodedTable, generator: torch.Generator) -> Tensor:
        """Returns log p(x|z) of the observed cells of rows x; unobserved cells are sampled with the
        generator.

        Shape: n rows of D columns (n, D) -> (..., n).
        """
        if bool(rows.observed.all()):
            return self.log_prob(rows, None)
        shape = (*self.context.shape[:-1], rows.codes.shape[-1])
        return self.log_prob(rows, uniform(shape, generator, torch.float64))

    @property
    def order(self) -> Sequence[int]:
        """Column indices in the order of the chain rule."""
        return self.network.order

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """Returns cumulative log densities log p(x|z) over columns in `order`: entry k is that of
        the observed cells among the first k + 1 columns.

        Args:
            rows: The n rows x, with D columns. Shape: (n, D).
            noise: Uniform noise, from which unobserved cells are sampled; None if there are none.
                Shape: (..., n, D).
            jitter: Not used.

        Shape: (..., n, D).
        """
        return self._log_known(rows, noise)[..., self.order].double().cumsum(-1)

    def _log_known(self, rows: EncodedTable, noise: Tensor | None) -> Tensor:
        """Returns log p_j of each observed cell, 0 for unobserved ones. Shape: (..., n, D)."""
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
        """Generates one row for each z, column by column.

        Returns:
            Integer code of each cell, and its value if it is a number (else 0). Shape: (..., D)
            each, for D columns.
        """
        codes, values = self.decoder.row_draws().draw(self.context.flatten(0, -2), generator)
        shape = (*self.context.shape[:-1], len(self.marginals.columns))
        return codes.view(shape), values.view(shape)

    def walk(self, factor: Tensor | None = None) -> AutoregressiveWalk:
        """Returns an object that scores or generates the columns one by one in `order`, given z;
        `factor` is not used."""
        return AutoregressiveWalk(self.marginals, self.network, self.outputs, self.context)
