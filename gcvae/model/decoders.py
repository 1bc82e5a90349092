"""The generative models of the paper: VAE, VAE-ROC and GCVAE.

A model consists of a prior, an encoder and a decoder. The decoder maps z to a conditional
distribution p(x|z) with `log_prob`, `sample` and `correlation`. The decoder determines the model:

    VAE      CopulaDecoder without loadings: marginals and an independence copula
    GCVAE    CopulaDecoder with loadings: marginals and a Gaussian copula
    VAE-ROC  PrincipalDirectionDecoder: N(mu, omega I + a a^T) over the continuous columns
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.change_points import ChangePoints
from gcvae.model.context import ContextTrunk
from gcvae.model.copula import Copula, IndependenceCopula, LowRankCopula
from gcvae.model.level_functions import LevelFunction
from gcvae.model.marginals import MarginalOutputs, MarginalParameters, Marginals
from gcvae.model.networks import ColumnShape, Dropout, EmptyLinear, Encoder, linear, perceptron
from gcvae.model.number_marginals import GaussianMarginal, Marginal
from gcvae.model.priors import Prior
from gcvae.model.walks import AutoregressiveWalk, ColumnWalk, IndependentWalk
from gcvae.numerics.generators import normal, uniform
from gcvae.numerics.normal import LOG_SQRT_2PI, log_normal_density

MINIMUM_LOG_OMEGA = -12.0
"""Lower limit of log omega of the VAE-ROC, in squared standard deviations; without it, frequent
values would drive the bound to infinity."""


Draws = Callable[[Tensor, torch.Generator], tuple[Tensor, Tensor]]
"""Function (z, generator) that samples the codes and values of one row for each z.

Shape: z (n, K) -> two of (n, D).
"""

Likelihoods = Callable[[EncodedTable, Tensor, Tensor], Tensor]
"""Function (rows, z, noise) that returns cumulative log densities of rows given z: entry j is
log p(x|z) of the first j + 1 columns in the decoder's order.

