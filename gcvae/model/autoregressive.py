"""Network of the autoregressive decoder: p(x|z) = prod_j p_j(x_j | x_1 .. x_{j-1}, z).

The logits and mixture parameters of column j are l_j(z) + r_j(x_<j, z). The term l_j(z) is the
output of the copula head, a decoder without this network, which determines the column's marginal
distribution given z; the term r_j is the output of this network. A running sum begins with a vector
that is computed from z. Each cell x_i adds a vector V_i f(x_i) to it, where f(x_i) are features of
the cell. A small network computes r_j from the sum over z and the columns before j. The cost is
therefore linear in the number of columns, and a row is generated in one pass.

In addition, the means of numbers have terms that are linear in the normal scores of earlier cells
and in the tanh of these scores, so that a nearly linear relation is learned in few steps. The last
layer and the linear terms start at zero, so training starts at the marginals of the copula head.

# PAPER-DIFF: the paper's columns are independent given z except for the copula. The autoregressive
# decoder models the dependence that z and a rank-one copula do not; the copula head is trained
# with it, on the same z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.change_points import ChangePointLayer, ChangePoints
from gcvae.model.level_functions import (
    FunctionStep,
    LevelFunction,
    order_with_rules,
)
from gcvae.model.marginals import MarginalOutputs, Marginals
from gcvae.model.monotone_transforms import MonotoneTransforms
from gcvae.model.networks import ColumnShape, Dropout, set_constants
from gcvae.numerics.affine import affine, affine_silu
from gcvae.numerics.batches import broadcast_shape, padded_to_lanes

_D_EMBEDDING = 8
_N_SCORES = 2
_N_BUMPS = 12
_BUMP_RANGE = 2.6
_FARTHEST = 8.0
"""Limit to which absolute normal scores are clipped. Only generated rows exceed it, and the linear
terms would amplify such scores from column to column."""
_MOST_COLUMNS_TO_MULTIPLY = 64


class CellFeatures(nn.Module):
    """Computes d features of each cell: an embedding of its integer code and, in columns of
    numbers, smooth functions of its normal score.

    Attributes:
        offsets: Index of each column's first code in the table of embeddings. Shape: (D,).
        code_scores: Normal score of the number that each code stands for; 0 for levels. The codes
            of all columns are concatenated.
        on_axis: 1 for columns in which codes stand for numbers, else 0. Shape: (D,).
        point_codes: The code shared by all numbers that are not frequent values; -1 for levels.
            Shape: (D,).
    """

    offsets: Tensor
    code_scores: Tensor
    on_axis: Tensor
    point_codes: Tensor

    def __init__(self, columns: Sequence[ColumnShape]) -> None:
        super().__init__()
        self.n_codes = n_codes = [column.n_codes for column in columns]
        starts = [sum(n_codes[:j]) for j in range(len(columns))]
        scores = [s for c in columns for s in (c.code_scores or (0.0,) * c.n_codes)]
        on_axis = [float(c.code_scores is not None) for c in columns]
        point = [-1 if c.point_code is None else c.point_code for c in columns]
        set_constants(
            self,
            offsets=torch.tensor(starts),
            code_scores=torch.tensor(scores),
            on_axis=torch.tensor(on_axis),
            point_codes=torch.tensor(point),
        )
        self.embedding = nn.Embedding(sum(n_codes), _D_EMBEDDING)
        nn.init.normal_(self.embedding.weight, std=0.5)
        self.width = _D_EMBEDDING + _N_SCORES + _N_BUMPS

    def forward(self, codes: Tensor, values: Tensor, columns: slice = slice(None)) -> Tensor:
        """Returns the features of the cells of n rows, in D_part columns (default: all).

        `values` are used only for numbers that are not frequent values. These share one code; every
        other code stands for one number or level. Shape: codes and values (n, D_part) -> (D_part,
        n, d).
        """
        code_index = codes.long().clamp(min=0) + self.offsets[columns]
        score = torch.where(
            codes == self.point_codes[columns], values.float(), self.code_scores[code_index]
        )
        score = (score * self.on_axis[columns]).T.clamp(-_FARTHEST, _FARTHEST)
        centres = torch.linspace(-_BUMP_RANGE, _BUMP_RANGE, _N_BUMPS, device=score.device)
        width = 2.0 * _BUMP_RANGE / (_N_BUMPS - 1)
        bumps = torch.exp(-0.5 * ((score[..., None] - centres) / width).square())
        bumps = bumps * self.on_axis[columns, None, None]
        scores = torch.stack([score, score.tanh()], dim=-1)
        return torch.cat([scores, self.embedding(code_index.T), bumps], dim=-1)


def _batched(d: int, d_in: int, d_out: int, gain: float) -> nn.Parameter:
    return nn.Parameter(torch.randn(d, d_in, d_out) * (gain / math.sqrt(max(d_in, 1))))


def column_order(columns: Sequence[ColumnShape]) -> list[int]:
    """Returns the order of the chain rule without regard to functional dependencies, as column
    indices. `order_with_rules` then moves the columns with dependencies.

    Columns with codes (levels, or numbers with frequent values) come first, by increasing number of
    codes. Numbers without frequent values come last, in the order of the table. The chain rule
    itself holds in any order.
    """

    def key(j: int) -> tuple[bool, int]:
        column = columns[j]
        is_coded = column.point_code is None or len(column.discrete_codes) > 0
        return not is_coded, column.n_codes if is_coded else j

    return sorted(range(len(columns)), key=key)


class AutoregressiveNetwork(nn.Module):
    """Network r_j(x_<j, z), which makes the distribution of column j depend on the columns before
    it in `order`. z enters as a hidden vector, the context.

    Attributes:
        order: Column indices in the order of the chain rule.
        earlier: Entry [j, i] is 1 if column i comes before column j, else 0. Shape: (D, D).
        order_tensor: `order` as a tensor. Shape: (D,).
        grouped: Indices of the columns with several codes, sorted by their `CodeGroup`.
        numbers: Indices of the columns of numbers. Shape: (D_real,).
    """

    earlier: Tensor
    order_tensor: Tensor
    grouped: Tensor
    numbers: Tensor

    def __init__(
        self,
        columns: Sequence[ColumnShape],
        marginals: Marginals,
        d_context: int,
        d_sum: int,
        d_column: int,
        functions: Sequence[LevelFunction] = (),
        change_points: Sequence[ChangePoints] = (),
    ) -> None:
        super().__init__()
        d = len(columns)
        self.order = order_with_rules(column_order(columns), columns, functions)
        n_codes = [column.n_codes for column in columns]
        self.functions = nn.ModuleList(
            FunctionStep(function, max(function.columns, key=self.order.index), n_codes)
            for function in functions
        )
        self.features = CellFeatures(columns)
        rank = torch.tensor(self.order).argsort()
        earlier = (rank < rank[:, None]).float()
        set_constants(self, earlier=earlier, order_tensor=torch.tensor(self.order))
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
        grouped = torch.tensor([j for at, _ in self.groups for j in at], dtype=torch.long)
        set_constants(self, grouped=grouped, numbers=marginals.real_columns.clone())
        self.to_logits = nn.ParameterList(
            nn.Parameter(torch.zeros(len(at), d_column, shape[1])) for at, shape in self.groups
        )
        self.shifts = nn.ParameterList(
            nn.Parameter(torch.zeros(*shape)) for _, shape in self.groups
        )
        n_outputs = 3 * marginals.n_components
        self.to_mixture = nn.Parameter(torch.zeros(len(self.real), d_column, n_outputs))
        self.slopes = nn.Parameter(torch.zeros(len(self.real), d, _N_SCORES))
        self.steps = ChangePointLayer(change_points, columns, d_column)
        self.warps = MonotoneTransforms(len(self.real))  # so its tensor is called in artifacts

    def forward(
        self, context: Tensor, rows: EncodedTable, dropout: Dropout | None = None
    ) -> MarginalOutputs:
        """Returns the network's outputs r_j for every column, computed in parallel.

        Args:
            context: Hidden vectors of z. Shape: (..., n, d_context).
            rows: The n complete rows.
            dropout: Dropout of a training step, else None.

        Shape: batch (..., n).
        """
        x = self.features(rows.codes, rows.values)
        if dropout is not None:
            x = x * dropout.kept_columns(rows.codes.shape).T[..., None]
        added = torch.bmm(x, self.add)
        before = self._sum_of_earlier(added) + self.start[:, None]
        total = before.unflatten(1, (1,) * (context.dim() - 2) + (-1,)) + self.read(context)
        h = self._hidden(total.flatten(1, -2), slice(None), dropout)
        shape = broadcast_shape(context.shape[:-1], rows.codes.shape[:1])
        group_logits = h.index_select(0, self.grouped).split([len(at) for at, _ in self.groups])
        logits = [
            _rows_first(torch.baddbmm(shift[:, None], of_group, weight), shape)
            for of_group, weight, shift in zip(
                group_logits, self.to_logits, self.shifts, strict=True
            )
        ]
        for g, added in self.steps.group_logits(self.groups, rows.codes).items():
            logits[g] = logits[g] + added
        of_numbers = h.index_select(0, self.numbers)
        mixture = _rows_first(torch.bmm(of_numbers, self.to_mixture), shape)
        mixture = with_means_moved(mixture, self._mean_shifts(x))
        if not len(self.steps.points):
            return MarginalOutputs(tuple(logits), mixture)
        of_steps = h.index_select(0, self.steps.number_columns)
        bins = _rows_first(self.steps.row_logits(of_steps, rows.codes), shape)
        return MarginalOutputs(tuple(logits), mixture, bins)

    def _mean_shifts(self, x: Tensor) -> Tensor:
        """Returns the shift of each column's mean: linear in the normal scores of earlier cells and
        in their tanh. Shape: features x (D, n, d) -> (n, D_real)."""
        slopes = self.slopes * self.earlier[self.real][..., None]
        return torch.einsum("dnk,rdk->nr", x[..., :_N_SCORES], slopes)

    def _sum_of_earlier(self, added: Tensor) -> Tensor:
        if len(added) <= _MOST_COLUMNS_TO_MULTIPLY:
            # With few columns a product with zeros and ones is faster than cumsum and its gradient.
            return (self.earlier @ added.flatten(1)).view_as(added)
        ordered = added[self.order]
        before = ordered.cumsum(0) - ordered
        return torch.empty_like(added).index_copy(0, self.order_tensor, before)

    def _hidden(self, total: Tensor, columns: slice, dropout: Dropout | None) -> Tensor:
        """Returns the hidden vectors of some columns from their running sums. Shape: (D_part, N,
        d_sum) -> (D_part, N, d_column)."""
        act = nn.functional.silu
        h = torch.baddbmm(self.narrow_bias[columns, None], act(total), self.narrow[columns])
        inner = torch.baddbmm(self.inner_bias[columns, None], act(h), self.inner[columns])
        inner = torch.bmm(act(inner), self.outer[columns])
        return act(h + (inner if dropout is None else dropout.kept_units(inner)))

    @property
    def n_linear_terms(self) -> int:
        """Number of linear terms of a row. Each is a sum of contributions of earlier cells, and is
        added to outputs of a later column without passing through the network.

        Each column of numbers has one, for the means of its mixture. Each bin between change points
        (see `ChangePointLayer`) has one, for the logit of the bin or of the codes in it.
        """
        return len(self.real) + self.steps.n_offsets

    def layers(self, j: int) -> ColumnLayers:
        """Returns the layers for computing column j without the other columns."""
        narrow, inner, outer = (
            part[j].T.contiguous() for part in (self.narrow, self.inner, self.outer)
        )
        biases = self.narrow_bias[j], self.inner_bias[j]
        return ColumnLayers(self.start[j], narrow, biases[0], inner, biases[1], outer)

    @property
    def function_steps(self) -> list[FunctionStep]:
        """Functional dependencies, each applied at the last of its columns in `order`."""
        return [step for step in self.functions if isinstance(step, FunctionStep)]

    def constrained_log_probs(self, log_beta: Sequence[Tensor], codes: Tensor) -> dict[int, Tensor]:
        """Returns log probabilities of codes in the columns that functional dependencies constrain.

        A dependency constrains the last of its columns in `order`. The result is a dict from the
        index of the column to the log probability of its code in each row. Shape: (..., n) each.

        Args:
            log_beta: Log code probabilities without dependencies, for each group of columns. Shape:
                (..., n, D_group, K_group) each.
            codes: Codes of the rows. Shape: (n, D).
        """
        columns: dict[int, Tensor] = {}
        found: dict[int, Tensor] = {}
        lasts = {step.last: step for step in self.function_steps}
        for step in self.function_steps:
            j, given = step.last, codes[:, step.given]
            g, at = self.group_of(j)
            assert g is not None, "the last column of a function has several codes"
            column = columns.get(j, log_beta[g][..., at, :])
            if step is not lasts[j]:
                columns[j] = step(column, given)
            else:
                kept = step.log_prob(column, given, codes[:, j].long().clamp(min=0))
                found[j] = torch.where(codes[:, j] >= 0, kept, -torch.inf)
        return found

    def group_of(self, j: int) -> tuple[int | None, int]:
        """Returns the index of the `CodeGroup` of column j, and the position of the column in the
        group; (None, 0) for a column with a single code, which needs no probabilities."""
        found = [(g, at.index(j)) for g, (at, _) in enumerate(self.groups) if j in at]
        return found[0] if found else (None, 0)

    def code_additions(self, j: int) -> tuple[Tensor, Tensor]:
        """Returns the terms that each of the K codes of column j adds to the inputs of later
        columns: to the running sum, and to the linear terms (see `n_linear_terms`). The code that
        all infrequent numbers share does not determine the number, so its terms are those of a
        normal score of 0. Shape: (K, d_sum), (K, n_linear_terms)."""
        codes = torch.arange(self.features.n_codes[j], device=self.start.device)
        return self._added_by(codes, torch.zeros_like(codes, dtype=torch.float64), j)

    def added_by(
        self, codes: Tensor, values: Tensor, j: int, of_codes: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns the terms that N cells of column j add to the running sum and to the linear
        terms, which are the inputs of later columns.

        The terms of numbers that are not frequent values, and have no code of their own, are
        computed in batches filled to a multiple of `LANES`, so that the terms of a cell do not
        depend on other cells, to the last bit.

        Args:
            codes: Codes of the cells. Shape: (N,), int64.
            values: Values of the cells. Shape: (N,).
            of_codes: The result of `code_additions` for the column; None to compute it.

        Shape: (N, d_sum), (N, n_linear_terms).
        """
        # An impossible particle may have a padding code.
        codes = codes.clamp(0, self.features.n_codes[j] - 1)
        added, moved = (part.index_select(0, codes) for part in of_codes or self.code_additions(j))
        at = padded_to_lanes((codes == self.features.point_codes[j]).nonzero()[:, 0])
        if len(at):
            added[at], moved[at] = self._added_by(codes[at], values[at], j)
        return added, moved

    def _added_by(self, codes: Tensor, values: Tensor, j: int) -> tuple[Tensor, Tensor]:
        """Computes the terms of `added_by` from the features of each cell. This is slower than
        a look-up by code, but uses the values of infrequent numbers, which have no own code."""
        x = self.features(codes[:, None], values[:, None], slice(j, j + 1))[0]
        slopes = self.slopes[:, j] * self.earlier[self.real, j][:, None]
        moved = x[:, :_N_SCORES] @ slopes.T
        if self.steps.n_offsets:
            moved = torch.cat([moved, self.steps.offsets_of(j, codes)], -1)
        return x @ self.add[j], moved


