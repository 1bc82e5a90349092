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
"""(z, generator) -> (codes, values) of a row for each z. Shape: (n, K) -> two of (n, D)."""

Likelihoods = Callable[[EncodedTable, Tensor, Tensor], Tensor]
"""(rows, z, noise) -> log p(x|z) of the first column in the decoder's order, of the first two, ...

Shape: (n, D), (S, n, K), (S, n, `n_uniforms`) -> (S, n, D).
"""


class Conditional(ABC):
    """p(x|z) at a batch (...) of z: each row is scored, or sampled, at its own z."""

    marginals: Marginals

    @property
    @abstractmethod
    def alone(self) -> MarginalParameters:
        """The marginals p_j(x_j|z); for an autoregressive decoder those of its copula head."""

    @property
    @abstractmethod
    def loadings(self) -> Tensor | None:
        """A of Psi = omega I + A A^T, which the locality regulariser penalises. (..., D, r)."""

    @abstractmethod
    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z) of the observed cells; without `jitter` the exact value.

        Shape: rows (n, D), jitter (..., n, D) -> (..., n), nats.
        """

    def log_exact(self, rows: EncodedTable, generator: torch.Generator) -> Tensor:
        """Returns log p(x|z) of the observed cells, with noise if there is no closed form. (...,
        n)."""
        return self.log_prob(rows, None)

    def log_head(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor | None:
        """Returns log p(x|z) under the copula head, for the first rows of z; None without one."""
        return None

    @property
    def order(self) -> Sequence[int]:
        """Indices of the columns in the order of the chain rule; the table's order if it does not
        matter."""
        return range(len(self.marginals.columns))

    @abstractmethod
    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """Returns log p of the first observed cell given z, of the first two, and so on, in
        `order`.

        `noise` is uniform and used where there is no closed form: unobserved cells and intervals of
        an autoregressive decoder, a copula of rank above one. With `jitter` a copula is evaluated
        by the continuous extension.

        Shape: rows (n, D), noise (..., n, U), jitter (..., n, D) -> (..., n, D), nats; U is
        `Decoder.n_uniforms`.
        """

    @abstractmethod
    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Returns (codes, values) of one row for each z. Shape: two of (..., D)."""

    @abstractmethod
    def walk(self, factor: Tensor) -> ColumnWalk:
        """Returns an autoregressive pass at z and the factor f. Shape: (N, F)."""

    @abstractmethod
    def correlation(self) -> Tensor:
        """Returns correlations of the columns' normal scores given z. Shape: (..., D, D)."""


class Decoder(nn.Module, ABC):
    """Network from z to p(x|z).

    Attributes:
        n_factors: Dimension of the factor f that couples the columns in addition to z.
        is_autoregressive: Whether columns depend on earlier ones, in addition to z and f.
        functions: Functional dependencies between coded columns that the decoder enforces.
        change_points: Change points of numbers, of an autoregressive decoder.
        evaluations_at_once: Recommended number of rows times samples in one call of
            `row_likelihoods`.
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
        """Returns p(x|z). `dropout` is for training steps of an autoregressive decoder. Shape: z
        (..., K)."""

    def row_draws(self) -> Draws:
        """Returns a sampler of rows at z; valid while the weights do not change."""
        return lambda z, generator: self(z).sample(generator)

    def row_likelihoods(self) -> Likelihoods:
        """Returns an evaluator of rows at z; valid while the weights do not change."""
        return lambda rows, z, noise: self(z).log_prefixes(rows, noise)

    @property
    def n_uniforms(self) -> int:
        """Number of uniforms per row; the integral of a copula of rank r needs r."""
        return max(len(self.marginals.columns), self.n_factors)

    @property
    def order(self) -> Sequence[int] | None:
        """Indices of the columns in the order of the chain rule; None if the order does not
        matter."""
        return None

    def ordered_walk(self, z: Tensor) -> AutoregressiveWalk | None:
        """Returns an autoregressive pass at z, or None if the order does not matter. Shape: (N,
        K)."""
        return None


@dataclass(frozen=True)
class CopulaConditional(Conditional):
    """p(x|z) = c_Psi(z)(u) prod_j p_j(x_j|z). Source: Section 4."""

    marginals: Marginals
    parameters: MarginalParameters
    copula: Copula
    score_gradient: bool

    @property
    def alone(self) -> MarginalParameters:
        """The marginals."""
        return self.parameters

    @property
    def loadings(self) -> Tensor | None:
        """Loadings of the copula, None for the independence copula."""
        return self.copula.loadings

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z), by the continuous extension with jitter, exactly without it.

        With jitter the normal scores are constants for the gradient unless `score_gradient`.

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
        """Returns log p(x|z); for ranks above one the log of an unbiased estimate of p(x|z)."""
        if self.copula.rank <= 1:
            return self.log_prob(rows, None)
        n_uniforms = max(len(self.marginals.columns), self.copula.rank)
        shape = (*self.parameters.shape_of(rows.codes.shape[:-1]), n_uniforms)
        return self.log_prefixes(rows, uniform(shape, generator, torch.float64))[..., -1]

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """Returns `log_prob` of the first column, of the first two, and so on. Shape: (..., n,
        D)."""
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
        """Samples q from the copula and applies the marginals' quantiles. Source: Appendix B."""
        return self.marginals.quantile(self.parameters, self.copula.sample(generator))

    def walk(self, factor: Tensor) -> ColumnWalk:
        """Returns a pass over columns that are independent given z and f, or given z without
        loadings."""
        return IndependentWalk(self.marginals, self.parameters, *self.copula.given(factor))

    def correlation(self) -> Tensor:
        """Returns R, the copula's Psi scaled to a unit diagonal."""
        return self.copula.correlation()