Shape: rows (n, D), z (S, n, K), noise (S, n, `n_uniforms`) -> (S, n, D).
"""


class Conditional(ABC):
    """Distribution p(x|z) for a batch (...) of z: one row is scored or sampled for each z.

    Attributes:
        marginals: Marginals of the decoder.
    """

    marginals: Marginals

    @property
    @abstractmethod
    def alone(self) -> MarginalParameters:
        """Parameters of the marginals p_j(x_j|z) of each column j; for an autoregressive decoder
        those of its copula head."""

    @property
    @abstractmethod
    def loadings(self) -> Tensor | None:
        """Loadings A of the covariance Psi = omega I + A A^T, which the locality regulariser
        penalises; None for independence. Shape: (..., D, r), for D columns and r factors."""

    @abstractmethod
    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z) of the observed cells, in nats.

        Args:
            rows: The n rows, with D columns. Shape: (n, D).
            jitter: Uniform samples, which place each level within its interval of probabilities
                (continuous extension); None for the exact likelihood. Shape: (..., n, D).

        Shape: (..., n).
        """

    def log_exact(self, rows: EncodedTable, generator: torch.Generator) -> Tensor:
        """Returns log p(x|z) of the observed cells; integrals without a closed form are estimated
        with samples from the generator.

        Shape: n rows -> (..., n).
        """
        return self.log_prob(rows, None)

    def log_head(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor | None:
        """Returns log p(x|z) of n rows under the copula head of an autoregressive decoder, at the
        first n latent vectors; None for other decoders. Shape: (n,)."""
        return None

    @property
    def order(self) -> Sequence[int]:
        """Column indices in the order of the chain rule, or in table order if it does not
        matter."""
        return range(len(self.marginals.columns))

    @abstractmethod
    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """Returns cumulative log densities given z: entry j is that of the observed cells among the
        first j + 1 columns in `order`, in nats.

        Args:
            rows: The n rows, with D columns. Shape: (n, D).
            noise: Uniform noise for integrals without a closed form: over unobserved cells and
                intervals of an autoregressive decoder, or the factors of a copula of rank above
                one. Shape: (..., n, U), with U = `Decoder.n_uniforms`.
            jitter: Uniform samples of the continuous extension of levels; None for the exact
                likelihood. Shape: (..., n, D).

        Shape: (..., n, D).
        """

    @abstractmethod
    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates one row for each z.

        Returns:
            Integer code of each cell, and its value if it is a number (else 0). Shape: (..., D)
            each, for D columns.
        """

    @abstractmethod
    def walk(self, factor: Tensor) -> ColumnWalk:
        """Returns an object that scores or generates the columns one by one, given z and the
        copula's factors.

        Shape: factor (N, F), for N rows and F factors.
        """

    @abstractmethod
    def correlation(self) -> Tensor:
        """Returns the correlation matrix of the normal scores of D columns given z.

        Shape: (..., D, D).
        """


class Decoder(nn.Module, ABC):
    """Network that computes the distribution p(x|z) from a latent vector z.

    Attributes:
        marginals: Output layers of the marginals p_j(x_j|z).
        trunk: Network from z to the hidden vector.
        n_factors: Number of factors f of the copula, which couple the columns in addition to z.
        is_autoregressive: Whether columns depend on earlier columns, in addition to z and f.
        functions: Functional dependencies between coded columns that the decoder enforces.
        change_points: Points at which densities of numbers have steps; only of an autoregressive
            decoder.
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
        """Returns p(x|z) for each z.

        Args:
            z: Latent vectors of K dimensions. Shape: (..., K).
            dropout: Dropout of a training step of an autoregressive decoder; None otherwise.
        """

    def row_draws(self) -> Draws:
        """Returns a function that samples rows given z; it is valid until the weights change."""
        return lambda z, generator: self(z).sample(generator)

    def row_likelihoods(self) -> Likelihoods:
        """Returns a function that computes log densities of rows given z; it is valid until the
        weights change."""
        return lambda rows, z, noise: self(z).log_prefixes(rows, noise)

    @property
    def n_uniforms(self) -> int:
        """Number of uniform samples per row that `row_likelihoods` needs: one for each column, or
        one for each factor of the copula if there are more factors."""
        return max(len(self.marginals.columns), self.n_factors)

    @property
    def order(self) -> Sequence[int] | None:
        """Column indices in the order of the chain rule; None if the order does not matter."""
        return None

    def ordered_walk(self, z: Tensor) -> AutoregressiveWalk | None:
        """Returns an object that scores or generates the columns one by one in `order`, given z;
        None if the order does not matter. Shape: z (N, K), N rows by K dimensions."""
        return None


@dataclass(frozen=True)
class CopulaConditional(Conditional):
    """Distribution p(x|z) = c(u) prod_j p_j(x_j|z), with c the density of the copula given z.

    Attributes:
        marginals: Marginals of the decoder.
        parameters: Parameters of the marginals given z.
        copula: Copula given z.
        score_gradient: Whether normal scores are differentiated with respect to the marginals.

    Source: Section 4.
    """

    marginals: Marginals
    parameters: MarginalParameters
    copula: Copula
    score_gradient: bool

    @property
    def alone(self) -> MarginalParameters:
        """Parameters of the marginals given z."""
        return self.parameters

    @property
    def loadings(self) -> Tensor | None:
        """Loadings of D columns on the copula's r factors; None for independence. Shape: (..., D,
        r)."""
        return self.copula.loadings

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z) of the observed cells: exactly if `jitter` is None, else by the
        continuous extension, which places levels at random in their intervals of probability.

        With jitter, gradients do not flow through the normal scores unless `score_gradient` is
        True.

        Source: Eq. (elbo_gcvae), its first four lines; exact: `LowRankCopula.log_mixed`.
        """
        cells = self.marginals.cells(self.parameters, rows)
        # A level not in the table has probability zero; the copula is not evaluated.
        impossible = (torch.isneginf(cells.log_prob) & rows.observed).any(-1)
        present = rows.observed & ~torch.isneginf(cells.log_prob)
        log_marginals = torch.where(present, cells.log_prob, 0.0)
        if isinstance(self.copula, IndependenceCopula):
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
        return torch.where(impossible, -torch.inf, log_prob)

    def log_exact(self, rows: EncodedTable, generator: torch.Generator) -> Tensor:
        """Returns log p(x|z) or, for ranks above one, the log of an unbiased estimate of p(x|z)."""
        if self.copula.rank <= 1:
            return self.log_prob(rows, None)
        n_uniforms = max(len(self.marginals.columns), self.copula.rank)
        shape = (*self.parameters.shape_of(rows.codes.shape[:-1]), n_uniforms)
        return self.log_prefixes(rows, uniform(shape, generator, torch.float64))[..., -1]

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """Returns cumulative log densities: entry j is log p(x|z) of the observed cells among the
        first j + 1 columns.

        Args:
            rows: The n rows x, with D columns. Shape: (n, D).
            noise: Uniform noise for the integral over the factors of a copula of rank above one.
            jitter: Uniform samples that place levels within their intervals of probabilities; None
                for the exact likelihood.

        Shape: (..., n, D).
        """
        cells = self.marginals.cells(self.parameters, rows)
        impossible = torch.isneginf(cells.log_prob) & rows.observed
        present = rows.observed & ~impossible
        log_marginals = torch.where(present, cells.log_prob, 0.0).double()
        if isinstance(self.copula, IndependenceCopula):
            prefixes = log_marginals.cumsum(-1)
        elif jitter is not None:
            score = torch.where(present, cells.jittered_scores(jitter), 0.0)
            places = torch.arange(score.shape[-1], device=score.device)
            log_c = [self.copula.log_density(score, present & (places <= j)) for j in self.order]
            prefixes = log_marginals.cumsum(-1) + torch.stack(log_c, -1)
        else:
            shift = None if noise is None else noise[..., : self.copula.loadings.shape[-1]]
            log_points = torch.where(cells.is_point, log_marginals, 0.0).cumsum(-1)
            bounds = cells.interval_bounds()
            prefixes = log_points + self.copula.log_prefixes(
                cells.score, *bounds, cells.is_point, present, shift
            )
        return torch.where(impossible.cumsum(-1) > 0, -torch.inf, prefixes)

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Samples normal scores from the copula and applies the quantile function of each marginal.

        Returns:
            Integer codes of cells, and values of numbers (else 0). Shape: (..., D) each, for D
            columns.

        Source: Appendix B.
        """
        return self.marginals.quantile(self.parameters, self.copula.sample(generator))

    def walk(self, factor: Tensor) -> ColumnWalk:
        """Returns an object that scores or generates the columns one by one; they are independent
        given z and the copula's `factor`."""
        return IndependentWalk(self.marginals, self.parameters, *self.copula.given(factor))

    def correlation(self) -> Tensor:
        """Returns the copula's correlation matrix of D columns. Shape: (..., D, D)."""
        return self.copula.correlation()


