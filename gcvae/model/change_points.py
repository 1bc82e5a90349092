"""Densities of numbers with steps. The heights of the steps depend on a category.

If a category exists only after a date, the density of the date given the category jumps from zero.
A mixture of Gaussians cannot represent that. A number at which the density of a column may jump is
called a change point, and the column with the category is called the parent. Change points divide
the numbers v of a column into bins: bin b contains the numbers between one change point and the
next. The density is

    p(v | x) = g(v | x) exp(l_b(x)) / sum_c exp(l_c(x)) G_c(x),    b the bin of v,
    l_b(x)   = log P(b | x_parent) - log P(b) + the output of the network for bin b.

Here g is the mixture, G_c the probability of bin c under g, x the earlier cells of the row and
x_parent the category. P(b) is the share of the table's rows in bin b, and P(b | x_parent) the share
among rows with this category. The network's outputs start at zero, so training starts at the ratios
of these shares. If all numbers of a column are frequent values with codes, the log ratios are added
to the logits of these codes.

# PAPER-DIFF: the paper's marginal of a number is one Gaussian at each z.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from gcvae.arrays import Codes, Numbers
from gcvae.model.networks import ColumnShape, set_constants
from gcvae.model.number_marginals import Marginal, Within, invert

_LEAST_MASS = 1e-30
"""Minimum mass of a bin under a mixture, near the smallest float32 number."""
_BEYOND = 1e4
"""Padding of short lists of change points; finite, so that gradients are finite."""


@dataclass(frozen=True)
class ChangePoints:
    """Change points of one column: the numbers at which its density has steps. The heights of the
    steps depend on another column, the parent.

    Attributes:
        column: Index of the column.
        points: Normal scores of the change points between the B bins, ascending. If all numbers of
            the column have codes: the first code of each bin but the first. Shape: (B - 1,).
        parent: Index of the parent, which is generated earlier.
        log_ratio: log P(bin | category) - log P(bin) for each of the parent's K_parent categories.
            Shape: (K_parent, B).
    """

    column: int
    points: Numbers
    parent: int
    log_ratio: Numbers

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns a JSON-compatible dict for `from_json`; `names` are the names of all columns."""
        return {
            "column": names[self.column],
            "points": self.points.tolist(),
            "parent": names[self.parent],
            "log_ratio": self.log_ratio.tolist(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], columns: Sequence[ColumnShape]) -> Self:
        """Restores change points from a dict that `to_json` returned. Raises ValueError if they do
        not fit the columns."""
        names = [column.name for column in columns]
        column, parent = (names.index(document[key]) for key in ("column", "parent"))
        points, log_ratio = (
            np.asarray(document[key], dtype=float) for key in ("points", "log_ratio")
        )
        if columns[column].point_code is None or column == parent:
            raise ValueError(f"{names[column]!r} cannot have change points by {names[parent]!r}")
        shape = columns[parent].n_codes, len(points) + 1
        if log_ratio.shape != shape or not np.isfinite(log_ratio).all():
            raise ValueError(f"the log ratios of {names[column]!r} are not {shape} finite numbers")
        if not (np.isfinite(points).all() and (np.diff(points) > 0).all()):
            raise ValueError(f"the change points of {names[column]!r} do not ascend")
        return cls(column, points, parent, log_ratio)


