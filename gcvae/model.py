"""The generative models of the paper: VAE, VAE-ROC and GCVAE.

A model is a prior, an encoder and a decoder; the decoder maps z to a conditional distribution
p(x|z) of rows, an object with `log_prob`, `sample` and `correlation`. Which model it is, is the
choice of decoder:

    VAE      CopulaDecoder without loadings: marginals and an independence copula
    GCVAE    CopulaDecoder with loadings: marginals and a Gaussian copula
    VAE-ROC  PrincipalDirectionDecoder: N(mu, omega I + a a^T) over the continuous columns
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from gcvae.codec import EncodedTable
from gcvae.copula import Copula, IndependenceCopula, LowRankCopula
from gcvae.generators import normal
from gcvae.marginals import MarginalOutputs, Marginals
from gcvae.mixtures import MarginalParameters
from gcvae.networks import ColumnShape, Dropout, EmptyLinear, Encoder, linear, perceptron
from gcvae.normal import LOG_SQRT_2PI, log_normal_density
from gcvae.priors import Prior

MINIMUM_LOG_OMEGA = -12.0
"""log omega of the VAE-ROC, in squared standard deviations, is held above this (atoms again)."""


class Conditional(Protocol):
    """p(x|z) at the z of a batch (...): every row is scored under, or drawn from, its own z."""

    @property
    def loadings(self) -> Tensor | None:
        """A of Psi = omega I + A A^T, which the locality regulariser holds short. (..., D, r)."""

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """log p(x|z) of the observed cells; `jitter` None asks for the exact value.

        Shape: rows (n, D), jitter (..., n, D) -> (..., n), nats.
        """

    @property
    def order(self) -> Sequence[int]:
        """The columns in the order of the chain rule."""

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """log p of the first observed cell given z, of the first two, and so on, in `order`.

        `noise`, uniform, is for what has no closed form: blanks and intervals of a refined model,
        a copula of a rank above one. With `jitter` a copula is evaluated by the continuous
        extension.

        Shape: rows (n, D), noise and jitter (..., n, D) -> (..., n, D), nats.
        """

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(codes, values) of one row for each z. Shape: two of (..., D)."""

    def correlation(self) -> Tensor:
        """Correlations of the columns' normal scores given z. Shape: (..., D, D)."""


class Decoder(Protocol):
    """Network from z to p(x|z)."""

    def __call__(self, z: Tensor) -> Conditional:
        """Shape: z (..., K)."""


@dataclass(frozen=True)
class CopulaConditional:
    """p(x|z) = c_Psi(z)(u) prod_j p_j(x_j|z). Source: Section 4."""

    marginals: Marginals
    parameters: MarginalParameters
    copula: Copula
    score_gradient: bool

    @property
    def loadings(self) -> Tensor | None:
        """Loadings of the copula, None for the independence copula."""
        return self.copula.loadings if isinstance(self.copula, LowRankCopula) else None

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """log p(x|z), with given jitter by the continuous extension, without it exactly.

        With jitter the normal scores are constants for the gradient unless `score_gradient`.

        Source: Eq. (elbo_gcvae), its first four lines; exact: `LowRankCopula.log_mixed`.
        """
        cells = self.marginals.cells(self.parameters, rows)
        # A level that the table never had: the copula is not asked, the marginal says -inf.
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

    @property
    def order(self) -> range:
        """The table's."""
        return range(len(self.marginals.columns))

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """`log_prob` of the first column, of the first two, and so on. Shape: (..., n, D)."""
        cells = self.marginals.cells(self.parameters, rows)
        impossible = torch.isneginf(cells.log_prob) & rows.observed
        present = rows.observed & ~impossible
        log_marginals = torch.where(present, cells.log_prob, 0.0).double()
        if isinstance(self.copula, IndependenceCopula):
            prefixes = log_marginals.cumsum(-1)
        elif jitter is not None:
            score = torch.where(present, cells.jittered_scores(jitter), 0.0)
            log_c = [
                self.copula.log_density(score, present & (self._places <= j)) for j in self.order
            ]
            prefixes = log_marginals.cumsum(-1) + torch.stack(log_c, -1)
        else:
            shift = None if noise is None else noise[..., : self.copula.loadings.shape[-1]]
            log_points = torch.where(cells.is_point, log_marginals, 0.0).cumsum(-1)
            bounds = cells.interval_bounds()
            prefixes = log_points + self.copula.log_prefixes(
                cells.score, *bounds, cells.is_point, present, shift
            )
        return torch.where(impossible.cumsum(-1) > 0, -torch.inf, prefixes)

    @property
    def _places(self) -> Tensor:
        return torch.arange(len(self.marginals.columns), device=self.parameters.mean.device)

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """q from the copula, then the marginals' quantiles. Source: Appendix B."""
        return self.marginals.quantile(self.parameters, self.copula.sample(generator))

    def correlation(self) -> Tensor:
        """R, the copula's Psi scaled to ones on the diagonal."""
        return self.copula.correlation()


