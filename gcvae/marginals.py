"""Conditional marginals p_j(x_j | z): probability, tails and quantiles of each column on its own.

A column's cell is a *code*; under a column's *point code* the cell also holds a real value. Every
column has code probabilities, and the columns with a point code Gaussians besides: with one
Gaussian these are the paper's marginals, categorical for discrete columns and Gaussian for
continuous ones.
Columns of a similar number of codes share one matrix, padded to the widest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.codec import EncodedTable
from gcvae.mixtures import (
    MarginalParameters,
    Triple,
    log_mixture_density,
    mixture_quantile,
    mixture_tails,
)
from gcvae.networks import ColumnShape, linear
from gcvae.normal import (
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
_LEAST_SHAPE = 1e-5
"""Added to a mixture's density at the atoms, so that no atom is out of reach."""
_MINIMUM_LOG_WIDTH = -4.0
"""log sigma of a mixture over atoms: a fraction of the distance between a thousand atoms."""
_LEAST_ATOMS_TO_SHAPE = 12
"""Fewer atoms have free logits only."""
_PADDING = -1e30
"""Logit of the codes that pad a column to its group's width."""


@dataclass(frozen=True)
class MarginalOutputs:
    """What a network says of the marginals, before it is made into probabilities.

    Outputs add up: those of a refinement are added to those that it refines.

    Shape: logits, for each group of columns, (..., D_group, K_group); mixture (..., D_real, 3 M).
    """

    logits: tuple[Tensor, ...]
    mixture: Tensor

    def __add__(self, other: MarginalOutputs) -> MarginalOutputs:
        """Sums, output by output."""
        pairs = zip(self.logits, other.logits, strict=True)
        return MarginalOutputs(tuple(a + b for a, b in pairs), self.mixture + other.mixture)

    def first(self, n: int) -> MarginalOutputs:
        """Those of the first n of the leading dimension."""
        return MarginalOutputs(tuple(logits[:n] for logits in self.logits), self.mixture[:n])

    def flattened(self) -> MarginalOutputs:
        """The same with all leading dimensions in one, (N, D_part, k)."""
        return MarginalOutputs(
            tuple(logits.flatten(0, -3) for logits in self.logits), self.mixture.flatten(0, -3)
        )


