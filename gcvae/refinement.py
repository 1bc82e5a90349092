"""Autoregressive refinement of the marginals: p(x|z) = prod_j p_j(x_j | x_1 .. x_{j-1}, z).

The marginals' outputs l_j(z) are refined to l_j(z) + r_j(x_<j, z). The network r is factorised: a
cell of column i adds V_i f(x_i) to a running sum, and column j reads the sum of what came before it
through layers of its own. So its cost is linear in the number of columns, and a row is drawn in
one pass, column by column. Besides, the means of numbers move in straight lines with the cells
before them, so that a number that nearly follows from others is learned sharply in few steps. The
last layer and the lines start at zero: training starts at the marginals.

# PAPER-DIFF: the paper's decoder is independent given z but for the copula. The refinement carries
# what z and a rank-one copula leave over; the copula head is trained beside it on the same z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gcvae.codec import EncodedTable
from gcvae.generators import uniform
from gcvae.interval_cells import IntervalCells, inverted
from gcvae.marginals import (
    MINIMUM_LOG_SIGMA,
    MarginalOutputs,
    Marginals,
)
from gcvae.mixtures import log_mixture_density
from gcvae.model import CopulaConditional, CopulaDecoder
from gcvae.networks import ColumnShape, Dropout
from gcvae.normal import LOG_SQRT_2PI, normal_cdf
from gcvae.warps import Warps

_D_EMBEDDING = 8
_N_PLACES = 2
_N_BUMPS = 12
_BUMP_RANGE = 2.6
_MOST_COLUMNS_TO_MULTIPLY = 64


class CellFeatures(nn.Module):
    """f(x_i): an embedding of the code, and smooth functions of where the cell lies on its axis.

    Shape: rows (n, D) -> (D, n, d).
    """

    offsets: Tensor
    code_scores: Tensor
    on_axis: Tensor
    point_codes: Tensor

    def __init__(self, columns: Sequence[ColumnShape]) -> None:
        super().__init__()
        n_codes = [column.n_codes for column in columns]
        starts = [sum(n_codes[:j]) for j in range(len(columns))]
        scores = [s for c in columns for s in (c.code_scores or (0.0,) * c.n_codes)]
        on_axis = [float(c.code_scores is not None) for c in columns]
        point = [-1 if c.point_code is None else c.point_code for c in columns]
        self.register_buffer("offsets", torch.tensor(starts), persistent=False)
        self.register_buffer("code_scores", torch.tensor(scores), persistent=False)
        self.register_buffer("on_axis", torch.tensor(on_axis), persistent=False)
        self.register_buffer("point_codes", torch.tensor(point), persistent=False)
        self.embedding = nn.Embedding(sum(n_codes), _D_EMBEDDING)
        nn.init.normal_(self.embedding.weight, std=0.5)
        self.width = _D_EMBEDDING + _N_PLACES + _N_BUMPS

    def forward(self, codes: Tensor, values: Tensor, columns: slice = slice(None)) -> Tensor:
        """Features of the cells of these columns. Shape: (n, D_part) twice -> (D_part, n, d)."""
        place = codes.long().clamp(min=0) + self.offsets[columns]
        score = torch.where(
            codes == self.point_codes[columns], values.float(), self.code_scores[place]
        )
        score = (score * self.on_axis[columns]).T
        centres = torch.linspace(-_BUMP_RANGE, _BUMP_RANGE, _N_BUMPS, device=score.device)
        width = 2.0 * _BUMP_RANGE / (_N_BUMPS - 1)
        bumps = torch.exp(-0.5 * ((score[..., None] - centres) / width).square())
        bumps = bumps * self.on_axis[columns, None, None]
        places = torch.stack([score, score.tanh()], dim=-1)
        return torch.cat([places, self.embedding(place.T), bumps], dim=-1)


def _batched(d: int, d_in: int, d_out: int, gain: float) -> nn.Parameter:
    """One matrix for each column. Shape: (d, d_in, d_out)."""
    return nn.Parameter(torch.randn(d, d_in, d_out) * (gain / math.sqrt(max(d_in, 1))))


def column_order(columns: Sequence[ColumnShape]) -> list[int]:
    """The order in which columns are refined: those with the fewest codes first, then numbers.

    A density given a level is learned from fewer rows than the probability of a level given
    densities.
    """

    def key(j: int) -> tuple[bool, int]:
        column = columns[j]
        is_coded = column.point_code is None or len(column.shaped_codes) > 0
        return not is_coded, column.n_codes if is_coded else j

    return sorted(range(len(columns)), key=key)


class Refinement(nn.Module):
    """The network r_j(x_<j, z), x_<j being the columns before j in `order`.

    Shape: context (..., n, d_context), rows (n, D) -> `MarginalOutputs` of (..., n).
    """

    earlier: Tensor
    places: Tensor

    def __init__(
        self,
        columns: Sequence[ColumnShape],
        marginals: Marginals,
        d_context: int,
        d_sum: int,
        d_column: int,
    ) -> None:
        super().__init__()
        d = len(columns)
        self.order = column_order(columns)
        self.features = CellFeatures(columns)
        rank = torch.tensor(self.order).argsort()
        earlier = (rank < rank[:, None]).float()
        self.register_buffer("earlier", earlier, persistent=False)
        self.register_buffer("places", torch.tensor(self.order), persistent=False)
        self.read = nn.Linear(d_context, d_sum)
        gain = 1.5 * math.sqrt(self.features.width / (_D_EMBEDDING + 4) / max(1.0, d / 2))
        self.add = _batched(d, self.features.width, d_sum, gain)
        self.start = nn.Parameter(0.1 * torch.randn(d, d_sum))
        self.narrow = _batched(d, d_sum, d_column, 1.2)
        self.narrow_bias = nn.Parameter(torch.zeros(d, d_column))
        self.inner = _batched(d, d_column, d_column, 1.2)
        self.inner_bias = nn.Parameter(torch.zeros(d, d_column))
        self.outer = nn.Parameter(torch.zeros(d, d_column, d_column))
        self.groups = [(group.columns.tolist(), group.shape) for group in marginals.code_groups]
        self.real = marginals.real_columns.tolist()
        self.to_logits = nn.ParameterList(
            nn.Parameter(torch.zeros(len(at), d_column, shape[1])) for at, shape in self.groups
        )
        self.shifts = nn.ParameterList(
            nn.Parameter(torch.zeros(*shape)) for _, shape in self.groups
        )
        n_outputs = 3 * marginals.n_components
        self.to_mixture = nn.Parameter(torch.zeros(len(self.real), d_column, n_outputs))
        self.slopes = nn.Parameter(torch.zeros(len(self.real), d, _N_PLACES))
        self.warps = Warps(len(self.real))

    def forward(
        self, context: Tensor, rows: EncodedTable, dropout: Dropout | None = None
    ) -> MarginalOutputs:
        """r of every column, each from the cells before it."""
        x = self.features(rows.codes, rows.values)
        if dropout is not None:
            x = x * dropout.kept_columns(rows.codes.shape).T[..., None]
        added = torch.bmm(x, self.add)
        before = self._sum_of_earlier(added) + self.start[:, None]
        total = before.unflatten(1, (1,) * (context.dim() - 2) + (-1,)) + self.read(context)
        h = self._hidden(total.flatten(1, -2), slice(None), dropout)
        shape = torch.broadcast_shapes(context.shape[:-1], rows.codes.shape[:1])
        logits = tuple(
            _rows_first(torch.bmm(h[at], weight) + shift[:, None], shape)
            for (at, _), weight, shift in zip(self.groups, self.to_logits, self.shifts, strict=True)
        )
        mixture = _rows_first(torch.bmm(h[self.real], self.to_mixture), shape)
        return MarginalOutputs(logits, with_means_moved(mixture, self._lines(x)))

    def _lines(self, x: Tensor) -> Tensor:
        """How far the cells before each number move its means. Shape: (D, n, d) -> (n, D_real)."""
        slopes = self.slopes * self.earlier[self.real][..., None]
        return torch.einsum("dnk,rdk->nr", x[..., :_N_PLACES], slopes)

    def _sum_of_earlier(self, added: Tensor) -> Tensor:
        """For each column the sum over those before it in `order`. Shape: (D, n, d_sum) twice."""
        if len(added) <= _MOST_COLUMNS_TO_MULTIPLY:
            # With few columns a product with zeros and ones is faster than cumsum and its gradient.
            return (self.earlier @ added.flatten(1)).view_as(added)
        ordered = added[self.order]
        before = ordered.cumsum(0) - ordered
        return torch.empty_like(added).index_copy(0, self.places, before)

    def _hidden(self, total: Tensor, columns: slice, dropout: Dropout | None) -> Tensor:
        """Layers of each column's own. Shape: (D_part, N, d_sum) -> (D_part, N, d_column)."""
        act = nn.functional.silu
        h = torch.bmm(act(total), self.narrow[columns]) + self.narrow_bias[columns, None]
        inner = torch.bmm(act(h), self.inner[columns]) + self.inner_bias[columns, None]
        inner = torch.bmm(act(inner), self.outer[columns])
        return act(h + (inner if dropout is None else dropout.kept_units(inner)))

    def column_outputs(self, total: Tensor, j: int) -> ColumnOutputs:
        """r of column j, from the running sum before it. Shape: total (N, d_sum)."""
        h = self._hidden((total + self.start[j])[None], slice(j, j + 1), None)[0]
        g, at = self.group_of(j)
        logits = None if g is None else h @ self.to_logits[g][at] + self.shifts[g][at]
        mixture = h @ self.to_mixture[self.real.index(j)] if j in self.real else None
        return ColumnOutputs(logits, mixture)

    def group_of(self, j: int) -> tuple[int | None, int]:
        """(group, place in it) of column j; no group for a column of one code."""
        found = [(g, at.index(j)) for g, (at, _) in enumerate(self.groups) if j in at]
        return found[0] if found else (None, 0)

    def added_by(self, codes: Tensor, values: Tensor, j: int) -> tuple[Tensor, Tensor]:
        """What the cells of column j add to the running sum, and to the means of every number.

        Shape: (N,), (N,) -> (N, d_sum), (N, D_real).
        """
        x = self.features(codes[:, None], values[:, None], slice(j, j + 1))[0]
        slopes = self.slopes[:, j] * self.earlier[self.real, j][:, None]
        return x @ self.add[j], x[:, :_N_PLACES] @ slopes.T