class CopulaDecoder(nn.Module):
    """z -> marginals and Gaussian copula; with `rank` 0 the copula is independence.

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
    ) -> None:
        super().__init__()
        self.n_columns, self.rank, self.score_gradient = len(columns), rank, score_gradient
        self.trunk = perceptron(d_latent, widths, activation)
        self.marginals = Marginals(widths[-1], columns, n_components)
        self.loadings = _loadings_head(widths[-1], self.n_columns * rank) if rank else None

    def forward(self, z: Tensor) -> CopulaConditional:
        """p(x|z). Shape: z (..., K)."""
        hidden = self.trunk(z)
        return self.at(hidden, self.marginals.outputs(hidden))

    def at(self, hidden: Tensor, outputs: MarginalOutputs) -> CopulaConditional:
        """p(x|z) from the hidden vector at z and the marginals' outputs there."""
        parameters = self.marginals.parameters_of(outputs)
        return CopulaConditional(
            self.marginals, parameters, self._copula(hidden), self.score_gradient
        )

    def _copula(self, hidden: Tensor) -> Copula:
        if self.loadings is None:
            return IndependenceCopula(torch.Size((*hidden.shape[:-1], self.n_columns)))
        return LowRankCopula(self.loadings(hidden).unflatten(-1, (self.n_columns, self.rank)))


@dataclass(frozen=True)
class PrincipalDirectionConditional:
    """p(x|z) = N(mu, omega I + a a^T) over numbers; levels are independent of them given z.

    # PAPER-DIFF: the paper limits VAE-ROC to continuous data. Here discrete columns and the missing
    # level keep their categorical marginals beside it, so that every table has a VAE-ROC.

    Shape: mean and direction (..., D_real), noise (...).
    """

    marginals: Marginals
    parameters: MarginalParameters
    direction: Tensor
    noise: Tensor

    @property
    def loadings(self) -> Tensor:
        """The principal direction as a matrix of rank one. Shape: (..., D_real, 1)."""
        return self.direction[..., None]

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """log p(x|z); it needs no jitter and is always exact.

        log N = -n/2 log 2 pi - n/2 log omega - 1/2 log(1 + a^T a / omega)
                - 1/2 [x~^T x~ / omega - (a^T x~)^2 / (omega^2 + omega a^T a)],  x~ = x - mu,
        over the n numbers that the row holds.

        Source: Eq. (elbo_vae_roc2), its misprinted second "=" read as a sum.
        """
        log_codes = self.marginals.code_tails(self.parameters, rows.codes)[0]
        log_codes = torch.where(rows.observed, log_codes, 0.0).sum(-1)
        j = self.marginals.real_columns
        present = (rows.codes == self.marginals.point_codes)[..., j] & rows.observed[..., j]
        mean = self.parameters.mean[..., 0]
        residual = (rows.values[..., j].to(mean.dtype) - mean) * present
        a = self.direction * present
        return log_codes + _log_rank_one_normal(
            residual, a, self.noise, present.sum(-1).to(a.dtype)
        )

    @property
    def order(self) -> range:
        """The table's."""
        return range(len(self.marginals.columns))

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """log p(x|z) of the first columns, exact: codes are independent, numbers a rank-one copula.

        N(mu, omega I + a a^T) is the Gaussian copula of the loadings a / sqrt(omega) on marginals
        N(mu_j, omega + a_j^2), and so holds intervals of numbers too.

        Shape: rows (n, D) -> (..., n, D).
        """
        log_codes = self.marginals.log_codes(self.parameters, rows.codes)
        prefixes = torch.where(rows.observed, log_codes, 0.0).double().cumsum(-1)
        j = self.marginals.real_columns
        if not len(j):
            return prefixes
        present = (rows.codes == self.marginals.point_codes)[..., j] & rows.observed[..., j]
        is_point = ~rows.are_intervals[..., j]
        mean = self.parameters.mean[..., 0].double()
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
        """x = mu + a s + sqrt(omega) eps for numbers, codes by their probabilities."""
        mean = self.parameters.mean[..., 0]
        s = normal((*mean.shape[:-1], 1), generator)
        noise = normal(tuple(mean.shape), generator)
        numbers = mean + self.direction * s + self.noise.sqrt()[..., None] * noise
        scores = normal((*mean.shape[:-1], len(self.marginals.columns)), generator)
        codes, values = self.marginals.quantile(self.parameters, scores)
        j = self.marginals.real_columns
        is_number = codes[..., j] == self.marginals.point_codes[j]
        values[..., j] = torch.where(is_number, numbers.double(), 0.0)
        return codes, values

    def correlation(self) -> Tensor:
        """Psi scaled to ones on the diagonal; levels are uncorrelated. Shape: (..., D, D)."""
        n = len(self.marginals.columns)
        loadings = self.direction.new_zeros((*self.direction.shape[:-1], n))
        loadings[..., self.marginals.real_columns] = self.direction
        return LowRankCopula(loadings[..., None], self.noise).correlation()