class AtomShapes(nn.Module):
    """Logits of the atoms of discrete numbers: the log density of the column's mixture at each.

    So near atoms have near probabilities from few outputs, and the free logits that these are added
    to need only say how an atom differs from its neighbours.
    """

    powers: Tensor
    shaped: Tensor
    rows: Tensor
    real: Tensor

    def __init__(
        self, columns: Sequence[ColumnShape], group: Sequence[int], real: Sequence[int]
    ) -> None:
        super().__init__()
        rows = [
            row
            for row, j in enumerate(group)
            if len(columns[j].shaped_codes) >= _LEAST_ATOMS_TO_SHAPE
        ]
        width = max(columns[j].n_codes for j in group)
        scores, shaped = torch.zeros(len(rows), width), torch.zeros(len(rows), width)
        for i, row in enumerate(rows):
            column = columns[group[row]]
            assert column.code_scores is not None, "shaped codes have scores"
            scores[i, : column.n_codes] = torch.tensor(column.code_scores)
            shaped[i, list(column.shaped_codes)] = 1.0
        places = [list(real).index(group[row]) for row in rows]
        powers = torch.stack([torch.ones_like(scores), scores, scores.square()], dim=1)
        self.register_buffer("powers", powers, persistent=False)
        self.register_buffer("shaped", shaped, persistent=False)
        self.register_buffer("rows", torch.tensor(rows, dtype=torch.long), persistent=False)
        self.register_buffer("real", torch.tensor(places, dtype=torch.long), persistent=False)

    def add_to(self, logits: Tensor, mixture: Tensor) -> Tensor:
        """The logits with the shapes added.

        Shape: (..., D_group, K_group), (..., D_real, 3 M) -> (..., D_group, K_group).
        """
        if not len(self.rows):
            return logits
        return logits.index_add(-2, self.rows, self._shapes(mixture[..., self.real, :]))

    def add_to_row(self, logits: Tensor, mixture: Tensor | None, row: int) -> Tensor:
        """The same for one column, the group's `row`. Shape: (N, K_group), (N, 3 M)."""
        at = (self.rows == row).nonzero()[:, 0]
        if not len(at):
            return logits
        assert mixture is not None, "a shaped column has a mixture"
        return logits + self._shapes(mixture[:, None], at)[:, 0]

    def _shapes(self, mixture: Tensor, at: slice | Tensor = slice(None)) -> Tensor:
        """log of sum_m w_m N(s_k; mu_m, sigma_m^2) and a little, the exponents as A + B s + C s^2.

        Shape: (..., D_shaped, 3 M) -> (..., D_shaped, K_group).
        """
        weight, mean, log_sigma = mixture.unflatten(-1, (3, -1)).unbind(-2)
        log_sigma = log_sigma.clamp(min=_MINIMUM_LOG_WIDTH)
        precision = torch.exp(-2.0 * log_sigma)
        log_weight = torch.log_softmax(weight, dim=-1)
        constant = log_weight - log_sigma - 0.5 * mean.square() * precision
        terms = torch.stack([constant, mean * precision, -0.5 * precision], dim=-1)
        # One matrix product for each column: (D_shaped, N M, 3) @ (D_shaped, 3, K_group).
        by_column = terms.reshape(-1, *terms.shape[-3:]).movedim(1, 0)
        density = (by_column.flatten(1, 2) @ self.powers[at]).exp()
        density = density.unflatten(1, by_column.shape[1:3]).sum(2)
        shapes: Tensor = (density + _LEAST_SHAPE).log() * self.shaped[at][:, None]
        return shapes.movedim(0, 1).reshape(*terms.shape[:-2], -1)


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
        """Logits. Shape: (..., d_hidden) -> (..., D_group, K_group)."""
        logits: Tensor = self.logits(hidden).unflatten(-1, self.shape)
        return logits

    def log_beta(self, logits: Tensor) -> Tensor:
        """log beta, with the padding impossible. Shape: (..., D_group, K_group)."""
        return torch.log_softmax(logits + self.padding, dim=-1)

    def log_prob(self, log_beta: Tensor, codes: Tensor) -> Tensor:
        """log P(this code), -inf for -1. Shape: (..., D_group, K_group) -> (..., D_group)."""
        code = codes[..., None].long().clamp(min=0)
        shape = torch.broadcast_shapes(code.shape[:-1], log_beta.shape[:-1])
        log_beta, code = log_beta.expand(*shape, -1), code.expand(*shape, 1)
        return torch.where(codes >= 0, log_beta.gather(-1, code).squeeze(-1), -torch.inf)

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
    """Gaussian-mixture and categorical marginals, independent given z.

    A real column with other codes than that of its numbers is a mixture of both: those codes are
    intervals below all numbers, and the numbers share the rest of the probability. So the kind,
    point or interval, goes by cell and not by column.

    # PAPER-DIFF: the paper's marginal of a number is one Gaussian, which `n_components` 1 gives;
    # more components follow skewed and many-peaked conditionals.

    Source: Section 4, p_i(x_i^c) and p_i(x_i^s).
    """

    point_codes: Tensor
    real_columns: Tensor
    has_one_code: Tensor

    def __init__(
        self, d_hidden: int, columns: Sequence[ColumnShape], n_components: int = 1
    ) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self.n_components = n_components
        point = [-1 if column.point_code is None else column.point_code for column in columns]
        real = [j for j, column in enumerate(columns) if column.point_code is not None]
        single = [columns[j].n_codes == 1 for j in real]
        self.register_buffer("point_codes", torch.tensor(point), persistent=False)
        self.register_buffer("real_columns", torch.tensor(real, dtype=torch.long), persistent=False)
        self.register_buffer(
            "has_one_code", torch.tensor(single, dtype=torch.bool), persistent=False
        )
        self.groups = nn.ModuleList(_code_groups(d_hidden, [c.n_codes for c in columns]))
        self.shapes = nn.ModuleList(
            AtomShapes(columns, group.columns.tolist(), real) for group in self.code_groups
        )
        self.mixture = linear(d_hidden, len(real) * 3 * n_components)
        if real:
            _spread_components(self.mixture.bias, len(real), n_components)

    @property
    def code_groups(self) -> list[CodeGroup]:
        """The groups of columns that share a matrix."""
        return [group for group in self.groups if isinstance(group, CodeGroup)]

    @property
    def atom_shapes(self) -> list[AtomShapes]:
        """Of each group."""
        return [shapes for shapes in self.shapes if isinstance(shapes, AtomShapes)]

    def start_at(self, code_counts: Sequence[Tensor]) -> None:
        """Sets the biases so that code probabilities start at the shares of a table's codes.

        A rare level's logit lies far from zero: an optimiser with steps of a thousandth would take
        most of a training run to get there.

        Args:
            code_counts: For each column how many rows have each code. Shape: (K_j,) each.
        """
        n_rows = int(code_counts[0].sum())
        with torch.no_grad():
            for group in self.code_groups:
                bias = group.logits.bias.view(group.shape)
                for row, j in enumerate(group.columns.tolist()):
                    counts = padded_counts(code_counts[j], group.shape[1])
                    bias[row] = ((counts + 0.5) / (n_rows + 0.5)).log()
            mixture = self.mixture.bias.view(-1, 3 * self.n_components)
            for group, shapes in zip(self.code_groups, self.atom_shapes, strict=True):
                bias = group.logits.bias.view(group.shape)
                bias -= shapes.add_to(torch.zeros_like(bias), mixture)

    def outputs(self, hidden: Tensor) -> MarginalOutputs:
        """The heads' outputs. Shape: (..., d_hidden) -> fields of `MarginalOutputs`."""
        shape = len(self.real_columns), 3 * self.n_components
        return MarginalOutputs(
            logits=tuple(group(hidden) for group in self.groups),
            mixture=self.mixture(hidden).unflatten(-1, shape),
        )

    def parameters_of(self, outputs: MarginalOutputs) -> MarginalParameters:
        """Outputs made into probabilities, means and deviations."""
        weight, mean, log_sigma = outputs.mixture.unflatten(-1, (3, self.n_components)).unbind(-2)
        triples = zip(self.code_groups, self.atom_shapes, outputs.logits, strict=True)
        return MarginalParameters(
            log_beta=tuple(
                group.log_beta(shapes.add_to(logits, outputs.mixture))
                for group, shapes, logits in triples
            ),
            log_weight=torch.log_softmax(weight, dim=-1),
            mean=mean,
            log_sigma=log_sigma.clamp(min=MINIMUM_LOG_SIGMA),
        )

    def forward(self, hidden: Tensor) -> MarginalParameters:
        """Parameters at z. Shape: (..., d_hidden) -> fields of `MarginalParameters`."""
        return self.parameters_of(self.outputs(hidden))

    def code_tails(
        self, parameters: MarginalParameters, codes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`CodeGroup.tails` of all columns; a single code has probability one.

        Shape: codes (n, D) -> three of (..., n, D).
        """
        shape = torch.broadcast_shapes(parameters.mean.shape[:-2], codes.shape[:-1])
        certain = parameters.mean.new_zeros((*shape, len(self.columns)))
        log_prob = torch.where(codes >= 0, certain, -torch.inf)
        tails = log_prob, certain - torch.inf, certain - torch.inf
        for group, log_beta in zip(self.code_groups, parameters.log_beta, strict=True):
            found = group.tails(log_beta, codes[..., group.columns])
            tails = _placed(tails, group.columns, found)
        return tails

    def log_codes(self, parameters: MarginalParameters, codes: Tensor) -> Tensor:
        """log P(code) of every cell. Shape: codes (n, D) -> (..., n, D)."""
        shape = torch.broadcast_shapes(parameters.mean.shape[:-2], codes.shape[:-1])
        log_prob = parameters.mean.new_zeros((*shape, len(self.columns)))
        log_prob = torch.where(codes >= 0, log_prob, -torch.inf)
        for group, log_beta in zip(self.code_groups, parameters.log_beta, strict=True):
            found = group.log_prob(log_beta, codes[..., group.columns])
            log_prob = log_prob.index_copy(-1, group.columns, found)
        return log_prob

    def cells(self, parameters: MarginalParameters, rows: EncodedTable) -> CellProbabilities:
        """How the marginals see the cells of `rows`.

        Shape: rows (n, D) and parameters (..., n, D) -> fields (..., n, D).
        """
        log_prob, log_below, log_above = self.code_tails(parameters, rows.codes)
        is_number = (rows.codes == self.point_codes).expand(log_prob.shape)
        is_point = is_number & ~rows.are_intervals
        j = self.real_columns
        values = rows.values[..., j].to(parameters.mean.dtype)
        t = (values[..., None] - parameters.mean) * torch.exp(-parameters.log_sigma)
        tails = log_prob[..., j], log_below[..., j], log_above[..., j]
        score = torch.where(
            is_point[..., j], self._point_score(t, parameters.log_weight, *tails), 0.0
        )
        log_density = log_mixture_density(t, parameters)
        log_density = torch.where(is_point[..., j], log_density, 0.0)
        if rows.intervals is not None:
            inner = mixture_tails(parameters, rows.intervals[..., j, :])
            is_interval = (is_number & rows.are_intervals)[..., j]
            log_prob, log_below, log_above = _narrowed(
                (log_prob, log_below, log_above), j, is_interval, inner
            )
        return CellProbabilities(
            log_prob=log_prob.index_add(-1, j, log_density.to(log_prob.dtype)),
            log_below=log_below,
            log_above=log_above,
            score=torch.zeros_like(log_prob).index_copy(-1, j, score.to(log_prob.dtype)),
            is_point=is_point,
        )

    def _point_score(
        self, t: Tensor, log_weight: Tensor, log_code: Tensor, log_below: Tensor, log_above: Tensor
    ) -> Tensor:
        """Normal score of a number that lies t_m standard deviations from each Gaussian's mean.

        With one Gaussian and no other code it is t itself: never through Phi and its inverse.

        Shape: t, log_weight (..., D_real, M), the others (..., D_real) -> (..., D_real).
        """
        if self.n_components == 1 and bool(self.has_one_code.all()):
            return t[..., 0]
        below = (log_weight + log_normal_cdf(t)).logsumexp(-1)
        above = (log_weight + log_normal_cdf(-t)).logsumexp(-1)
        below = torch.logaddexp(log_below, log_code + below)
        above = torch.logaddexp(log_above, log_code + above)
        score = normal_score_of_tails(below, above)
        return torch.where(self.has_one_code, t[..., 0], score) if self.n_components == 1 else score

    def quantile(self, parameters: MarginalParameters, score: Tensor) -> tuple[Tensor, Tensor]:
        """(codes, values) of the cells that normal scores fall into: the inverse of `cells`.

        Shape: (..., D) -> codes int32 (..., D), values float64 (..., D).
        Source: Appendix B (sampling from the copula), then the marginal quantile functions.
        """
        u = normal_cdf(score.double())
        cells = torch.zeros_like(u, dtype=torch.long), torch.zeros_like(u), torch.ones_like(u)
        for group, log_beta in zip(self.code_groups, parameters.log_beta, strict=True):
            found = group.codes_at(log_beta, u[..., group.columns])
            cells = _placed(cells, group.columns, found)
        codes, start, mass = cells
        j = self.real_columns
        inside = ((u - start) / mass)[..., j].clamp(1e-15, 1.0 - 1e-15)
        inner = torch.where(self.has_one_code, score[..., j].double(), torch.special.ndtri(inside))
        numbers = mixture_quantile(parameters, inner)
        is_point = codes[..., j] == self.point_codes[j]
        values = torch.zeros_like(u).index_copy(-1, j, torch.where(is_point, numbers, 0.0))
        return codes.int(), values


def padded_counts(counts: Tensor, n_codes: int) -> Tensor:
    """The counts of n_codes codes, those beyond the last that comes up zero. Shape: (n_codes,)."""
    return torch.nn.functional.pad(counts, (0, n_codes - len(counts)))


def _spread_components(bias: Tensor, n_columns: int, n_components: int) -> None:
    """Starts the components of every column at different means, their deviations below one."""
    if n_components == 1:
        return
    with torch.no_grad():
        by_column = bias.view(n_columns, 3, n_components)
        by_column[:, 0] = 0.0
        by_column[:, 1] = torch.linspace(-1.5, 1.5, n_components)
        by_column[:, 2] = -0.4


def _placed(whole: Triple, columns: Tensor, part: Triple) -> Triple:
    """Three tensors with those columns replaced. Shape: (..., D), (..., D_group) -> (..., D)."""
    first, second, third = (w.index_copy(-1, columns, p) for w, p in zip(whole, part, strict=True))
    return first, second, third


def _narrowed(tails: Triple, j: Tensor, is_interval: Tensor, inner: Triple) -> Triple:
    """Tails of a code, cut down to an interval of its values. Shape: (..., D), inner (..., D_real).

    The numbers' code is the last: what lies above the code itself has no probability.
    """
    code, below, above = (tail.double() for tail in tails)
    mass, low, high = (code[..., j] + part for part in inner)
    low = torch.logaddexp(below[..., j], low)
    high = torch.logaddexp(above[..., j], high)
    found = zip((code, below, above), (mass, low, high), strict=True)
    first, second, third = (
        whole.index_copy(-1, j, torch.where(is_interval, part, whole[..., j]))
        for whole, part in found
    )
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