class ChangePointLayer(nn.Module):
    """Computes the logits of the bins into which change points divide columns of numbers.

    The logit of a bin is a fixed term, called *offset*, plus a learned term. The offset is
    log(share of the bin given the category of the parent column / share of the bin), from counts of
    the table's rows. The bins of each column are padded to `width`, the largest number of bins, so
    a row has `width` offsets for each column with change points. Such a column has either a
    density, or a code for each of its values.

    Attributes:
        points: Change points of the D_steps columns with a density, padded. Shape: (D_steps, width
            - 1).
        log_ratio: Offset of each bin for each category of the parent, padded to the greatest
            number K of categories. Shape: (columns with change points, K, width).
        numbers: Positions of the D_steps columns in the list of columns of numbers. Shape:
            (D_steps,).
        number_columns: Indices of the D_steps columns in the table. Shape: (D_steps,).
        code_bins: For each column whose numbers all have codes, the bin of each code; `width` if
            the code is no number.
    """

    points: Tensor
    log_ratio: Tensor
    numbers: Tensor
    number_columns: Tensor
    code_bins: Tensor

    def __init__(
        self, change_points: Sequence[ChangePoints], columns: Sequence[ColumnShape], d_column: int
    ) -> None:
        """Sets the offsets, and the learned weights to zero. `d_column` is the width of the
        hidden vectors from which the learned terms are computed."""
        super().__init__()
        # Columns with a density come first, columns whose numbers all have codes last.
        self.change_points = sorted(change_points, key=lambda each: _is_coded(columns[each.column]))
        real = [j for j, column in enumerate(columns) if column.point_code is not None]
        own = [each for each in self.change_points if not _is_coded(columns[each.column])]
        self.width = width = max((len(each.points) + 1 for each in self.change_points), default=0)
        n_codes = max((len(each.log_ratio) for each in self.change_points), default=0)
        log_ratio = torch.zeros(len(self.change_points), n_codes, width)
        for row, each in enumerate(self.change_points):
            log_ratio[row, : len(each.log_ratio), : len(each.points) + 1] = torch.from_numpy(
                each.log_ratio
            )
        points = torch.full((len(own), max(width - 1, 0)), _BEYOND, dtype=torch.float64)
        for row, each in enumerate(own):
            points[row, : len(each.points)] = torch.from_numpy(each.points)
        # Calibration moves the points, so they are saved; without points nothing is saved.
        self.register_buffer("points", points, persistent=len(own) > 0)
        set_constants(
            self,
            log_ratio=log_ratio,
            numbers=torch.tensor([real.index(e.column) for e in own]).long(),
            number_columns=torch.tensor([e.column for e in own]).long(),
        )
        self.weight, self.bias = torch.zeros(0, d_column, width), torch.zeros(0, width)
        if own:
            self.weight = nn.Parameter(torch.zeros(len(own), d_column, width))
            self.bias = nn.Parameter(torch.zeros(len(own), width))
        self._rows = {each.column: row for row, each in enumerate(self.change_points)}
        coded = self.change_points[len(own) :]
        self._n_codes = {each.column: columns[each.column].n_codes for each in coded}
        code_bins = torch.zeros(len(coded), max(self._n_codes.values(), default=0)).long()
        for row, each in enumerate(coded):
            bins = torch.from_numpy(_bins_of_codes(each, columns[each.column]))
            code_bins[row, : len(bins)] = bins.where(bins >= 0, width)
        set_constants(self, code_bins=code_bins)

    @property
    def n_offsets(self) -> int:
        """Number of offsets (fixed logits of bins) of a row."""
        return len(self.change_points) * self.width

    def has_numbers(self, j: int) -> bool:
        """Returns whether the density of column j has change points."""
        return self._rows.get(j, len(self.points)) < len(self.points)

    def n_bins(self, j: int) -> int:
        """Returns the number of bins of column j's density; 0 without change points."""
        return len(self.change_points[self._rows[j]].points) + 1 if self.has_numbers(j) else 0

    def weights(self, j: int) -> tuple[Tensor, Tensor]:
        """Returns the weights and the bias of the logits of column j's B bins. Shape: (d_column,
        B), (B,)."""
        row, n_bins = self._rows[j], self.n_bins(j)
        return self.weight[row, :, :n_bins], self.bias[row, :n_bins]

    def offsets_of(self, j: int, codes: Tensor) -> Tensor:
        """Returns the offsets (fixed logits of bins) of the columns whose parent is column j, given
        codes of N cells of column j; 0 for columns with another parent. Shape: codes (N,) -> (N,
        n_offsets)."""
        offsets = self.log_ratio.new_zeros(len(codes), len(self.change_points), self.width)
        for row, each in enumerate(self.change_points):
            if each.parent == j:
                offsets[:, row] = self.log_ratio[row, codes.long().clamp(min=0)]
        return offsets.flatten(1)

    def row_offsets(self, codes: Tensor) -> Tensor:
        """Returns the offsets (fixed logits of bins) of n complete rows. Shape: codes (n, D) -> (n,
        columns with change points, width)."""
        parents = [each.parent for each in self.change_points]
        given = codes[:, parents].long().clamp(min=0)
        return self.log_ratio[torch.arange(len(parents), device=codes.device), given]

    def bin_offsets(self, j: int, offsets: Tensor) -> Tensor:
        """Selects the offsets (fixed logits) of the B bins of column j from those of all columns.
        Shape: (N, n_offsets) -> (N, B)."""
        start = self._rows[j] * self.width
        return offsets[:, start : start + self.n_bins(j)]

    def code_logits(self, j: int, offsets: Tensor) -> Tensor | None:
        """Returns the terms to add to the logits of column j's K codes: the offset (fixed logit) of
        the bin that contains the number of the code, 0 for codes that are not numbers. None if the
        column has no change points between codes. Shape: offsets (N, n_offsets) -> (N, K)."""
        if j not in self._n_codes:
            return None
        row = self._rows[j]
        own = offsets[:, row * self.width : (row + 1) * self.width]
        bins = self.code_bins[row - len(self.points), : self._n_codes[j]]
        return nn.functional.pad(own, (0, 1)).index_select(1, bins)

    def group_logits(
        self, groups: Sequence[tuple[list[int], tuple[int, int]]], codes: Tensor
    ) -> dict[int, Tensor]:
        """Returns the offsets (fixed logits of bins) to add to the logits of codes of n complete
        rows, in a dict by index of the column group; groups without change points between codes are
        omitted.

        Args:
            groups: Column indices of each group, and its shape (D_group, K_group).
            codes: Codes of the rows. Shape: (n, D).

        Shape: (n, D_group, K_group) each.
        """
        found: dict[int, Tensor] = {}
        offsets = self.row_offsets(codes).flatten(1) if self._n_codes else codes
        for g, (columns, shape) in enumerate(groups):
            for at, j in enumerate(columns):
                of_codes = self.code_logits(j, offsets)
                if of_codes is not None:
                    added = found.setdefault(g, offsets.new_zeros(len(codes), *shape))
                    added[:, at, : of_codes.shape[1]] = of_codes
        return found

    def row_logits(self, h: Tensor, codes: Tensor) -> Tensor:
        """Returns the logits of the bins of the D_steps columns with a density, at N / n latent
        vectors for each of n rows. Shape: hidden vectors h (D_steps, N, d_column), codes (n, D) ->
        (D_steps, N, width)."""
        added = torch.baddbmm(self.bias[:, None], h, self.weight)
        offsets = self.row_offsets(codes)[:, : len(self.points)].transpose(0, 1)
        by_draw: Tensor = added.unflatten(1, (-1, len(codes))) + offsets[:, None]
        return by_draw.flatten(1, 2)

    def log_factors(self, base: Marginal, logits: Tensor, values: Tensor) -> Tensor:
        """Returns log p(v) - log g(v), by which the steps change the mixture density g = `base` at
        normal scores v. Shape: base (..., D_steps), logits (..., D_steps, width), values (...,
        D_steps) -> (..., D_steps)."""
        factors = _log_factors(base, logits, self.points)
        at = (values[..., None] >= self.points).sum(-1)
        shape = torch.broadcast_shapes(factors.shape[:-1], at.shape)
        found: Tensor = factors.expand(*shape, -1).gather(-1, at.expand(shape)[..., None])
        return found.squeeze(-1)

    def marginal(self, base: Marginal, j: int, logits: Tensor) -> PiecewiseMarginal:
        """Returns N densities of column j: `base` with steps at change points. Shape: logits (N,
        B)."""
        return PiecewiseMarginal(base, logits, self.points[self._rows[j], : self.n_bins(j) - 1])


