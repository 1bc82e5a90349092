"""Conditional marginals p_j(x_j | z): probability, tails and quantiles of each column on its own.

A column's cell is a *code*; under a column's *point code* the cell also holds a real value. Every
column has code probabilities, and the columns with a point code a Gaussian besides: together these
are the paper's marginals, categorical for discrete columns and Gaussian for continuous ones.
Columns of a similar number of codes share one matrix, padded to the widest.
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
_PADDING = -1e30
"""Logit of the codes that pad a column to its group's width."""


@dataclass(frozen=True)
class MarginalParameters:
    """Parameters of the marginals at some z; log_beta[j, k] = log P(code of column j is k).

    Shape: log_beta, for each group of columns, (..., D_group, K_group); mean and log_sigma
    (..., D_real).
    """

    log_beta: tuple[Tensor, ...]
    mean: Tensor
    log_sigma: Tensor


class CodeGroup(nn.Module):
    """Code probabilities beta_jk = softmax(W h + b)_jk of columns of a similar number of codes.

    Source: Section 4, beta_{i,j}.
    """

    columns: Tensor
    last_codes: Tensor
    padding: Tensor

    def __init__(self, d_hidden: int, columns: Sequence[int], n_codes: Sequence[int]) -> None:
        super().__init__()
        self.shape = len(columns), max(n_codes)
        last_codes = torch.tensor(n_codes) - 1
        beyond = torch.arange(self.shape[1]) > last_codes[:, None]
        self.register_buffer("columns", torch.tensor(columns), persistent=False)
        self.register_buffer("last_codes", last_codes, persistent=False)
        self.register_buffer("padding", torch.where(beyond, _PADDING, 0.0), persistent=False)
        self.logits = nn.Linear(d_hidden, self.shape[0] * self.shape[1])

    def forward(self, hidden: Tensor) -> Tensor:
        """log beta. Shape: (..., d_hidden) -> (..., D_group, K_group)."""
        logits = self.logits(hidden).unflatten(-1, self.shape) + self.padding
        return torch.log_softmax(logits, dim=-1)

    def tails(self, log_beta: Tensor, codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(log P(this code), log P(smaller code), log P(larger code)).

        Each side is summed by itself and not taken as one minus the other. A code of -1 stands for
        an outcome that the table never had: its probability is zero.

        Shape: (..., D_group, K_group), (..., D_group) -> three of (..., D_group).
        """
        k = torch.arange(self.shape[1], device=log_beta.device)
        code = codes[..., None].long()
        code = code.expand(*torch.broadcast_shapes(code.shape[:-1], log_beta.shape[:-1]), 1)
        log_beta = log_beta.expand(*code.shape[:-1], -1)
        log_prob = log_beta.gather(-1, code.clamp(min=0)).squeeze(-1)
        below = log_sum_where(log_beta, k < code)
        above = log_sum_where(log_beta, (k > code) & (self.padding == 0.0))
        return (
            torch.where(codes >= 0, log_prob, -torch.inf),
            torch.where(codes > 0, below, -torch.inf),
            torch.where((codes >= 0) & (codes < self.last_codes), above, -torch.inf),
        )

    def codes_at(self, log_beta: Tensor, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(code, probability below it, its probability) where the uniform scores u fall.

        Shape: (..., D_group, K_group), (..., D_group) -> three of (..., D_group).
        """
        upper = log_beta.double().exp().cumsum(-1)
        codes = torch.minimum((upper <= u[..., None]).sum(-1), self.last_codes)
        mass = log_beta.double().gather(-1, codes[..., None]).squeeze(-1).exp()
        return codes, upper.gather(-1, codes[..., None]).squeeze(-1) - mass, mass


def log_sum_where(log_values: Tensor, chosen: Tensor) -> Tensor:
    """log of the sum of exp(log_values) over the chosen places of the last dimension.

    Plain sums, except where all that is chosen underflows. Nothing chosen gives an arbitrary finite
    number. Shape: (..., K), bool (..., K) -> (...).
    """
    total = (log_values.exp() * chosen).sum(-1)
    underflown = total < 1e-30
    log_total = torch.where(underflown, 1.0, total).log()
    if not bool(underflown.any()):
        return log_total
    rest = log_values[underflown].masked_fill(~chosen.expand_as(log_values)[underflown], _PADDING)
    return log_total.masked_scatter(underflown, rest.logsumexp(-1))


class Marginals(nn.Module):
    """Gaussian marginals N(mu_i, sigma_i^2) and categorical marginals beta_i, independent given z.

    A real column with missing cells is a mixture: the missing level is an interval below all
    numbers with probability beta_0, and the numbers share the rest. So the kind, point or interval,
    goes by cell and not by column.

    Source: Section 4, p_i(x_i^c) and p_i(x_i^s).
    """

    point_codes: Tensor
    real_columns: Tensor
    has_one_code: Tensor

    def __init__(self, d_hidden: int, columns: Sequence[ColumnShape]) -> None:
        super().__init__()
        self.columns = tuple(columns)
        point = [-1 if column.point_code is None else column.point_code for column in columns]
        real = [j for j, column in enumerate(columns) if column.point_code is not None]
        single = [columns[j].n_codes == 1 for j in real]
        self.register_buffer("point_codes", torch.tensor(point), persistent=False)
        self.register_buffer("real_columns", torch.tensor(real, dtype=torch.long), persistent=False)
        self.register_buffer(
            "has_one_code", torch.tensor(single, dtype=torch.bool), persistent=False
        )
        self.groups = nn.ModuleList(_code_groups(d_hidden, [c.n_codes for c in columns]))
        self.mean = linear(d_hidden, len(real))
        self.log_sigma = linear(d_hidden, len(real))

    def forward(self, hidden: Tensor) -> MarginalParameters:
        """Parameters at z. Shape: (..., d_hidden) -> fields of `MarginalParameters`."""
        return MarginalParameters(
            log_beta=tuple(group(hidden) for group in self.groups),
            mean=self.mean(hidden),
            log_sigma=self.log_sigma(hidden).clamp(min=MINIMUM_LOG_SIGMA),
        )

    def code_tails(
        self, parameters: MarginalParameters, codes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`CodeGroup.tails` of all columns; a single code has probability one.

        Shape: codes (n, D) -> three of (..., n, D).
        """
        shape = torch.broadcast_shapes(parameters.mean.shape[:-1], codes.shape[:-1])
        certain = parameters.mean.new_zeros((*shape, len(self.columns)))
        log_prob = torch.where(codes >= 0, certain, -torch.inf)
        tails = log_prob, certain - torch.inf, certain - torch.inf
        for group, log_beta in zip(self._groups(), parameters.log_beta, strict=True):
            found = group.tails(log_beta, codes[..., group.columns])
            tails = _placed(tails, group.columns, found)
        return tails

    def _groups(self) -> list[CodeGroup]:
        return [group for group in self.groups if isinstance(group, CodeGroup)]

    def cells(self, parameters: MarginalParameters, rows: EncodedTable) -> CellProbabilities:
        """How the marginals see the cells of `rows`.

        Shape: rows (n, D) and parameters (..., n, D) -> fields (..., n, D).
        """
        log_prob, log_below, log_above = self.code_tails(parameters, rows.codes)
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
        Source: Appendix B (sampling from the copula), then the marginal quantile functions.
        """
        u = normal_cdf(score.double())
        cells = torch.zeros_like(u, dtype=torch.long), torch.zeros_like(u), torch.ones_like(u)
        for group, log_beta in zip(self._groups(), parameters.log_beta, strict=True):
            found = group.codes_at(log_beta, u[..., group.columns])
            cells = _placed(cells, group.columns, found)
        codes, start, mass = cells
        j = self.real_columns
        inside = ((u - start) / mass)[..., j].clamp(1e-15, 1.0 - 1e-15)
        t = torch.where(self.has_one_code, score[..., j].double(), torch.special.ndtri(inside))
        numbers = parameters.mean.double() + parameters.log_sigma.double().exp() * t
        is_point = codes[..., j] == self.point_codes[j]
        values = torch.zeros_like(u).index_copy(-1, j, torch.where(is_point, numbers, 0.0))
        return codes.int(), values


Triple = tuple[Tensor, Tensor, Tensor]


def _placed(whole: Triple, columns: Tensor, part: Triple) -> Triple:
    """Three tensors with those columns replaced. Shape: (..., D), (..., D_group) -> (..., D)."""
    first, second, third = (w.index_copy(-1, columns, p) for w, p in zip(whole, part, strict=True))
    return first, second, third


def _code_groups(d_hidden: int, n_codes: Sequence[int]) -> list[CodeGroup]:
    """The columns of two codes and more, those between two powers of two together."""
    members: dict[int, list[int]] = {}
    for j, n in enumerate(n_codes):
        if n > 1:
            members.setdefault((n - 1).bit_length(), []).append(j)
    return [
        CodeGroup(d_hidden, columns, [n_codes[j] for j in columns])
        for _, columns in sorted(members.items())
    ]
