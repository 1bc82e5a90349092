"""Priors p(z) of the latent vector."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor, nn

from gcvae.arrays import Numbers
from gcvae.model.networks import set_constants
from gcvae.numerics.gaussian_mixtures import fit_gaussian_mixture
from gcvae.numerics.generators import AnyGenerator, generator_for, normal, uniform
from gcvae.numerics.normal import LOG_SQRT_2PI, log_normal_density
from gcvae.progress import Report, report_to_nobody

_LEAST_DRAWS = 50
_LEAST_LOG_SIGMA = -7.0
_QUANTILE_DRAWS = 20_000


class Prior(nn.Module, ABC):
    """Prior p(z) of a latent vector of K = `d_latent` dimensions, with a tractable density."""

    def __init__(self, d_latent: int) -> None:
        super().__init__()
        self.d_latent = d_latent

    @abstractmethod
    def log_prob(self, z: Tensor) -> Tensor:
        """Returns the log density of each z. Shape: (..., K) -> (...)."""

    @property
    def n_uniforms(self) -> int:
        """Number of uniform random numbers that `at_noise` needs for each z."""
        return 0

    @abstractmethod
    def at_noise(self, u: Tensor, eps: Tensor) -> Tensor:
        """Converts uniform and standard normal noise to samples of z. Shape: u (n, `n_uniforms`),
        eps (n, K) -> (n, K)."""

    def sample(self, n: int, generator: AnyGenerator) -> Tensor:
        """Returns n samples of z. Shape: (n, K)."""
        u = uniform((n, self.n_uniforms), generator)
        return self.at_noise(u, normal((n, self.d_latent), generator))

    def divergence(self, eta: Tensor, log_tau: Tensor, z: Tensor) -> Tensor:
        """Returns the estimate log q(z|x) - log p(z) of KL[q(z|x) || p(z)], in nats, at a sample z
        of q(z|x) = N(eta, diag tau^2). Shape: (..., K) each -> (...)."""
        eps = (z - eta) * torch.exp(-log_tau)
        return (log_normal_density(eps) - log_tau).sum(-1) - self.log_prob(z)

    def quantiles(self, probability: Numbers, generator: torch.Generator) -> Numbers:
        """Returns the quantiles of each dimension of z at S probabilities, estimated from samples.
        Shape: (S,) -> (S, K)."""
        draws = self.sample(_QUANTILE_DRAWS, generator).double().numpy()
        quantiles: Numbers = np.quantile(draws, probability, axis=0)
        return quantiles


class StandardNormalPrior(Prior):
    """Standard normal prior p(z) = N(0, I_K). Source: Eq. (vae1)."""

    def log_prob(self, z: Tensor) -> Tensor:
        return log_normal_density(z).sum(-1)

    def at_noise(self, u: Tensor, eps: Tensor) -> Tensor:
        return eps

    def divergence(self, eta: Tensor, log_tau: Tensor, z: Tensor) -> Tensor:
        """Returns the exact divergence KL[q(z|x) || p(z)]; z is not used."""
        return gaussian_kl(eta, log_tau)

    def quantiles(self, probability: Numbers, generator: torch.Generator) -> Numbers:
        return np.repeat(ndtri(probability)[:, None], self.d_latent, axis=1)


def gaussian_kl(eta: Tensor, log_tau: Tensor) -> Tensor:
    """Returns KL[N(eta, diag tau^2) || N(0, I)] = -1/2 sum_k (1 + 2 log tau_k - tau_k^2 - eta_k^2),
    in nats. Shape: (..., K) each -> (...).

    Source: Section 3, below Eq. (elbo_vae_roc).
    """
    return -0.5 * (1.0 + 2.0 * log_tau - (2.0 * log_tau).exp() - eta.square()).sum(-1)


class GaussianMixturePrior(Prior):
    """Gaussian mixture p(z) = sum_c w_c N(z; m_c, L_c L_c^T) of C components in K dimensions, with
    full covariances.

    # PAPER-DIFF: the paper's prior is N(0, I) throughout. Training keeps it; afterwards the mixture
    # is fitted to posterior samples of the training rows, so that generated rows come from the
    # regions of z that training rows use.

    Attributes:
        log_weight: Logarithms of the weights w_c. Shape: (C,).
        mean: Means m_c. Shape: (C, K).
        factor: Lower Cholesky factors L_c of the covariances. Shape: (C, K, K).
    """

    log_weight: Tensor
    mean: Tensor
    factor: Tensor

    def __init__(self, n_components: int, d_latent: int) -> None:
        super().__init__(d_latent)
        uniform_weight = torch.full((n_components,), -math.log(n_components))
        factor = torch.zeros(n_components, d_latent, d_latent) + torch.eye(d_latent)
        self.register_buffer("log_weight", uniform_weight)
        self.register_buffer("mean", torch.zeros(n_components, d_latent))
        self.register_buffer("factor", factor)

    def log_prob(self, z: Tensor) -> Tensor:
        eye = torch.eye(self.d_latent, dtype=z.dtype, device=z.device)
        inverse = torch.linalg.solve_triangular(self.factor.to(z), eye, upper=False)
        shift = (inverse @ self.mean.to(z)[..., None])[..., 0]
        # One product for all components: (N, K) @ (K, K C), the sums over the K outside the C.
        whitened = (z @ inverse.permute(2, 1, 0).flatten(1)).unflatten(-1, shift.T.shape)
        square = (whitened - shift.T).square().sum(-2)
        log_det = self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_terms = self.log_weight - log_det - self.d_latent * LOG_SQRT_2PI - 0.5 * square
        log_prob: Tensor = log_terms.logsumexp(-1)
        return log_prob

    @property
    def n_uniforms(self) -> int:
        return 1

    def at_noise(self, u: Tensor, eps: Tensor) -> Tensor:
        upper = self.log_weight.exp().cumsum(0)
        c = torch.searchsorted(upper, u[:, 0].contiguous()).clamp(max=len(self.mean) - 1)
        return self.mean[c] + (self.factor[c] @ eps[..., None])[..., 0]

    def widened(self, places: Tensor) -> GaussianMixturePrior:
        """Returns a prior with more dimensions. It is this prior in the dimensions where the mask
        `places` is true, and an independent N(0, 1) in all other dimensions. Shape: places (K,), K
        dimensions of the new prior."""
        wide = GaussianMixturePrior(len(self.mean), len(places))
        wide.log_weight.copy_(self.log_weight)
        wide.mean[:, places] = self.mean
        at = places.nonzero()[:, 0]
        wide.factor[:, at[:, None], at] = self.factor
        return wide


class AutoregressiveMixturePrior(Prior):
    """Prior p(z) = prod_k p(z_k | z_<k), each factor a mixture of C Gaussians.

    A masked network computes the mixtures: dimension k has a group of `d_group` hidden units that
    depend only on z_1 .. z_{k-1}. One pass computes the density of all dimensions; sampling them in
    order also costs as much as one pass.

    # PAPER-DIFF: the paper's prior is N(0, I) throughout. This one is trained with the model: the
    # posterior need not fill a Gaussian without gaps, and rows are generated from regions of z that
    # training rows use.

    Source: Germain et al. 2015 (masked autoencoder), mixture densities for its outputs.
    """

    def __init__(self, d_latent: int, n_components: int = 10, d_group: int = 24) -> None:
        super().__init__(d_latent)
        self.n_components, self.d_group = n_components, d_group
        k = torch.arange(d_latent)
        group = k.repeat_interleave(d_group)
        self.enter = MaskedLinear(group[:, None] > k)
        self.inner = MaskedLinear(group[:, None] >= group)
        self.outer = MaskedLinear(group[:, None] >= group)
        self.leave = MaskedLinear(k.repeat_interleave(3 * n_components)[:, None] >= group)
        with torch.no_grad():
            self.leave.weight.mul_(0.1)
            self.leave.bias.zero_().view(d_latent, 3, -1)[:, 1] = torch.linspace(
                -1.0, 1.0, n_components
            )

    def log_prob(self, z: Tensor) -> Tensor:
        log_weight, mean, log_sigma = self.mixtures(z)
        t = (z[..., None] - mean) * (-log_sigma).exp()
        log_terms = log_weight - log_sigma + log_normal_density(t)
        log_prob: Tensor = log_terms.logsumexp(-1).sum(-1)
        return log_prob

    def mixtures(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the log weights, means and log standard deviations of each p(z_k | z_<k). Shape:
        (..., K) -> three of (..., K, C)."""
        act = nn.functional.silu
        h = self.enter(z)
        h = h + self.outer(act(self.inner(act(h))))
        return self._of_outputs(self.leave(act(h)))

    def _of_outputs(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Converts the network's outputs to log weights, means and log standard deviations. Shape:
        (..., 3 C k) -> three of (..., k, C)."""
        weight, mean, log_sigma = outputs.unflatten(-1, (-1, 3, self.n_components)).unbind(-2)
        return torch.log_softmax(weight, -1), mean, log_sigma.clamp(min=_LEAST_LOG_SIGMA)

    @property
    def n_uniforms(self) -> int:
        return self.d_latent

    def at_noise(self, u: Tensor, eps: Tensor) -> Tensor:
        act, n = nn.functional.silu, len(eps)
        z = self.enter.weight.new_zeros(n, self.d_latent)
        entered, inner, left = (z.new_zeros(n, self.d_latent * self.d_group) for _ in range(3))
        for k in range(self.d_latent):
            own = _group_slice(k, self.d_group)
            seen = slice(0, own.stop)
            h = self.enter.part(z[:, :k], own)
            entered[:, own] = act(h)
            inner[:, own] = act(self.inner.part(entered[:, seen], own))
            left[:, own] = act(h + self.outer.part(inner[:, seen], own))
            outputs = self.leave.part(left[:, seen], _group_slice(k, 3 * self.n_components))
            log_weight, mean, log_sigma = (part[:, 0] for part in self._of_outputs(outputs))
            upper = log_weight.exp().cumsum(-1)
            c = (upper <= u[:, k, None]).sum(-1, keepdim=True).clamp(max=self.n_components - 1)
            z[:, k] = (mean.gather(-1, c) + log_sigma.gather(-1, c).exp() * eps[:, k, None])[:, 0]
        return z


class MaskedLinear(nn.Linear):
    """Linear layer (W * mask) x + b. Shape: mask (d_out, d_in), 1 where the output depends on the
    input."""

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__(mask.shape[1], mask.shape[0])
        set_constants(self, mask=mask.float())
        with torch.no_grad():
            self.weight.mul_((mask.shape[1] / mask.sum(1).clamp(min=1)).sqrt()[:, None])

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight * self.mask, self.bias)

    def part(self, x: Tensor, outputs: slice) -> Tensor:
        """Returns a slice of the outputs, computed from the first k inputs x; the mask of these
        outputs must be 0 for all other inputs. Shape: (n, k) -> (n, length of the slice)."""
        seen = outputs, slice(x.shape[-1])
        weight = self.weight[seen] * self.mask[seen]
        return nn.functional.linear(x, weight, self.bias[outputs])


def _group_slice(k: int, width: int) -> slice:
    return slice(k * width, (k + 1) * width)


def fit_mixture(z: Tensor, n_components: int, seed: int) -> GaussianMixturePrior:
    """Returns a mixture prior fitted to samples z by expectation maximisation. Shape: z (n, K)."""
    if z.shape[1] == 0:
        return GaussianMixturePrior(1, 0)
    fitted = fit_gaussian_mixture(z, n_components, generator_for(seed, "mixture"))
    prior = GaussianMixturePrior(n_components, z.shape[1])
    prior.log_weight.copy_(fitted.weight.log())
    prior.mean.copy_(fitted.mean)
    prior.factor.copy_(fitted.factor)
    return prior


def fit_best_mixture(
    z: Tensor,
    held_out: Tensor,
    choices: Sequence[int],
    seed: int,
    report: Report = report_to_nobody,
) -> GaussianMixturePrior:
    """Returns the mixture prior with the highest mean log density of held-out samples.

    Args:
        z: Samples to fit. Shape: (n, K).
        held_out: Samples that select the mixture. Shape: (m, K).
        choices: Numbers of components to try. A number is skipped if there are fewer than fifty
            samples per component; the smallest number is always tried.
        report: Function that is called with the finished share of the work.
    """
    first, *others = sorted(choices)
    allowed = [first, *(n for n in others if n * _LEAST_DRAWS <= len(z))]
    fitted = []
    for i, n in enumerate(allowed):
        fitted.append(fit_mixture(z, n, seed))
        report(sum(allowed[: i + 1]) / sum(allowed))
    return max(fitted, key=lambda prior: float(prior.log_prob(held_out).mean()))
