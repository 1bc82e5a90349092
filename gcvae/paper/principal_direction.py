"""Decoder VAE-ROC of the paper: a normal distribution N(mu, omega I + a a^T) over the columns of
numbers, with a principal direction a.

It has the interface of the other decoders; only the preset `paper-vae-roc` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.copula import RankOneCopula
from gcvae.model.decoders import Conditional, Decoder, loadings_head
from gcvae.model.marginals import MarginalParameters, Marginals
from gcvae.model.networks import ColumnShape, Dropout, perceptron
from gcvae.model.number_marginals import Marginal
from gcvae.model.walks import ColumnWalk, IndependentWalk
from gcvae.numerics.generators import normal
from gcvae.numerics.normal import LOG_SQRT_2PI, log_normal_density

MINIMUM_LOG_OMEGA = -12.0
"""Lower limit of log omega of the VAE-ROC, in squared standard deviations; without it, frequent
values would drive the bound to infinity."""


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
    def marginal_parameters(self) -> MarginalParameters:
        variance = self.noise[..., None] + self.direction.square()
        return self._with_numbers(self.mean, 0.5 * variance.log())

    def _with_numbers(self, mean: Tensor, log_sigma: Tensor) -> MarginalParameters:
        outputs = torch.stack([torch.zeros_like(mean), mean, log_sigma], -1)[..., None]
        return replace(self.parameters, numbers=Marginal(outputs))

    @property
    def loadings(self) -> Tensor:
        return self.direction

    def log_prob(self, rows: EncodedTable, jitter: Tensor | None) -> Tensor:
        """Returns the exact log p(x|z). `jitter` belongs to the interface of `Conditional` and is
        not used.

        log N = -n/2 log 2 pi - n/2 log omega - 1/2 log(1 + a^T a / omega)
                - 1/2 [x~^T x~ / omega - (a^T x~)^2 / (omega^2 + omega a^T a)],  x~ = x - mu,

        over the n cells of the row that contain a number.

        Source: Eq. (elbo_vae_roc2), its misprinted second "=" read as a sum.
        """
        log_codes = self.marginals.log_codes(self.parameters, rows.codes)
        log_codes = torch.where(rows.observed, log_codes, 0.0).sum(-1)
        j = self.marginals.real_columns
        present = (rows.codes == self.marginals.point_codes)[..., j] & rows.observed[..., j]
        residual = (rows.values[..., j].to(self.mean.dtype) - self.mean) * present
        a = self.direction * present
        return log_codes + log_rank_one_normal(residual, a, self.noise, present.sum(-1).to(a.dtype))

    def log_prefixes(self, rows: EncodedTable) -> Tensor:
        """Returns cumulative log densities given z, in nats: entry j is that of the observed
        cells among the first j + 1 columns. Shape: n rows -> (..., n, D).

        Codes are independent given z, and their log probabilities are added up. The distribution
        N(mu, omega I + a a^T) of the numbers is a Gaussian copula with loadings a / sqrt(omega) and
        marginals N(mu_j, omega + a_j^2). It is evaluated as a copula, because `RankOneCopula` also
        computes the probabilities of cells that stand for intervals.
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
        copula = RankOneCopula(self.loadings, self.noise)
        log_numbers = log_density + copula.log_prefixes(score, low, high, is_point, present)
        steps = log_numbers.diff(dim=-1, prepend=torch.zeros_like(log_numbers[..., :1]))
        return prefixes + torch.zeros_like(prefixes).index_copy(-1, j, steps).cumsum(-1)

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Samples numbers x = mu + a s + sqrt(omega) eps with standard normal s and eps, and codes
        by their probabilities."""
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
        if not len(self.marginals.real_columns):
            return IndependentWalk(self.marginals, self.parameters)
        mean = self.mean + self.direction * factor
        log_sigma = 0.5 * self.noise.log()[:, None].expand_as(mean)
        return IndependentWalk(self.marginals, self._with_numbers(mean, log_sigma))

    def correlation(self) -> Tensor:
        n = len(self.marginals.columns)
        loadings = self.direction.new_zeros((*self.direction.shape[:-1], n))
        loadings[..., self.marginals.real_columns] = self.direction
        return RankOneCopula(loadings, self.noise).correlation()


def log_rank_one_normal(residual: Tensor, a: Tensor, omega: Tensor, n: Tensor) -> Tensor:
    """Returns log N(residual; 0, omega I_n + a a^T) over n of the D columns; `residual` and `a` are
    zero in the others. Shape: residual and a (..., D), omega and n (...) -> (...)."""
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
        self.marginals = Marginals(widths[-1], columns, means_in_unit=means_in_unit)
        n_real = len(self.marginals.real_columns)
        self.n_factors = int(n_real > 0)
        self.direction = loadings_head(widths[-1], n_real)
        self.log_omega = nn.Linear(widths[-1], 1)

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> PrincipalDirectionConditional:
        hidden = self.trunk(z)
        return PrincipalDirectionConditional(
            self.marginals,
            self.marginals(hidden),
            self.direction(hidden),
            self.log_omega(hidden)[..., 0].clamp(min=MINIMUM_LOG_OMEGA).exp(),
        )