class CopulaDecoder(Decoder):
    """Decoder that maps z to marginals and a Gaussian copula; rank 0 is the independence copula.

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
        family: type[Marginal],
        n_components: int = 1,
        means_in_unit: bool = False,
        context: Sequence[ColumnShape] = (),
    ) -> None:
        super().__init__()
        self.n_columns, self.n_factors, self.score_gradient = len(columns), rank, score_gradient
        self.trunk: nn.Module = perceptron(d_latent, widths, activation)
        self.d_hidden = widths[-1]
        if context:
            trunk = ContextTrunk(self.trunk, d_latent, context)
            self.trunk, self.d_hidden = trunk, widths[-1] + trunk.d_features
        self.marginals = Marginals(self.d_hidden, columns, family, n_components, means_in_unit)
        self.loadings = _loadings_head(self.d_hidden, self.n_columns * rank) if rank else None

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> CopulaConditional:
        """Returns p(x|z) for each z; `dropout` is not used. Shape: z (..., K), K dimensions."""
        hidden = self.trunk(z)
        return self.at(hidden, self.marginals.outputs(hidden))

    def at(self, hidden: Tensor, outputs: MarginalOutputs) -> CopulaConditional:
        """Returns p(x|z), given the hidden vector that the trunk computes from z and the outputs of
        the marginals' layers."""
        parameters = self.marginals.parameters_of(outputs)
        return CopulaConditional(
            self.marginals, parameters, self._copula(hidden), self.score_gradient
        )

    def _copula(self, hidden: Tensor) -> Copula:
        if self.loadings is None:
            return IndependenceCopula(torch.Size((*hidden.shape[:-1], self.n_columns)))
        return LowRankCopula(self.loadings(hidden).unflatten(-1, (self.n_columns, self.n_factors)))