@dataclass(frozen=True)
class ColumnOutputs:
    """Outputs of one column; None where it has no such outputs. Shape: (N, K), (N, 3 M)."""

    logits: Tensor | None
    mixture: Tensor | None


def with_means_moved(mixture: Tensor, by: Tensor) -> Tensor:
    """Outputs of mixtures with all their means moved. Shape: (..., 3 M), (...) -> (..., 3 M)."""
    weight, mean, log_sigma = mixture.chunk(3, dim=-1)
    return torch.cat([weight, mean + by[..., None], log_sigma], dim=-1)


def _rows_first(outputs: Tensor, shape: torch.Size) -> Tensor:
    """(D_part, N, k) -> (*shape, D_part, k)."""
    by_row: Tensor = outputs.transpose(0, 1).unflatten(0, shape)
    return by_row


class RefinedDecoder(nn.Module):
    """z -> the copula model (the head) and its refinement, which share a hidden vector.

    Shape: z (..., K).
    """

    def __init__(self, head: CopulaDecoder, refinement: Refinement) -> None:
        super().__init__()
        self.head = head
        self.refinement = refinement

    @property
    def marginals(self) -> Marginals:
        """Of the head, which the refinement adds to."""
        return self.head.marginals

    def forward(self, z: Tensor, dropout: Dropout | None = None) -> RefinedConditional:
        """p(x|z); `dropout` in training steps only."""
        hidden = self.head.trunk(z)
        outputs = self.head.marginals.outputs(hidden)
        return RefinedConditional(self, outputs, hidden, dropout)