def _log_rank_one_normal(residual: Tensor, a: Tensor, omega: Tensor, n: Tensor) -> Tensor:
    """log N(residual; 0, omega I_n + a a^T). Shape: (..., D), (..., D), (...), (...) -> (...)."""
    a_squared = a.square().sum(-1)
    projection = (a * residual).sum(-1)
    quadratic = residual.square().sum(-1) / omega
    quadratic = quadratic - projection.square() / (omega * (omega + a_squared))
    log_det = n * omega.log() + torch.log1p(a_squared / omega)
    return -n * LOG_SQRT_2PI - 0.5 * (log_det + quadratic)


class PrincipalDirectionDecoder(nn.Module):
    """z -> (mu, a, omega) of the VAE-ROC. Source: Eq. (vae_roc2)."""

    def __init__(
        self, columns: Sequence[ColumnShape], d_latent: int, widths: Sequence[int], activation: str
    ) -> None:
        super().__init__()
        self.trunk = perceptron(d_latent, widths, activation)
        self.marginals = Marginals(widths[-1], columns)
        n_real = len(self.marginals.real_columns)
        self.direction = _loadings_head(widths[-1], n_real)
        self.log_omega = nn.Linear(widths[-1], 1)

    def forward(self, z: Tensor) -> PrincipalDirectionConditional:
        """p(x|z). Shape: z (..., K)."""
        hidden = self.trunk(z)
        return PrincipalDirectionConditional(
            self.marginals,
            self.marginals(hidden),
            self.direction(hidden),
            self.log_omega(hidden)[..., 0].clamp(min=MINIMUM_LOG_OMEGA).exp(),
        )


def _loadings_head(d_in: int, d_out: int) -> nn.Linear | EmptyLinear:
    """Head of the loadings, with Glorot weights.

    At a = 0 the gradient with respect to a vanishes and the copula would stay off for ever, so the
    head must not start there.
    """
    head = linear(d_in, d_out)
    if d_out:
        nn.init.xavier_uniform_(head.weight)
    return head


class GenerativeModel(nn.Module):
    """p(x, z) = p(z) p(x|z) with its approximate posterior q(z|x)."""

    def __init__(self, prior: Prior, encoder: Encoder, decoder: nn.Module) -> None:
        super().__init__()
        self.prior = prior
        self.encoder = encoder
        self.decoder = decoder

    @property
    def marginals(self) -> Marginals:
        """Of the decoder."""
        marginals = self.decoder.marginals
        assert isinstance(marginals, Marginals)
        return marginals

    def conditional(self, z: Tensor, dropout: Dropout | None = None) -> Conditional:
        """p(x|z); `dropout` is for training steps of a refined model. Shape: z (..., K)."""
        given = self.decoder(z) if dropout is None else self.decoder(z, dropout)
        conditional: Conditional = given
        return conditional

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(codes, values) of n rows of the model. Shape: two of (n, D)."""
        return self.conditional(self.prior.sample(n, generator)).sample(generator)