@dataclass(frozen=True)
class PrincipalDirectionConditional(Conditional):
    """Distribution p(x|z) with N(mu, omega I + a a^T) over the D_real columns of numbers.

    Levels are independent of each other and of the numbers given z.

    # PAPER-DIFF: the paper limits VAE-ROC to continuous data. Here discrete columns and the missing
    # level keep their categorical marginals beside it, so that every table has a VAE-ROC.

    Attributes:
        marginals: Marginals of the decoder.
        parameters: Parameters of the marginals given z.
        direction: Principal direction a. Shape: (..., D_real).
        noise: Noise variance omega. Shape: (...).
    """

    marginals: Marginals
    parameters: MarginalParameters
    direction: Tensor
    noise: Tensor

    @property
    def mean(self) -> Tensor:
        """Means mu of the D_real columns of numbers. Shape: (..., D_real)."""
        return self.parameters.numbers.components[1][..., 0]

    @property
    def alone(self) -> MarginalParameters:
        """Parameters of each column's marginal. A column j of numbers has N(mu_j, omega + a_j^2),
        with principal direction a and noise variance omega."""
        variance = self.noise[..., None] + self.direction.square()
        return self._with_numbers(self.mean, 0.5 * variance.log())

    def _with_numbers(self, mean: Tensor, log_sigma: Tensor) -> MarginalParameters:
        outputs = torch.stack([torch.zeros_like(mean), mean, log_sigma], -1)[..., None]
        return replace(self.parameters, numbers=GaussianMarginal(outputs))

    @property
    def loadings(self) -> Tensor:
        """Principal direction, as loadings of D_real columns of numbers on one factor. Shape: (...,
        D_real, 1)."""
        return self.direction[..., None]

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns the exact log p(x|z); `jitter` is not used.

        log N = -n/2 log 2 pi - n/2 log omega - 1/2 log(1 + a^T a / omega)
                - 1/2 [x~^T x~ / omega - (a^T x~)^2 / (omega^2 + omega a^T a)],  x~ = x - mu,
        over the n cells of the row that contain a number, which have the distribution N(mu, omega I
        + a a^T).

        Source: Eq. (elbo_vae_roc2), its misprinted second "=" read as a sum.
        """
        log_codes = self.marginals.log_codes(self.parameters, rows.codes)
        log_codes = torch.where(rows.observed, log_codes, 0.0).sum(-1)
        j = self.marginals.real_columns
        present = (rows.codes == self.marginals.point_codes)[..., j] & rows.observed[..., j]
        residual = (rows.values[..., j].to(self.mean.dtype) - self.mean) * present
        a = self.direction * present
        return log_codes + _log_rank_one_normal(
            residual, a, self.noise, present.sum(-1).to(a.dtype)
        )

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """Returns cumulative log densities: entry j is log p(x|z) of the first j + 1 columns.

        `noise` and `jitter` are not used. Codes are independent given z, and a rank-one copula
        couples the numbers: N(mu, omega I + a a^T) is the Gaussian copula with loadings a /
        sqrt(omega) and marginals N(mu_j, omega + a_j^2), which also gives probabilities of
        intervals. Shape: n rows of D columns (n, D) -> (..., n, D).
        """
        log_codes = self.marginals.log_codes(self.parameters, rows.codes)
        prefixes = torch.where(rows.observed, log_codes, 0.0).double().cumsum(-1)
        j = self.marginals.real_columns
        if not len(j):
            return prefixes
        present = (rows.codes == self.marginals.point_codes)[..., j] & rows.observed[..., j]
        is_point = ~rows.are_intervals[..., j]
        mean = self.mean.double()
        log_sigma = 0.5 * (self.noise[..., None] + self.direction.square()).double().log()
        score = (rows.values[..., j] - mean) * torch.exp(-log_sigma)
        log_density = log_normal_density(score) - log_sigma
        log_density = torch.where(present & is_point, log_density, 0.0).cumsum(-1)
        intervals = rows.values[..., None] if rows.intervals is None else rows.intervals
        low, high = ((intervals[..., j, end] - mean) * torch.exp(-log_sigma) for end in (0, -1))
        copula = LowRankCopula(self.loadings, self.noise)
        log_numbers = log_density + copula.log_prefixes(score, low, high, is_point, present)
        steps = log_numbers.diff(dim=-1, prepend=torch.zeros_like(log_numbers[..., :1]))
        return prefixes + torch.zeros_like(prefixes).index_copy(-1, j, steps).cumsum(-1)

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Samples a row for each z: numbers x = mu + a s + sqrt(omega) eps with standard normal s
        and eps, and codes by their probabilities.

        Returns:
            Integer codes of cells, and values of numbers (else 0). Shape: (..., D) each, for D
            columns.
        """
        mean = self.mean
        s = normal((*mean.shape[:-1], 1), generator)
        noise = normal(tuple(mean.shape), generator)
        numbers = mean + self.direction * s + self.noise.sqrt()[..., None] * noise
        scores = normal((*mean.shape[:-1], len(self.marginals.columns)), generator)
        codes, values = self.marginals.quantile(self.parameters, scores)
        j = self.marginals.real_columns
        is_number = codes[..., j] == self.marginals.point_codes[j]
        values[..., j] = torch.where(is_number, numbers.double(), 0.0)
        return codes, values

    def walk(self, factor: Tensor) -> ColumnWalk:
        """Returns an object that scores or generates the columns one by one; they are independent
        given z and the factor f.

        Given f the numbers of column j have N(mu_j + a_j f, omega), with a the principal direction.
        """
        if not len(self.marginals.real_columns):
            return IndependentWalk(self.marginals, self.parameters)
        mean = self.mean + self.direction * factor
        log_sigma = 0.5 * self.noise.log()[:, None].expand_as(mean)
        return IndependentWalk(self.marginals, self._with_numbers(mean, log_sigma))

    def correlation(self) -> Tensor:
        """Returns the correlation matrix of D columns given z; levels are uncorrelated. Shape:
        (..., D, D)."""
        n = len(self.marginals.columns)
        loadings = self.direction.new_zeros((*self.direction.shape[:-1], n))
        loadings[..., self.marginals.real_columns] = self.direction
        return LowRankCopula(loadings[..., None], self.noise).correlation()