@dataclass(frozen=True)
class RefinedConditional:
    """p(x|z) = prod_j p_j(x_j | x_<j, z): exact masses and densities, no jitter.

    Attributes:
        outputs: Of the marginals at z, which the refinement adds to.
        context: The decoder's hidden vector at z. Shape: (..., d_context).
    """

    decoder: RefinedDecoder
    outputs: MarginalOutputs
    context: Tensor
    dropout: Dropout | None = None

    @property
    def marginals(self) -> Marginals:
        """Of the head."""
        return self.decoder.head.marginals

    @property
    def refinement(self) -> Refinement:
        """The network r."""
        return self.decoder.refinement

    @property
    def head(self) -> CopulaConditional:
        """The copula model at the same z."""
        return self.decoder.head.at(self.context, self.outputs)

    def first(self, n: int) -> RefinedConditional:
        """At the first n draws of z."""
        return replace(self, context=self.context[:n], outputs=self.outputs.first(n))

    @property
    def loadings(self) -> Tensor | None:
        """Of the copula head, which is trained on the same z."""
        return self.head.loadings

    def correlation(self) -> Tensor:
        """Of the copula head. Shape: (..., D, D)."""
        return self.head.correlation()

    def log_prob(self, rows: EncodedTable, noise: Tensor | None) -> Tensor:
        """log p(x|z) of the observed cells.

        Rows with blank cells are scored by sequential importance sampling: blanks are drawn in
        column order by inverting their cdf at `noise`, and only known cells count.

        Shape: rows (n, D), noise (..., n, D) -> (..., n).
        Raises: ValueError for blank cells without noise.
        """
        return self._log_known(rows, noise).sum(-1)

    @property
    def order(self) -> Sequence[int]:
        """The refinement's."""
        return self.refinement.order

    def log_prefixes(
        self, rows: EncodedTable, noise: Tensor | None, jitter: Tensor | None = None
    ) -> Tensor:
        """`log_prob` of the first column in `order`, of the first two, and so on.

        It needs no jitter. Shape: rows (n, D), noise (..., n, D) -> (..., n, D).
        """
        return self._log_known(rows, noise)[..., self.order].double().cumsum(-1)

    def _log_known(self, rows: EncodedTable, noise: Tensor | None) -> Tensor:
        """log p_j of each known cell, 0 for blanks. Shape: (..., n, D)."""
        if rows.intervals is None and bool(rows.observed.all()):
            refined = self.outputs + self.refinement(self.context, rows, self.dropout)
            return self._log_cells(refined, rows)
        if noise is None:
            raise ValueError("rows with blank cells or intervals need noise to draw them")
        return self._through(rows, noise.double())[0]

    def _log_cells(self, outputs: MarginalOutputs, rows: EncodedTable) -> Tensor:
        """log p_j of each cell. Shape: (..., n, D)."""
        parameters = self.marginals.parameters_of(outputs)
        log_prob = self.marginals.log_codes(parameters, rows.codes)
        j = self.marginals.real_columns
        straight, log_slope = self.refinement.warps.straighten(rows.values[..., j])
        straight, log_slope = (x.to(parameters.mean.dtype) for x in (straight, log_slope))
        t = (straight[..., None] - parameters.mean) * torch.exp(-parameters.log_sigma)
        log_density = log_mixture_density(t, parameters) + log_slope
        is_point = (rows.codes == self.marginals.point_codes)[..., j]
        return log_prob.index_add(-1, j, torch.where(is_point, log_density, 0.0))

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(codes, values) of one row for each z, drawn column by column. Shape: two of (..., D)."""
        n_columns = len(self.marginals.columns)
        shape = (*self.context.shape[:-1], n_columns)
        blank = EncodedTable(
            torch.zeros(1, n_columns, dtype=torch.int32, device=self.context.device),
            torch.zeros(1, n_columns, dtype=torch.float64, device=self.context.device),
            torch.zeros(1, n_columns, dtype=torch.bool, device=self.context.device),
        )
        _, codes, values = self._through(blank, uniform(shape, generator, torch.float64))
        return codes, values

    def _through(self, rows: EncodedTable, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Goes through the columns: known cells are scored, blank ones drawn.

        A number that stands for an interval is scored by the interval's mass, and drawn inside it.

        Shape: rows (n, D) or (1, D), noise (..., n, D) -> log_prob, codes and values, (..., n, D).
        """
        shape = noise.shape
        codes, values, observed = (
            t.expand(shape).reshape(-1, shape[-1]).clone()
            for t in (rows.codes, rows.values, rows.observed)
        )
        noise = noise.reshape(-1, shape[-1])
        intervals = None
        if rows.intervals is not None:
            intervals = rows.intervals.expand(*shape, 2).reshape(-1, shape[-1], 2)
        walk = Walk(self)
        log_prob = noise.new_zeros(noise.shape)
        for j in self.refinement.order:
            column = walk.distribution(j)
            known = observed[:, j]
            blank = (~known).nonzero()[:, 0]
            drawn_codes, drawn_values = column.take(blank).draw(noise[blank, j])
            codes[blank, j], values[blank, j] = drawn_codes, drawn_values
            log_cell = column.log_prob(codes[:, j], values[:, j])
            if intervals is not None:
                within = IntervalCells.of(column, codes[:, j], intervals[:, j])
                log_cell = within.log_prob(log_cell)
                values[:, j] = within.draw(values[:, j], noise[:, j])
            log_prob[:, j] = torch.where(known, log_cell, 0.0)
            walk.step(j, codes[:, j], values[:, j])
        return log_prob.view(shape), codes.view(shape), values.view(shape)