class CopulaDecoder(Decoder):
    """Maps z to marginals and a Gaussian copula; `rank` 0 is the independence copula.

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
        """Returns p(x|z). Shape: z (..., K)."""
        hidden = self.trunk(z)
        return self.at(hidden, self.marginals.outputs(hidden))

    def at(self, hidden: Tensor, outputs: MarginalOutputs) -> CopulaConditional:
        """Returns p(x|z) from the hidden vector at z and the marginals' outputs."""
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
    """p(x|z) = N(mu, omega I + a a^T) over numbers; levels are independent of them given z.

    # PAPER-DIFF: the paper limits VAE-ROC to continuous data. Here discrete columns and the missing
    # level keep their categorical marginals beside it, so that every table has a VAE-ROC.

    Shape: direction (..., D_real), noise (...).
    """

    marginals: Marginals
    parameters: MarginalParameters
    direction: Tensor
    noise: Tensor

    @property
    def mean(self) -> Tensor:
        """mu. Shape: (..., D_real)."""
        return self.parameters.numbers.components[1][..., 0]

    @property
    def alone(self) -> MarginalParameters:
        """The marginals; those of numbers are N(mu_j, omega + a_j^2)."""
        variance = self.noise[..., None] + self.direction.square()
        return self._with_numbers(self.mean, 0.5 * variance.log())

    def _with_numbers(self, mean: Tensor, log_sigma: Tensor) -> MarginalParameters:
        outputs = torch.stack([torch.zeros_like(mean), mean, log_sigma], -1)[..., None]
        return replace(self.parameters, numbers=GaussianMarginal(outputs))

    @property
    def loadings(self) -> Tensor:
        """The principal direction as a matrix of rank one. Shape: (..., D_real, 1)."""
        return self.direction[..., None]

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns log p(x|z), always exactly; `jitter` is not used.

        log N = -n/2 log 2 pi - n/2 log omega - 1/2 log(1 + a^T a / omega)
                - 1/2 [x~^T x~ / omega - (a^T x~)^2 / (omega^2 + omega a^T a)],  x~ = x - mu,
        over the n numbers that the row holds.

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
        """Returns log p(x|z) of the first columns, exactly: independent codes and a rank-one
        copula.

        N(mu, omega I + a a^T) is the Gaussian copula with loadings a / sqrt(omega) and marginals
        N(mu_j, omega + a_j^2), which also gives probabilities of intervals.

        Shape: rows (n, D) -> (..., n, D).
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
        """Samples numbers x = mu + a s + sqrt(omega) eps, and codes by their probabilities."""
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
        """Returns a pass over independent columns; given f a number is N(mu_j + a_j f, omega)."""
        if not len(self.marginals.real_columns):
            return IndependentWalk(self.marginals, self.parameters)
        mean = self.mean + self.direction * factor
        log_sigma = 0.5 * self.noise.log()[:, None].expand_as(mean)
        return IndependentWalk(self.marginals, self._with_numbers(mean, log_sigma))

    def correlation(self) -> Tensor:
        """Returns Psi scaled to a unit diagonal; levels are uncorrelated. Shape: (..., D, D)."""
        n = len(self.marginals.columns)
        loadings = self.direction.new_zeros((*self.direction.shape[:-1], n))
        loadings[..., self.marginals.real_columns] = self.direction
        return LowRankCopula(loadings[..., None], self.noise).correlation()


def _log_rank_one_normal(residual: Tensor, a: Tensor, omega: Tensor, n: Tensor) -> Tensor:
    """Returns log N(residual; 0, omega I_n + a a^T). (..., D), (..., D), (...), (...) -> (...)."""
    a_squared = a.square().sum(-1)
    projection = (a * residual).sum(-1)
    quadratic = residual.square().sum(-1) / omega
    quadratic = quadratic - projection.square() / (omega * (omega + a_squared))
    log_det = n * omega.log() + torch.log1p(a_squared / omega)
    return -n * LOG_SQRT_2PI - 0.5 * (log_det + quadratic)


class PrincipalDirectionDecoder(Decoder):
    """Maps z to (mu, a, omega) of the VAE-ROC. Source: Eq. (vae_roc2)."""

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
        """Returns p(x|z). Shape: z (..., K)."""
        hidden = self.trunk(z)
        return PrincipalDirectionConditional(
            self.marginals,
            self.marginals(hidden),
            self.direction(hidden),
            self.log_omega(hidden)[..., 0].clamp(min=MINIMUM_LOG_OMEGA).exp(),
        )


def _loadings_head(d_in: int, d_out: int) -> nn.Linear | EmptyLinear:
    """Returns the linear layer of the loadings, with Glorot weights.

    It must not start at a = 0, where the gradient with respect to a vanishes.
    """
    head = linear(d_in, d_out)
    if d_out:
        nn.init.xavier_uniform_(head.weight)
    return head


def join_context(z: Tensor, context: Tensor | None) -> Tensor:
    """Concatenates latent vectors and contexts. (..., n, K), (n, 2 C) -> (..., n, K + 2 C)."""
    if context is None:
        return z
    return torch.cat([z, context.to(z).expand(*z.shape[:-1], -1)], dim=-1)


class GenerativeModel(nn.Module):
    """p(x, z) = p(z) p(x|z) with its approximate posterior q(z|x).

    A conditional model is p(x, z | c) = p(z) p(x | z, c); its decoder takes z and c concatenated.

    Attributes:
        contexts: Contexts at which rows are sampled if none are given; those of the training rows
            during a fit. Shape: (n, 2 C).
    """

    contexts: Tensor | None = None

    def __init__(self, prior: Prior, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.prior = prior
        self.encoder = encoder
        self.decoder = decoder

    def latents(self, n: int, generator: torch.Generator) -> Tensor:
        """Returns samples of z from the prior, with contexts for a conditional model. Shape: (n, K
        + 2 C).

        Raises:
            ValueError: A conditional model has no `contexts`.
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
        """Columns of the context; empty for an unconditional model."""
        trunk = self.decoder.trunk
        return trunk.columns if isinstance(trunk, ContextTrunk) else ()

    @property
    def marginals(self) -> Marginals:
        """The decoder's marginals."""
        return self.decoder.marginals

    @property
    def is_autoregressive(self) -> bool:
        """Whether columns depend on earlier ones, in addition to z and a copula."""
        return self.decoder.is_autoregressive

    @property
    def order(self) -> Sequence[int] | None:
        """The decoder's order of the columns."""
        return self.decoder.order

    def conditional(self, z: Tensor, dropout: Dropout | None = None) -> Conditional:
        """Returns p(x|z). `dropout` is for training steps. Shape: z (..., K)."""
        conditional: Conditional = self.decoder(z, dropout)
        return conditional

    def walk(self, latent: Tensor) -> ColumnWalk:
        """Returns an autoregressive pass at latent vectors [z, f]. Shape: (N, K + F)."""
        d_latent = latent.shape[-1] - self.decoder.n_factors
        return self.conditional(latent[:, :d_latent]).walk(latent[:, d_latent:].double())

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Returns (codes, values) of n generated rows. Shape: two of (n, D)."""
        return self.conditional(self.latents(n, generator)).sample(generator)