@dataclass(frozen=True)
class PiecewiseMarginal:
    """N densities with steps and the interface of `Marginal`: p(v) = g(v) exp(l_b) / Z, with g a
    mixture density, l_b the logit of the bin b that contains v, Z the normaliser.

    Attributes:
        base: The N mixture densities g.
        logits: Logits l_b of the B bins. Shape: (N, B).
        points: Change points, the same for all densities. Shape: (B - 1,).
    """

    base: Marginal
    logits: Tensor
    points: Tensor

    def __getitem__(self, index: Any) -> PiecewiseMarginal:
        """Returns the densities that an index of the batch dimensions selects."""
        return replace(self, base=self.base[index], logits=self.logits[index])

    def double(self) -> PiecewiseMarginal:
        """Returns the densities converted to float64."""
        return replace(self, base=self.base.double(), logits=self.logits.double())

    @cached_property
    def log_factors(self) -> Tensor:
        """Log of the factor exp(l_b) / Z by which the mixture density is multiplied in each of B
        bins. Shape: (N, B)."""
        return _log_factors(self.base, self.logits, self.points)

    @cached_property
    def log_bins(self) -> Tensor:
        """Log probability of each of B bins, for N densities. Shape: (N, B)."""
        return torch.log_softmax(self.logits + _log_masses(self.base, self.points), -1)

    def log_prob(self, values: Tensor) -> Tensor:
        """Returns the log density of one number under each of N densities. Shape: (N,) -> (N,)."""
        at = torch.searchsorted(self.points, values.double().contiguous(), right=True)
        return self.base.log_prob(values) + self.log_factors.gather(-1, at[:, None])[:, 0]

    def cdf(self, values: Tensor) -> Tensor:
        """Returns P(V < v) for m numbers v under each density. Shape: batch (N, 1), values (m,) ->
        (N, m)."""
        at = torch.searchsorted(self.points, values.double().contiguous(), right=True)
        start = nn.functional.pad(self.points, (1, 0), value=-torch.inf)[at].to(values.dtype)
        below = nn.functional.pad(self.log_bins.exp().cumsum(-1), (1, 0))[..., 0, :][:, at]
        inside = self.base.cdf(values) - self.base.cdf(start)
        return below + self.log_factors[:, 0].exp()[:, at] * inside

    def sample(self, noise: Tensor) -> Tensor:
        """Samples each density by inversion of uniform noise. Shape: (N,) -> (N,), float64."""
        at, rest = invert(self.log_bins, noise)
        low, high = (ends[at] for ends in self._ends)
        ends = low.to(self.logits.dtype), high.to(self.logits.dtype)
        _, inside = self.base.draw_inside(*ends, rest)
        # clamp: rounding may leave the bin
        return torch.minimum(torch.maximum(inside.double(), low), high)

    def draw_inside(self, low: Tensor, high: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        lower, upper = (end.double()[:, None] for end in (low, high))
        inside = self.within(lower, upper, torch.zeros_like(lower))
        return inside.log_prob, inside.sample(noise)[0]

    def within(self, lower: Tensor, upper: Tensor, log_slope: Tensor) -> Within:
        """Returns the N densities restricted to m intervals or points, with each interval divided
        at the change points. The arguments are those of `Marginal.within`."""
        first, last = self._ends
        is_point = (lower == upper)[..., None]
        low, high = torch.maximum(lower[..., None], first), torch.minimum(upper[..., None], last)
        is_inside = torch.where(is_point, (low == high) & (low < last), low < high)
        low, high = torch.where(is_inside, low, 0.0), torch.where(is_inside, high, torch.inf)
        slope = log_slope[..., None].expand(low.shape)
        pieces = self.base.within(low.flatten(1), high.flatten(1), slope.flatten(1))
        factors = torch.where(is_inside, self.log_factors.double()[:, None], -torch.inf)
        log_piece = pieces.log_piece.unflatten(-1, (factors[0].numel(), -1))
        log_piece = (log_piece + factors.flatten(1)[..., None]).flatten(1)
        return replace(pieces, log_piece=log_piece, n_pieces=len(first))

    @cached_property
    def _ends(self) -> tuple[Tensor, Tensor]:
        """Starts and ends of the bins. Shape: (B,) each."""
        pad = nn.functional.pad
        return pad(self.points, (1, 0), value=-torch.inf), pad(self.points, (0, 1), value=torch.inf)


def _log_masses(base: Marginal, points: Tensor) -> Tensor:
    """Returns the log probability of each bin between change points under the mixture `base`.

    A probability is the difference of two lower tails below the median, else of two upper tails,
    because small tails are the accurate ones.

    Shape: base (..., D), points (D, B - 1), or (...) and (B - 1,) -> (..., B).
    """
    below, above = base[..., None, :, :].tails(points.to(base.outputs.dtype))
    is_padding = points >= _BEYOND
    below, above = below.masked_fill(is_padding, 1.0), above.masked_fill(is_padding, 0.0)
    pad = nn.functional.pad
    of_low, of_high = pad(pad(below, (1, 0)), (0, 1), value=1.0), pad(above, (1, 0), value=1.0)
    of_high = pad(of_high, (0, 1))
    mass = torch.where(of_low[..., 1:] < 0.5, of_low.diff(dim=-1), -of_high.diff(dim=-1))
    return mass.clamp(min=_LEAST_MASS).log()


def _log_factors(base: Marginal, logits: Tensor, points: Tensor) -> Tensor:
    return logits - (logits + _log_masses(base, points)).logsumexp(-1, keepdim=True)


def _is_coded(column: ColumnShape) -> bool:
    """Returns whether all numbers of the column are frequent values with codes."""
    return len(column.discrete_codes) > 0


def _bins_of_codes(change_points: ChangePoints, column: ColumnShape) -> Codes:
    """Returns the bin of each code; -1 for codes that are not numbers."""
    codes = np.arange(column.n_codes)
    is_shaped = np.isin(codes, column.discrete_codes)
    return np.where(is_shaped, np.searchsorted(change_points.points, codes, side="right"), -1)