class Walk:
    """A walk through the columns of N rows, each with its z: what comes next, and what came.

    Shape: all leading dimensions of the conditional in one, N.
    """

    def __init__(self, conditional: RefinedConditional) -> None:
        """Stands before the first column."""
        self.marginals = conditional.marginals
        self.refinement = conditional.refinement
        self.outputs = conditional.outputs.flattened()
        context = conditional.context.reshape(-1, conditional.context.shape[-1])
        self.total: Tensor = self.refinement.read(context)
        self.lines = self.total.new_zeros(len(self.total), len(self.refinement.real))

    def distribution(self, j: int) -> ColumnDistribution:
        """p_j( . | x_<j, z) from the columns that came."""
        refined = self.refinement.column_outputs(self.total, j)
        log_beta = self.total.new_zeros(len(self.total), 1)
        g, at = self.refinement.group_of(j)
        mixture = warp = None
        if refined.mixture is not None:
            place = self.refinement.real.index(j)
            mixture = self.outputs.mixture[:, place] + refined.mixture
            mixture = with_means_moved(mixture, self.lines[:, place])
            warp = self.refinement.warps, place
        if g is not None and refined.logits is not None:
            logits = self.outputs.logits[g][:, at] + refined.logits
            logits = self.marginals.atom_shapes[g].add_to_row(logits, mixture, at)
            padding = self.marginals.code_groups[g].padding[at]
            log_beta = torch.log_softmax(logits + padding, dim=-1)
        return ColumnDistribution(log_beta, mixture, int(self.marginals.point_codes[j]), warp)

    def step(self, j: int, codes: Tensor, values: Tensor) -> None:
        """Column j has these cells. Shape: (N,), (N,)."""
        added, moved = self.refinement.added_by(codes, values, j)
        self.total, self.lines = self.total + added, self.lines + moved