def _log_rank_one_normal(residual: Tensor, a: Tensor, omega: Tensor, n: Tensor) -> Tensor:
    """Returns log N(residual; 0, omega I_n + a a^T) over n of the D columns, others being zero.

    Shape: residual (..., D), a (..., D), omega (...), n (...) -> (...).
    """
    a_squared = a.square().sum(-1)
    projection = (a * residual).sum(-1)
    quadratic = residual.square().sum(-1) / omega
    quadratic = quadratic - projection.square() / (omega * (omega + a_squared))
    log_det = n * omega.log() + torch.log1p(a_squared / omega)
    return -n * LOG_SQRT_2PI - 0.5 * (log_det + quadratic)


class PrincipalDirectionDecoder(Decoder):
    """Decoder of the VAE-ROC, which maps z to N(mu, omega I + a a^T) over the columns of numbers.

    Source: Eq. (vae_roc2).
    """

    def __init__(
        self,
        columns: Sequence[ColumnShape],
        d_latent: int,
        widths: Sequence[int],
        activation: str,
        *,
        means_in_unit: bool = False,
    ) -> None:
        super().__init__()
        self.trunk = perceptron(d_latent, widths, activation)
        self.marginals = Marginals(
            widths[-1], columns, GaussianMarginal, means_in_unit=means_in_unit
        )
        n_real = len(self.marginals.real_columns)
        self.n_factors = int(n_real > 0)
        self.direction = _loadings_head(widths[-1], n_real)
        self.log_omega = nn.Linear(widths[-1], 1)

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> PrincipalDirectionConditional:
        """Returns p(x|z) for each z; `dropout` is not used. Shape: z (..., K), K dimensions."""
        hidden = self.trunk(z)
        return PrincipalDirectionConditional(
            self.marginals,
            self.marginals(hidden),
            self.direction(hidden),
            self.log_omega(hidden)[..., 0].clamp(min=MINIMUM_LOG_OMEGA).exp(),
        )


def _loadings_head(d_in: int, d_out: int) -> nn.Linear | EmptyLinear:
    """Returns the linear layer that computes the loadings, with Glorot weights.

    Loadings must not start at zero, where their gradient vanishes.
    """
    head = linear(d_in, d_out)
    if d_out:
        nn.init.xavier_uniform_(head.weight)
    return head


def join_context(z: Tensor, context: Tensor | None) -> Tensor:
    """Concatenates latent vectors and the contexts of a conditional model, if there are any.

    Shape: z (..., n, K), K dimensions; context (n, 2 C), a code and a value of C columns, or None
    -> (..., n, K + 2 C) or (..., n, K).
    """
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
        contexts: Contexts from which `latents` chooses at random, those of the training rows during
            a fit; None otherwise. Shape: (n, 2 C), codes and values of C columns.
    """

    contexts: Tensor | None = None

    def __init__(self, prior: Prior, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.prior = prior
        self.encoder = encoder
        self.decoder = decoder

    def latents(self, n: int, generator: torch.Generator) -> Tensor:
        """Returns n samples of z from the prior; a conditional model adds a random context to each.

        Shape: (n, K), K dimensions; with a context of C columns (n, K + 2 C).

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
        """Properties of the context's columns; empty for an unconditional model."""
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
        """Returns p(x|z) for each z; `dropout` is that of a training step, else None.

        Shape: z (..., K), K dimensions.
        """
        conditional: Conditional = self.decoder(z, dropout)
        return conditional

    def walk(self, latent: Tensor) -> ColumnWalk:
        """Returns an object that scores or generates the columns one by one. `latent` concatenates
        the K dimensions of z and the F factors of the copula. Shape: (N, K + F)."""
        d_latent = latent.shape[-1] - self.decoder.n_factors
        return self.conditional(latent[:, :d_latent]).walk(latent[:, d_latent:].double())

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Generates n rows.

        Returns:
            Integer code of each cell, and its value if it is a number (else 0). Shape: (n, D) each,
            for D columns.
        """
        return self.conditional(self.latents(n, generator)).sample(generator)
