"""Generative models, which consist of a prior, an encoder and a decoder. One decoder, the copula
decoder, is also defined here.

A decoder maps z to a conditional distribution p(x|z). It determines the model:

    VAE      CopulaDecoder without loadings: columns are independent given z
    GCVAE    CopulaDecoder with loadings: a Gaussian copula couples the columns
    VAE-ROC  `gcvae.paper.principal_direction`
    default  `gcvae.model.autoregressive_decoder`, with a CopulaDecoder as its head
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.change_points import ChangePoints
from gcvae.model.context import ContextTrunk
from gcvae.model.copula import RankOneCopula
from gcvae.model.level_functions import LevelFunction
from gcvae.model.marginals import CellProbabilities, MarginalOutputs, MarginalParameters, Marginals
from gcvae.model.networks import ColumnShape, Dropout, EmptyLinear, Encoder, linear, perceptron
from gcvae.model.priors import Prior
from gcvae.model.walks import ColumnWalk, IndependentWalk
from gcvae.numerics.generators import normal

Draws = Callable[[Tensor, torch.Generator], tuple[Tensor, Tensor]]
"""Function (z, generator) that samples the codes and values of one row for each z.

Shape: z (n, K) -> two of (n, D).
"""

Likelihoods = Callable[[EncodedTable, Tensor, Tensor], Tensor]
"""Function (rows, z, noise) that returns cumulative log densities of rows given z: entry j is
log p(x|z) of the first j + 1 columns in the decoder's order. An autoregressive decoder integrates
over unobserved cells and intervals with the uniform noise.