@dataclass(frozen=True)
class ColumnDistribution:
    """Distribution of one column for N rows: codes, and a Gaussian mixture under the point code.

    Shape: log_beta (N, K), mixture (N, 3 M) or None.

    Attributes:
        warp: Of the values' axis: the warps, and the column's place in them; None with the mixture.
    """

    log_beta: Tensor
    mixture: Tensor | None
    point_code: int
    warp: tuple[Warps, int] | None

    def components(self, mixture: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(log weight, mean, log sigma), each (N, M)."""
        weight, mean, log_sigma = mixture.unflatten(-1, (3, -1)).unbind(-2)
        return torch.log_softmax(weight, -1), mean, log_sigma.clamp(min=MINIMUM_LOG_SIGMA)

    def take(self, rows: Tensor) -> ColumnDistribution:
        """Of the rows of these numbers."""
        mixture = None if self.mixture is None else self.mixture[rows]
        return replace(self, log_beta=self.log_beta[rows], mixture=mixture)

    def log_prob(self, codes: Tensor, values: Tensor) -> Tensor:
        """log mass of codes, log density of values. Shape: (N,), (N,) -> (N,)."""
        at = codes.long().clamp(min=0)[:, None]
        log_prob = torch.where(codes >= 0, self.log_beta.gather(-1, at)[:, 0], -torch.inf)
        if self.mixture is None:
            return log_prob
        assert self.warp is not None, "a mixture has its warp"
        weight, mean, log_sigma = self.components(self.mixture)
        warps, place = self.warp
        straight, log_slope = (x.to(mean.dtype) for x in warps.straighten_column(values, place))
        t = (straight[:, None] - mean) * torch.exp(-log_sigma)
        log_density = (weight - 0.5 * t.square() - log_sigma).logsumexp(-1) - LOG_SQRT_2PI
        log_density = log_density + log_slope
        return log_prob + torch.where(codes == self.point_code, log_density, 0.0)

    def draw(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """(codes, values) by inversion at uniform noise. Shape: (N,) -> (N,) int32, (N,)."""
        codes, rest = inverted(self.log_beta, noise)
        values = torch.zeros_like(noise)
        if self.mixture is not None:
            assert self.warp is not None, "a mixture has its warp"
            weight, mean, log_sigma = self.components(self.mixture)
            m, rest = inverted(weight, rest)
            mean, sigma = (t.double().gather(-1, m[:, None])[:, 0] for t in (mean, log_sigma.exp()))
            warps, place = self.warp
            values = warps.bend_column(mean + sigma * torch.special.ndtri(rest), place)
            values = torch.where(codes == self.point_code, values, 0.0)
        return codes.int(), values

    def mixture_cdf(self, rows: Tensor, at: Tensor) -> Tensor:
        """The mixtures' cdf before any warp. Shape: rows (n,), at (k,) -> (n, k)."""
        assert self.mixture is not None, "a column of levels has no mixture"
        weight, mean, log_sigma = self.components(self.mixture[rows].double())
        t = (at[:, None] - mean[:, None]) * torch.exp(-log_sigma)[:, None]
        cdf: Tensor = (weight.exp()[:, None] * normal_cdf(t)).sum(-1)
        return cdf