@dataclass(frozen=True)
class ColumnLayers:
    """Layers that compute the hidden vector of one column from the running sum, to which z and the
    earlier columns have added their terms. The tensors are contiguous. Shape: biases (d_out,),
    matrices (d_out, d_in)."""

    start: Tensor
    narrow: Tensor
    narrow_bias: Tensor
    inner: Tensor
    inner_bias: Tensor
    outer: Tensor

    def __call__(self, total: Tensor) -> Tensor:
        """Returns the column's hidden vector of each row. Shape: running sums (N, d_sum) -> (N,
        d_column)."""
        silu = nn.functional.silu
        h = affine(silu(total + self.start, inplace=True), self.narrow, self.narrow_bias)
        inner = affine_silu(silu(h), self.inner, self.inner_bias)
        return silu(affine(inner, self.outer, None, plus=h), inplace=True)


def with_means_moved(mixture: Tensor, by: Tensor) -> Tensor:
    """Returns mixture parameters with `by` added to all M means. Shape: (..., 3 M), (...) -> (...,
    3 M)."""
    weight, mean, log_sigma = mixture.chunk(3, dim=-1)
    return torch.cat([weight, mean + by[..., None], log_sigma], dim=-1)


def _rows_first(outputs: Tensor, shape: torch.Size) -> Tensor:
    by_row: Tensor = outputs.transpose(0, 1).unflatten(0, shape)
    return by_row
