"""Conditional marginals p_j(x_j | z): probability, tails and quantiles of each column on its own.

A column's cell is a *code*; under a column's *point code* the cell also holds a real value. Every
column has code probabilities, and the columns with a point code a Gaussian besides: together these
are the paper's marginals, categorical for discrete columns and Gaussian for continuous ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.codec import EncodedTable
from gcvae.networks import ColumnShape, linear
from gcvae.normal import (
    LOG_SQRT_2PI,
    log_normal_cdf,
    normal_cdf,
    normal_score_of_tails,
)
from gcvae.scores import CellProbabilities

MINIMUM_LOG_SIGMA = -6.0
"""log sigma of a Gaussian marginal, in standard deviations of its column, is held above this.

A column with a heavy value (an atom) would otherwise drive sigma to zero and the bound to
infinity, which is not a good fit.
"""
_MASKED = -1e30


@dataclass(frozen=True)
class MarginalParameters:
    """Parameters of the marginals at some z; log_beta[j, k] = log P(code of column j is k).

    Shape: log_beta (..., D, K_max), padded with impossible codes; mean and log_sigma (..., D_real).
    """

    log_beta: Tensor
    mean: Tensor
    log_sigma: Tensor


class Marginals(nn.Module):
    """Gaussian marginals N(mu_i, sigma_i^2) and categorical marginals beta_i, independent given z.

    A real column with missing cells is a mixture: the missing level is an interval below all
    numbers with probability beta_0, and the numbers share the rest. So the kind, point or interval,
    goes by cell and not by column.

    Source: Section 4, p_i(x_i^c) and p_i(x_i^s).
    """

    logit_index: Tensor
    point_codes: Tensor
    real_columns: Tensor
    has_one_code: Tensor

    def __init__(self, d_hidden: int, columns: Sequence[ColumnShape]) -> None:
        super().__init__()
        self.columns = tuple(columns)
        n_codes = [column.n_codes for column in columns]
        point = [-1 if column.point_code is None else column.point_code for column in columns]
        real = [j for j, column in enumerate(columns) if column.point_code is not None]
        self._buffer("logit_index", _padded_index(n_codes))
        self._buffer("point_codes", torch.tensor(point))
        self._buffer("real_columns", torch.tensor(real, dtype=torch.long))
        self._buffer(
            "has_one_code", torch.tensor([n_codes[j] == 1 for j in real], dtype=torch.bool)
        )
        self.logits = linear(d_hidden, sum(n_codes))
        self.mean = linear(d_hidden, len(real))
        self.log_sigma = linear(d_hidden, len(real))

    def _buffer(self, name: str, tensor: Tensor) -> None:
        self.register_buffer(name, tensor, persistent=False)

    def forward(self, hidden: Tensor) -> MarginalParameters:
        """Parameters at z. Shape: (..., d_hidden) -> fields of `MarginalParameters`."""
        logits = nn.functional.pad(self.logits(hidden), (0, 1), value=_MASKED)
        return MarginalParameters(
            log_beta=torch.log_softmax(logits[..., self.logit_index], dim=-1),
            mean=self.mean(hidden),
            log_sigma=self.log_sigma(hidden).clamp(min=MINIMUM_LOG_SIGMA),
        )

    def cells(self, parameters: MarginalParameters, rows: EncodedTable) -> CellProbabilities:
        """How the marginals see the cells of `rows`.

        Shape: rows (n, D) and parameters (..., n, D) -> fields (..., n, D).
        """
        log_prob, log_below, log_above = code_tails(parameters.log_beta, rows.codes)
        is_point = (rows.codes == self.point_codes).expand(log_prob.shape)
        j = self.real_columns
        values = rows.values[..., j].to(parameters.mean.dtype)
        t = (values - parameters.mean) * torch.exp(-parameters.log_sigma)
        tails = log_prob[..., j], log_below[..., j], log_above[..., j]
        score = torch.where(is_point[..., j], self._point_score(t, *tails), 0.0)
        log_density = -0.5 * t.square() - LOG_SQRT_2PI - parameters.log_sigma
        log_density = torch.where(is_point[..., j], log_density, 0.0)
        return CellProbabilities(
            log_prob=log_prob.index_add(-1, j, log_density),
            log_below=log_below,
            log_above=log_above,
            score=torch.zeros_like(log_prob).index_copy(-1, j, score),
            is_point=is_point,
        )

    def _point_score(
        self, t: Tensor, log_code: Tensor, log_below: Tensor, log_above: Tensor
    ) -> Tensor:
        """Normal score of a number that lies t standard deviations from its Gaussian's mean.

        With no other code in the column it is t itself: never through Phi and its inverse.
        """
        if bool(self.has_one_code.all()):
            return t
        below = torch.logaddexp(log_below, log_code + log_normal_cdf(t))
        above = torch.logaddexp(log_above, log_code + log_normal_cdf(-t))
        return torch.where(self.has_one_code, t, normal_score_of_tails(below, above))

    def quantile(self, parameters: MarginalParameters, score: Tensor) -> tuple[Tensor, Tensor]:
        """(codes, values) of the cells that normal scores fall into: the inverse of `cells`.

        Shape: (..., D) -> codes int32 (..., D), values float64 (..., D).
        Source: Appendix B (sampling from the copula), followed by the marginal quantile functions.
        """
        u = normal_cdf(score.double())
        beta = parameters.log_beta.double().exp()
        upper = beta.cumsum(-1)
        last = torch.tensor([column.n_codes - 1 for column in self.columns], device=u.device)
        codes = torch.minimum((upper <= u[..., None]).sum(-1), last)
        values = torch.zeros_like(u)
        j = self.real_columns
        mass = beta.gather(-1, codes[..., None]).squeeze(-1)[..., j]
        start = upper.gather(-1, codes[..., None]).squeeze(-1)[..., j] - mass
        inside = ((u[..., j] - start) / mass).clamp(1e-15, 1.0 - 1e-15)
        t = torch.where(self.has_one_code, score[..., j].double(), torch.special.ndtri(inside))
        numbers = parameters.mean.double() + parameters.log_sigma.double().exp() * t
        is_point = codes[..., j] == self.point_codes[j]
        values[..., j] = torch.where(is_point, numbers, 0.0)
        return codes.int(), values


def _padded_index(n_codes: Sequence[int]) -> Tensor:
    """Where column j's k-th logit stands in the flat vector; the padding points one past its end.

    Shape: (D, K_max).
    """
    n_logits = sum(n_codes)
    index = torch.full((len(n_codes), max(n_codes)), n_logits)
    start = 0
    for j, n in enumerate(n_codes):
        index[j, :n] = torch.arange(start, start + n)
        start += n
    return index


def code_tails(log_beta: Tensor, codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(log P(this code), log P(smaller code), log P(larger code)) under code probabilities.

    Each side is summed by itself and not taken as one minus the other. A code of -1 stands for a
    level that the table never had: its probability is zero.

    Shape: (..., D, K), (..., D) -> three of (..., D).
    """
    k = torch.arange(log_beta.shape[-1], device=log_beta.device)
    code = codes[..., None].long()
    code = code.expand(*torch.broadcast_shapes(code.shape[:-1], log_beta.shape[:-1]), 1)
    log_beta = log_beta.expand(*code.shape[:-1], -1)
    log_prob = log_beta.gather(-1, code.clamp(min=0)).squeeze(-1)
    below = log_beta.masked_fill(k >= code, _MASKED).logsumexp(-1)
    above = log_beta.masked_fill(k <= code, _MASKED).logsumexp(-1)
    return (
        torch.where(codes >= 0, log_prob, -torch.inf),
        torch.where(below < 0.5 * _MASKED, -torch.inf, below),
        torch.where(above < 0.5 * _MASKED, -torch.inf, above),
    )