Shape: rows (n, D), z (S, n, K), noise (S, n, D) -> (S, n, D).
"""


class Conditional(ABC):
    """Distribution p(x|z) for a batch (...) of z: one row is scored or sampled for each z."""

    marginals: Marginals

    @property
    @abstractmethod
    def marginal_parameters(self) -> MarginalParameters:
        """Parameters of the marginals p_j(x_j|z). For an autoregressive decoder they are the
        parameters of its copula head."""

    @property
    @abstractmethod
    def loadings(self) -> Tensor | None:
        """Loadings a of the covariance Psi = omega I + a a^T; None for independence. Shape: (...,
        D)."""

    @abstractmethod
    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z) of the observed cells of n rows, in nats.

        Args:
            rows: The rows. Shape: (n, D).
            jitter: Uniform samples, which place each level within its interval of probabilities
                (continuous extension); None for the exact likelihood. Shape: (..., n, D).

        Shape: (..., n).
        """

    def log_head(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor | None:
        """Returns log p(x|z) of n rows under the copula head of an autoregressive decoder (the
        decoder without its autoregressive network); None for other decoders.

        The rows may be fewer than the latent vectors of this distribution; row i is evaluated at
        latent vector i. `jitter` is as for `log_prob`. Shape: (n,).
        """
        return None

    @abstractmethod
    def log_prefixes(self, rows: EncodedTable) -> Tensor:
        """Returns cumulative log densities given z, in nats: entry j is that of the observed
        cells among the first j + 1 columns in the order of the chain rule. Shape: n rows ->
        (..., n, D)."""

    @abstractmethod
    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates one row for each z: the code of each cell, and the value of each number without
        a code of its own (else 0). Shape: (..., D) each."""

    @abstractmethod
    def walk(self, factor: Tensor) -> ColumnWalk:
        """Returns an object that scores or generates N rows column by column, given z and the
        factor f of the copula (in VAE-ROC, of the principal direction). Shape: factor (N, F), with
        F = 1, or F = 0 for a decoder without a factor."""

    @abstractmethod
    def correlation(self) -> Tensor:
        """Returns the correlation matrix of normal scores given z. Shape: (..., D, D)."""


class Decoder(nn.Module, ABC):
    """Network that computes the distribution p(x|z) from a latent vector z.

    Attributes:
        marginals: Output layers of the marginals p_j(x_j|z).
        trunk: Network from z to the hidden vector.
        n_factors: 1 if a copula's factor f couples the columns in addition to z, else 0.
        is_autoregressive: Whether columns depend on earlier columns, in addition to z and f.
        functions: Functional dependencies between the integer codes of columns, which the decoder
            enforces.
        change_points: Points at which densities of numbers have steps.
        evaluations_at_once: Recommended number of rows times samples of z in one likelihood call.
    """

    marginals: Marginals
    trunk: nn.Module
    n_factors = 0
    is_autoregressive = False
    functions: tuple[LevelFunction, ...] = ()
    change_points: tuple[ChangePoints, ...] = ()
    evaluations_at_once = 1024

    @abstractmethod
    def forward(self, z: Tensor, dropout: Dropout | None = None) -> Conditional:
        """Returns p(x|z) for each z. `dropout` is for training steps of autoregressive decoders,
        None elsewhere. Shape: z (..., K)."""

    def row_draws(self) -> Draws:
        """Returns a function that samples rows given z; it is valid until the weights change."""
        return lambda z, generator: self(z).sample(generator)

    def row_likelihoods(self) -> Likelihoods:
        """Returns a function that computes log densities of rows given z; it is valid until the
        weights change."""
        return lambda rows, z, noise: self(z).log_prefixes(rows)

    @property
    def order(self) -> Sequence[int] | None:
        """Column indices in the order of the chain rule; None if the order does not matter."""
        return None


@dataclass(frozen=True)
class CopulaConditional(Conditional):
    """Distribution p(x|z) = c(u) prod_j p_j(x_j|z), with c the density of the copula given z.

    Attributes:
        marginals: Marginals of the decoder.
        parameters: Parameters of the marginals given z.
        copula: Copula given z; None for independence.
        score_gradient: Whether normal scores are differentiated with respect to the marginals.

    Source: Section 4.
    """

    marginals: Marginals
    parameters: MarginalParameters
    copula: RankOneCopula | None
    score_gradient: bool

    @property
    def marginal_parameters(self) -> MarginalParameters:
        return self.parameters

    @property
    def loadings(self) -> Tensor | None:
        return None if self.copula is None else self.copula.loadings

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z) of the observed cells: exactly if `jitter` is None, else by the
        continuous extension.

        With jitter, gradients do not flow through the normal scores unless `score_gradient` is
        True.

        Source: Eq. (elbo_gcvae), its first four lines; exact: `RankOneCopula.log_mixed`.
        """
        cells, impossible, present, log_marginals = self._cells(rows)
        if self.copula is None:
            log_prob = log_marginals.sum(-1)
        elif jitter is not None:
            score = torch.where(present, cells.jittered_scores(jitter), 0.0)
            score = score if self.score_gradient else score.detach()
            log_prob = log_marginals.sum(-1) + self.copula.log_density(score, present)
        else:
            log_points = torch.where(cells.is_point, log_marginals, 0.0).sum(-1)
            bounds = cells.interval_bounds()
            log_rest = self.copula.log_mixed(cells.score, *bounds, cells.is_point, present)
            log_prob = log_points.double() + log_rest
        return torch.where(impossible.any(-1), -torch.inf, log_prob)

    def _cells(self, rows: EncodedTable) -> tuple[CellProbabilities, Tensor, Tensor, Tensor]:
        """Returns (cell probabilities, impossible, present, log marginals) under the marginals.

        The mask `impossible` marks the observed cells of probability zero, `present` all other
        observed cells. Log marginals are those of the present cells, and 0 for others.
        """
        cells = self.marginals.cells(self.parameters, rows)
        impossible = torch.isneginf(cells.log_prob) & rows.observed
        present = rows.observed & ~impossible
        return cells, impossible, present, torch.where(present, cells.log_prob, 0.0)

    def log_prefixes(self, rows: EncodedTable) -> Tensor:
        cells, impossible, present, log_marginals = self._cells(rows)
        log_marginals = log_marginals.double()
        if self.copula is None:
            prefixes = log_marginals.cumsum(-1)
        else:
            log_points = torch.where(cells.is_point, log_marginals, 0.0).cumsum(-1)
            bounds = cells.interval_bounds()
            prefixes = log_points + self.copula.log_prefixes(
                cells.score, *bounds, cells.is_point, present
            )
        return torch.where(impossible.cumsum(-1) > 0, -torch.inf, prefixes)

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Samples normal scores from the copula and applies the quantile function of each marginal.

        Source: Appendix B.
        """
        if self.copula is None:
            scores = normal(self._batch, generator)
        else:
            scores = self.copula.sample(generator)
        return self.marginals.quantile(self.parameters, scores)

    @property
    def _batch(self) -> tuple[int, ...]:
        return (*self.parameters.rows_shape(()), len(self.marginals.columns))

    def walk(self, factor: Tensor) -> ColumnWalk:
        given = () if self.copula is None else self.copula.given(factor)
        return IndependentWalk(self.marginals, self.parameters, *given)

    def correlation(self) -> Tensor:
        if self.copula is None:
            return torch.eye(self._batch[-1], dtype=torch.float64).expand(*self._batch, -1)
        return self.copula.correlation()


class CopulaDecoder(Decoder):
    """Decoder that maps z to marginals and, with `rank` 1, a Gaussian copula; with rank 0 the
    columns are independent given z.

    # PAPER-DIFF: omega is fixed at 1 in the copula. The copula depends on a / sqrt(omega) alone, so
    # a free omega(z) adds nothing but a direction in which the bound is flat. VAE-ROC keeps it.

    Source: Section 4 (mu, sigma, beta and a as heads of one hidden layer).
    """

    def __init__(
        self,
        columns: Sequence[ColumnShape],
        d_latent: int,
        widths: Sequence[int],
        activation: str,
        rank: int,
        score_gradient: bool,
        n_components: int = 1,
        means_in_unit: bool = False,
        context: Sequence[ColumnShape] = (),
    ) -> None:
        super().__init__()
        self.n_factors, self.score_gradient = rank, score_gradient
        self.trunk: nn.Module = perceptron(d_latent, widths, activation)
        self.d_hidden = widths[-1]
        if context:
            trunk = ContextTrunk(self.trunk, d_latent, context)
            self.trunk, self.d_hidden = trunk, widths[-1] + trunk.d_features
        self.marginals = Marginals(self.d_hidden, columns, n_components, means_in_unit)
        self.loadings = loadings_head(self.d_hidden, len(columns)) if rank else None

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> CopulaConditional:
        hidden = self.trunk(z)
        return self.at(hidden, self.marginals.outputs(hidden))

    def at(self, hidden: Tensor, outputs: MarginalOutputs) -> CopulaConditional:
        """Returns p(x|z), given the hidden vector of z and the outputs of the marginals' layers."""
        parameters, copula = self.marginals.parameters_of(outputs), None
        if self.loadings is not None:
            copula = RankOneCopula(self.loadings(hidden))
        return CopulaConditional(self.marginals, parameters, copula, self.score_gradient)


def loadings_head(d_in: int, d_out: int) -> nn.Linear | EmptyLinear:
    """Returns the linear layer of the loadings. Its weights are random (Glorot), not zero, because
    the likelihood depends on products of loadings, whose gradient at zero is zero."""
    head = linear(d_in, d_out)
    if d_out:
        nn.init.xavier_uniform_(head.weight)
    return head


def join_context(z: Tensor, context: Tensor | None) -> Tensor:
    """Concatenates latent vectors (..., n, K) and the contexts (n, 2 C) of a conditional model;
    returns z if there is no context."""
    if context is None:
        return z
    return torch.cat([z, context.to(z).expand(*z.shape[:-1], -1)], dim=-1)


class GenerativeModel(nn.Module):
    """Latent variable model p(x, z) = p(z) p(x|z) with its approximate posterior q(z|x).

    A conditional model is p(x, z | c) = p(z) p(x | z, c) with a context c, such as the parent row;
    the input of its decoder is z and c concatenated.

    Attributes:
        prior: Prior p(z).
        encoder: Network that computes q(z|x).
        decoder: Network that computes p(x|z).
        contexts: Contexts of the training rows, from which `latents` chooses at random; None unless
            a conditional model is being fitted. Shape: (n, 2 C), codes and values of C columns.
    """

    contexts: Tensor | None = None

    def __init__(self, prior: Prior, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.prior = prior
        self.encoder = encoder
        self.decoder = decoder

    def latents(self, n: int, generator: torch.Generator) -> Tensor:
        """Returns n samples of z from the prior; a conditional model adds a random context to each.
        Shape: (n, K), with a context (n, K + 2 C).

        Raises:
            ValueError: The model is conditional and `contexts` is None.
        """
        z = self.prior.sample(n, generator)
        if not self.context_columns:
            return z
        if self.contexts is None:
            raise ValueError("a conditional model draws rows for given contexts only")
        chosen = torch.randint(len(self.contexts), (n,), generator=generator)
        return torch.cat([z, self.contexts[chosen].to(z)], dim=-1)

    @property
    def context_columns(self) -> tuple[ColumnShape, ...]:
        """The context's columns; empty for an unconditional model."""
        trunk = self.decoder.trunk
        return trunk.columns if isinstance(trunk, ContextTrunk) else ()

    @property
    def marginals(self) -> Marginals:
        """Output layers of the decoder's marginals."""
        return self.decoder.marginals

    @property
    def is_autoregressive(self) -> bool:
        """Whether columns depend on earlier columns, in addition to z and a copula."""
        return self.decoder.is_autoregressive

    @property
    def order(self) -> Sequence[int] | None:
        """Column indices in the order of the chain rule; None if the order does not matter."""
        return self.decoder.order

    def conditional(self, z: Tensor, dropout: Dropout | None = None) -> Conditional:
        """Returns p(x|z) for each z. `dropout` is the dropout of a training step, None outside of
        training. Shape: z (..., K)."""
        conditional: Conditional = self.decoder(z, dropout)
        return conditional

    def walk(self, latent: Tensor) -> ColumnWalk:
        """Returns an object that scores or generates N rows column by column. `latent` concatenates
        z and F factors, as for `Conditional.walk`. Shape: (N, K + F)."""
        d_latent = latent.shape[-1] - self.decoder.n_factors
        return self.conditional(latent[:, :d_latent]).walk(latent[:, d_latent:].double())

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates n rows: the code of each cell, and the value of each number without a code of
        its own (else 0). Shape: (n, D) each."""
        return self.conditional(self.latents(n, generator)).sample(generator)
