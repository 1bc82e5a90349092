"""Conditional marginals p_j(x_j | z): probabilities, tails and quantiles of each column.

Each cell is encoded as an integer *code*. Every level has a code of its own, and so do missing
cells and every atom (a frequent number). All other numbers share the column's *point code* and also
have a real value. Every column has code probabilities, and columns with a point code have a mixture
density of the values. With one Gaussian these are the paper's marginals: categorical for discrete
columns and Gaussian for continuous ones. Columns with similar numbers of codes share one weight
matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.code_groups import CodeGroup, code_groups
from gcvae.model.column_distribution import ColumnDistribution
from gcvae.model.networks import ColumnShape, linear, set_constants
from gcvae.model.number_marginals import Marginal, Triple
from gcvae.numerics.batches import broadcast_shape
from gcvae.numerics.mixture_sums import log_mixture_sums
from gcvae.numerics.normal import normal_cdf, normal_score_of_tails

_LEAST_SHAPE = 1e-5
"""Added to a mixture's density at the atoms, so that each has a positive probability."""
_MINIMUM_LOG_WIDTH = -4.0
"""Lower limit of log sigma of a mixture over atoms; sigma is in units of normal scores."""
_LEAST_ATOMS_TO_SHAPE = 12
"""Minimum number of atoms for which the mixture contributes to their logits."""


@dataclass(frozen=True)
class CellProbabilities:
    """Probabilities of the cells of rows under the marginals p_j(. | z).

    A point cell is a number with a density; an interval cell occupies an interval of probabilities.
    All probabilities are logarithms, so that normal scores can be computed from the smaller tail.
    The `score` of a number with a Gaussian marginal is (x - mu) / sigma, because Phi^-1(Phi(.)) is
    infinite in float32 beyond 5.4 sigma. Shape: each field (..., D), broadcast against each other.
    """

    log_prob: Tensor
    """log p_j(x_j | z): log probability of an interval, log density of a point."""
    log_below: Tensor
    """log P(X_j < cell); -inf for the lowest cell. Only used for interval cells."""
    log_above: Tensor
    """log P(X_j > cell); -inf for the highest cell. Only used for interval cells."""
    score: Tensor
    """Normal score q_j of a point cell, 0 for an interval."""
    is_point: Tensor
    """bool; True for point cells, False for intervals."""

    def interval_bounds(self) -> tuple[Tensor, Tensor]:
        """Returns the normal scores of the lower and the upper end of each interval cell; arbitrary
        for points. Shape: two of (..., D)."""
        lower = normal_score_of_tails(
            self.log_below, torch.logaddexp(self.log_above, self.log_prob)
        )
        upper = normal_score_of_tails(
            torch.logaddexp(self.log_below, self.log_prob), self.log_above
        )
        return lower, upper

    def jittered_scores(self, jitter: Tensor) -> Tensor:
        """Returns normal scores q = Phi^-1(u), with u = P(below) + v p(cell) for interval cells and
        a jitter v uniform on (0, 1). Shape: (..., D), as `jitter`.

        Source: Eq. (CE) and Eq. (GCVAE_norm_score).
        """
        below = torch.logaddexp(self.log_below, self.log_prob + jitter.log())
        above = torch.logaddexp(self.log_above, self.log_prob + torch.log1p(-jitter))
        extended = normal_score_of_tails(below, above)
        return torch.where(self.is_point, self.score, extended)


@dataclass(frozen=True)
class MarginalParameters:
    """Parameters of all marginals p_j(x_j|z) at a batch (...) of z.

    Attributes:
        log_beta: Log probabilities of the integer codes of cells, for each group of D_group columns
            with up to K_group codes. Shape: (..., D_group, K_group) each.
        numbers: Densities of the D_real columns of numbers. Shape: batch (..., D_real).
    """

    log_beta: tuple[Tensor, ...]
    numbers: Marginal

    def zeros(self, n_columns: int, n_rows: Sequence[int] = ()) -> Tensor:
        """Returns zeros for `n_columns` columns. Shape: (*rows_shape(n_rows), n_columns)."""
        return self.numbers.outputs.new_zeros((*self.rows_shape(n_rows), n_columns))

    def rows_shape(self, n_rows: Sequence[int]) -> torch.Size:
        """Returns the batch shape (...) of z, broadcast with the shape `n_rows`."""
        return broadcast_shape(self.numbers.outputs.shape[:-3], n_rows)


@dataclass(frozen=True)
class MarginalOutputs:
    """Outputs of a network, which `Marginals.parameters_of` converts to parameters. The outputs of
    the marginals' layers and of the autoregressive network can be added.

    Attributes:
        logits: Logits of codes of each group. Shape: (..., D_group, K_group) each.
        mixture: Logits of weights, means and log sigmas of M components. Shape: (..., D_real, 3 M).
        bins: Logits of the B bins between change points, for the D_steps columns with a density
            that has steps; None without them. Shape: (..., D_steps, B).
    """

    logits: tuple[Tensor, ...]
    mixture: Tensor
    bins: Tensor | None = None

    def __add__(self, other: MarginalOutputs) -> MarginalOutputs:
        """Adds logits and mixture outputs. The bins are those of `other`, the outputs of the
        autoregressive network, because marginals have none."""
        pairs = zip(self.logits, other.logits, strict=True)
        logits = tuple(a + b for a, b in pairs)
        return MarginalOutputs(logits, self.mixture + other.mixture, other.bins)

    def first(self, n: int) -> MarginalOutputs:
        """Returns the outputs of the first n rows, without `bins`."""
        return MarginalOutputs(tuple(logits[:n] for logits in self.logits), self.mixture[:n])


class AtomShapes(nn.Module):
    """Adds to the logits of atoms (frequent numbers with a code) the log density of the column's
    mixture.

    Neighbouring atoms thus get similar probabilities from few outputs; the logits of single codes
    only describe differences between neighbours.

    Attributes:
        powers: (1, s, s^2) of the normal score s of each code, for the D_shaped columns of the
            group that have enough atoms. Shape: (D_shaped, 3, K_group).
        shaped: Mask of the codes that are atoms. Shape: (D_shaped, K_group).
        rows: Positions of the D_shaped columns in the group. Shape: (D_shaped,).
        real: Positions of the D_shaped columns in the list of columns of numbers. Shape:
            (D_shaped,).
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
            if len(columns[j].discrete_codes) >= _LEAST_ATOMS_TO_SHAPE
        ]
        width = max(columns[j].n_codes for j in group)
        scores, shaped = torch.zeros(len(rows), width), torch.zeros(len(rows), width)
        for i, row in enumerate(rows):
            column = columns[group[row]]
            assert column.code_scores is not None, "shaped codes have scores"
            scores[i, : column.n_codes] = torch.tensor(column.code_scores)
            shaped[i, list(column.discrete_codes)] = 1.0
        numbers = [list(real).index(group[row]) for row in rows]
        powers = torch.stack([torch.ones_like(scores), scores, scores.square()], dim=1)
        set_constants(
            self,
            powers=powers,
            shaped=shaped,
            rows=torch.tensor(rows, dtype=torch.long),
            real=torch.tensor(numbers, dtype=torch.long),
        )

    def add_to(self, logits: Tensor, mixture: Tensor) -> Tensor:
        """Returns the logits of codes, with the log density of the mixture added for each atom
        (frequent number). Shape: logits (..., D_group, K_group), mixture parameters (..., D_real, 3
        M) -> as logits."""
        if not len(self.rows):
            return logits
        return logits.index_add(-2, self.rows, self._shapes(mixture[..., self.real, :]))

    def densities(self, row: int, column: ColumnShape) -> AtomDensities | None:
        """Returns an object that computes the mixture density at the atoms of the column at
        position `row` in the group; None if no mixture contributes to the column's logits."""
        at = (self.rows == row).nonzero()[:, 0]
        if not len(at):
            return None
        atoms = column.discrete_codes
        powers = self.powers[at[0]][:, atoms.start : atoms.stop]
        return AtomDensities(atoms, powers / math.log(2.0))

    def _shapes(self, mixture: Tensor) -> Tensor:
        """Returns log (sum_m w_m N(s_k; mu_m, sigma_m^2) + epsilon) at each atom, 0 at other codes.
        Shape: (..., D_shaped, 3 M) -> (..., D_shaped, K_group)."""
        terms = _exponent_terms(mixture)
        # One matrix product for each column: (D_shaped, M N, 3) @ (D_shaped, 3, K_group).
        by_column = terms.reshape(-1, *terms.shape[-3:]).permute(1, 2, 0, 3).contiguous()
        shapes = log_mixture_sums(by_column, self.powers, _LEAST_SHAPE)
        shapes = shapes * self.shaped[:, None]
        return shapes.movedim(0, 1).reshape(*terms.shape[:-2], -1)


@dataclass(frozen=True)
class AtomDensities:
    """Computes the density of one column's mixture at its atoms.

    Attributes:
        atoms: Codes of the atoms.
        powers: (1, s, s^2) / log 2 of each atom's normal score s. The division by log 2 is there
            because exp2, which is faster than exp, computes the density. Shape: (3, n_atoms).
    """

    atoms: range
    powers: Tensor

    def at_atoms(self, mixture: Tensor) -> Tensor:
        """Returns the mixture density at each atom (frequent number) plus a small constant, up to a
        common factor. Components are added one by one, so that results fit into a core's cache.
        Shape: (n, 3 M) -> (n, n_atoms)."""
        density = mixture.new_full((len(mixture), len(self.atoms)), _LEAST_SHAPE)
        exponent = torch.empty_like(density)
        for terms in _exponent_terms(mixture).movedim(-2, 0).contiguous():
            density += torch.mm(terms, self.powers, out=exponent).exp2_()
        return density


def _exponent_terms(mixture: Tensor) -> Tensor:
    """Returns (A, B, C) such that log [w_m N(s; mu_m, sigma_m^2)] = A + B s + C s^2 up to a
    constant. Shape: (..., 3 M) -> (..., M, 3)."""
    weight, mean, log_sigma = mixture.unflatten(-1, (3, -1)).unbind(-2)
    log_sigma = log_sigma.clamp(min=_MINIMUM_LOG_WIDTH)
    precision = torch.exp(-2.0 * log_sigma)
    log_weight = torch.log_softmax(weight, dim=-1)
    constant = log_weight - log_sigma - 0.5 * mean.square() * precision
    return torch.stack([constant, mean * precision, -0.5 * precision], dim=-1)


class Marginals(nn.Module):
    """Output layers for the marginals p_j(x_j|z) of D columns: code probabilities, and mixture
    densities of numbers.

    With F the distribution function of a column of numbers, a frequent number x_k corresponds to
    the interval [F(x_k-), F(x_k)] of probabilities, and any other number x to the point F(x).

    Attributes:
        point_codes: The code shared by all numbers that are not frequent values; -1 for levels.
            Shape: (D,).
        real_columns: Indices of the columns of numbers. Shape: (D_real,).
        has_one_code: Whether the column has a single code, which all its numbers share. Shape:
            (D_real,).
        code_values: Number that each code stands for, concatenated for all columns of numbers.
        value_starts: Index in `code_values` of each column's first code. Shape: (D_real,).

    # PAPER-DIFF: the paper's marginal of a number is one Gaussian, which `n_components` 1 gives;
    # more components fit skewed and multimodal conditionals.

    Source: Section 4, p_i(x_i^c) and p_i(x_i^s).
    """

    point_codes: Tensor
    real_columns: Tensor
    has_one_code: Tensor
    code_values: Tensor
    value_starts: Tensor

    def __init__(
        self,
        d_hidden: int,
        columns: Sequence[ColumnShape],
        n_components: int = 1,
        means_in_unit: bool = False,
    ) -> None:
        """Initialises the layers.

        Args:
            d_hidden: Width of the hidden vector from which the outputs are computed.
            columns: Properties of the D columns.
            n_components: Number of Gaussians in the mixture of each column of numbers.
            means_in_unit: Whether the means of the Gaussians are sigmoids of the outputs, because
                numbers are encoded in the range from 0 to 1.
        """
        super().__init__()
        self.columns = tuple(columns)
        self.n_components, self.means_in_unit = n_components, means_in_unit
        point = [-1 if column.point_code is None else column.point_code for column in columns]
        real = [j for j, column in enumerate(columns) if column.point_code is not None]
        single = [columns[j].n_codes == 1 for j in real]
        code_values = [value for j in real for value in (*columns[j].code_values, torch.inf)]
        starts = [sum(columns[i].n_codes for i in real[:at]) for at in range(len(real))]
        set_constants(
            self,
            point_codes=torch.tensor(point),
            real_columns=torch.tensor(real, dtype=torch.long),
            has_one_code=torch.tensor(single, dtype=torch.bool),
            code_values=torch.tensor(code_values).double(),
            value_starts=torch.tensor(starts).long(),
        )
        self.groups = nn.ModuleList(code_groups(d_hidden, columns))
        self.shapes = nn.ModuleList(
            AtomShapes(columns, group.columns.tolist(), real) for group in self.code_groups
        )
        self.mixture = linear(d_hidden, len(real) * 3 * n_components)
        if real:
            _spread_components(self.mixture.bias, len(real), n_components)

    @property
    def code_groups(self) -> list[CodeGroup]:
        """Output layers for code probabilities, one for each group of columns."""
        return [group for group in self.groups if isinstance(group, CodeGroup)]

    @property
    def atom_shapes(self) -> list[AtomShapes]:
        """Contributions of mixtures to the logits of atoms, for each group of columns."""
        return [shapes for shapes in self.shapes if isinstance(shapes, AtomShapes)]

    def start_at(self, code_counts: Sequence[Tensor]) -> None:
        """Sets the biases so that initial code probabilities are the shares of the codes in the
        table, because an optimiser would need many steps to reach the logit of a rare level.

        Args:
            code_counts: Number of rows with each code, for each column. Shape: (K_j,) each.
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
        """Returns the outputs of all layers. Shape: hidden (..., d_hidden)."""
        shape = len(self.real_columns), 3 * self.n_components
        return MarginalOutputs(
            logits=tuple(group(hidden) for group in self.groups),
            mixture=self.mixture(hidden).unflatten(-1, shape),
        )

    def parameters_of(self, outputs: MarginalOutputs) -> MarginalParameters:
        """Converts outputs to code probabilities and densities of numbers."""
        triples = zip(self.code_groups, self.atom_shapes, outputs.logits, strict=True)
        return MarginalParameters(
            log_beta=tuple(
                group.log_beta(shapes.add_to(logits, outputs.mixture))
                for group, shapes, logits in triples
            ),
            numbers=self.numbers_of(outputs.mixture),
        )

    def numbers_of(self, mixture: Tensor) -> Marginal:
        """Converts mixture parameters to densities of numbers. Shape: (..., 3 M) -> batch (...)."""
        outputs = mixture.unflatten(-1, (3, self.n_components))
        if self.means_in_unit:
            weight, mean, log_sigma = outputs.unbind(-2)
            outputs = torch.stack([weight, mean.sigmoid(), log_sigma], -2)
        return Marginal(outputs)

    def column(self, parameters: MarginalParameters, j: int) -> ColumnDistribution:
        """Returns the distribution of column j for N rows."""
        log_beta = parameters.zeros(1)
        for group, of_group in zip(self.code_groups, parameters.log_beta, strict=True):
            at = (group.columns == j).nonzero()[:, 0]
            log_beta = of_group[:, int(at)] if len(at) else log_beta
        at = (self.real_columns == j).nonzero()[:, 0]
        numbers = parameters.numbers.column(int(at)) if len(at) else None
        return ColumnDistribution(log_beta, int(self.point_codes[j]), numbers, None)

    def code_values_of(self, j: int) -> Tensor:
        """Returns the number that each of the K codes of column j stands for; -inf for codes that
        are ordered below all numbers, such as that of missing cells; inf for levels and for the
        code that all infrequent numbers share. Shape: (K,)."""
        rows = [g.code_values[g.columns == j] for g in self.code_groups if j in g.columns.tolist()]
        return rows[0][0] if rows else self.code_values.new_full((1,), torch.inf)

    def forward(self, hidden: Tensor) -> MarginalParameters:
        """Returns the parameters of the marginals given hidden vectors. Shape: (..., d_hidden)."""
        return self.parameters_of(self.outputs(hidden))

    def _code_tails(self, parameters: MarginalParameters, rows: EncodedTable) -> Triple:
        """Returns the log probability of each cell's code, of all codes below it and of all codes
        above it; the last two omit the code of infrequent numbers. Shape: (n, D) -> three of (...,
        n, D)."""
        certain = parameters.zeros(len(self.columns), rows.codes.shape[:-1])
        log_prob = torch.where(rows.codes >= 0, certain, -torch.inf)
        tails = log_prob, certain - torch.inf, certain - torch.inf
        for group, log_beta in zip(self.code_groups, parameters.log_beta, strict=True):
            at = group.columns
            found = group.tails(log_beta, rows.codes[..., at], rows.values[..., at])
            tails = _placed(tails, at, found)
        return tails

    def _log_points(self, parameters: MarginalParameters) -> Tensor:
        log_point = parameters.zeros(len(self.columns))
        for group, log_beta in zip(self.code_groups, parameters.log_beta, strict=True):
            log_point = log_point.index_copy(-1, group.columns, group.log_point(log_beta))
        return log_point[..., self.real_columns]

    def _values_of_cells(self, rows: EncodedTable) -> Tensor:
        """Returns the number in each cell: its value, or the number of its code. Shape: (n, D) ->
        (n, D_real)."""
        j = self.real_columns
        codes = rows.codes[..., j]
        of_code = self.code_values[codes.long().clamp(min=0) + self.value_starts]
        return torch.where(codes == self.point_codes[j], rows.values[..., j], of_code)

    def log_codes(self, parameters: MarginalParameters, codes: Tensor) -> Tensor:
        """Returns the log probability of every cell's code; -inf for -1, a level that the model
        does not contain. Shape: (n, D) -> (..., n, D)."""
        log_prob = parameters.zeros(len(self.columns), codes.shape[:-1])
        log_prob = torch.where(codes >= 0, log_prob, -torch.inf)
        for group, log_beta in zip(self.code_groups, parameters.log_beta, strict=True):
            found = group.log_prob(log_beta, codes[..., group.columns])
            log_prob = log_prob.index_copy(-1, group.columns, found)
        return log_prob

    def cells(self, parameters: MarginalParameters, rows: EncodedTable) -> CellProbabilities:
        """Returns the log probability (or density) of each cell, and the log probabilities of all
        lower and of all higher values, under the column's marginal. Shape: n rows of D columns ->
        each field (..., n, D)."""
        tails = self._code_tails(parameters, rows)
        j, values = self.real_columns, self._values_of_cells(rows)
        is_number = (rows.codes == self.point_codes).expand(tails[0].shape)
        is_point = is_number & ~rows.are_intervals
        finite = values.masked_fill(torch.isneginf(values), 0.0)
        numbers = parameters.numbers.at(finite.to(tails[0].dtype))
        score = numbers.score
        if score is None or rows.intervals is not None or not bool(self.has_one_code.all()):
            inner = parameters.zeros(len(j), rows.codes.shape[:-1]), *numbers.log_tails
            if rows.intervals is not None:
                is_interval = (is_number & rows.are_intervals)[..., j]
                narrowed = parameters.numbers.log_masses(rows.intervals[..., j, :])
                inner = _chosen(is_interval, narrowed, inner)
            tails = _joined(tails, j, self._log_points(parameters), inner, torch.isneginf(values))
            by_tails = normal_score_of_tails(tails[1][..., j], tails[2][..., j])
            score = by_tails if score is None else torch.where(self.has_one_code, score, by_tails)
        log_prob, log_below, log_above = tails
        score = torch.where(is_point[..., j], score, 0.0)
        log_density = torch.where(is_point[..., j], numbers.log_prob, 0.0)
        return CellProbabilities(
            log_prob=log_prob.index_add(-1, j, log_density.to(log_prob.dtype)),
            log_below=log_below,
            log_above=log_above,
            score=torch.zeros_like(log_prob).index_copy(-1, j, score.to(log_prob.dtype)),
            is_point=is_point,
        )

    def quantile(self, parameters: MarginalParameters, score: Tensor) -> tuple[Tensor, Tensor]:
        """Applies the quantile function of each column to Phi(score).

        Returns:
            Code of each cell, and the value of each number without a code of its own (else 0).

        Shape: (..., D) -> codes int32 (..., D), values float64 (..., D).
        Source: Appendix B (sampling from the copula), then the marginal quantile functions.
        """
        u = normal_cdf(score.double())
        cells = torch.zeros_like(u, dtype=torch.long), torch.zeros_like(u), torch.ones_like(u)
        for group, log_beta in zip(self.code_groups, parameters.log_beta, strict=True):
            cdf = self._cdf_of(parameters, group)
            found = group.codes_at(log_beta, u[..., group.columns], cdf)
            cells = _placed(cells, group.columns, found)
        codes, start, mass = cells
        j = self.real_columns
        inside = ((u - start) / mass)[..., j].clamp(1e-15, 1.0 - 1e-15)
        inner = torch.where(self.has_one_code, score[..., j].double(), torch.special.ndtri(inside))
        numbers = parameters.numbers.quantile(inner)
        is_point = codes[..., j] == self.point_codes[j]
        values = torch.zeros_like(u).index_copy(-1, j, torch.where(is_point, numbers, 0.0))
        return codes.int(), values

    def _cdf_of(
        self, parameters: MarginalParameters, group: CodeGroup
    ) -> Callable[[Tensor], Tensor]:
        """Returns the CDF of the infrequent numbers in each column of a group, as a function that
        returns 0 for columns of levels."""
        at = group.is_real.nonzero()[:, 0]
        real = torch.searchsorted(self.real_columns, group.columns[at])
        numbers = parameters.numbers[..., real, :, :]

        def cdf(values: Tensor) -> Tensor:
            return torch.zeros_like(values).index_copy(-1, at, numbers.cdf(values[..., at]))

        return cdf


def padded_counts(counts: Tensor, n_codes: int) -> Tensor:
    """Returns the counts padded with zeros to `n_codes` codes. Shape: (n_codes,)."""
    return torch.nn.functional.pad(counts, (0, n_codes - len(counts)))


def _spread_components(bias: Tensor, n_columns: int, n_components: int) -> None:
    if n_components == 1:
        return
    with torch.no_grad():
        by_column = bias.view(n_columns, 3, n_components)
        by_column[:, 0] = 0.0
        by_column[:, 1] = torch.linspace(-1.5, 1.5, n_components)
        by_column[:, 2] = -0.4


def _placed(whole: Triple, columns: Tensor, part: Triple) -> Triple:
    first, second, third = (w.index_copy(-1, columns, p) for w, p in zip(whole, part, strict=True))
    return first, second, third


def _chosen(condition: Tensor, some: Triple, others: Triple) -> Triple:
    first, second, third = (torch.where(condition, a, b) for a, b in zip(some, others, strict=True))
    return first, second, third


def _joined(
    tails: Triple, j: Tensor, log_point: Tensor, inner: Triple, is_lowest: Tensor
) -> Triple:
    """Returns log probabilities of each cell, of all lower and of all higher values of its column.

    They combine `tails`, the log probabilities of the cell's code, of all lower and of all higher
    codes, with the infrequent numbers of the columns `j`. `inner` are the log probabilities of the
    cell's interval, of lower and of higher numbers under the density of the infrequent numbers;
    `log_point` is the log probability of the code that they share. The mask `is_lowest` marks cells
    that are below all numbers, such as missing ones.
    """
    share, under, over = inner
    code, below, above = (tail.to(share.dtype) for tail in tails)
    under = torch.logaddexp(below[..., j], log_point + under)
    over = log_point + over.masked_fill(is_lowest, 0.0)
    return (
        code.index_add(-1, j, share),
        below.index_copy(-1, j, torch.where(is_lowest, below[..., j], under)),
        above.index_copy(-1, j, torch.logaddexp(above[..., j], over)),
    )
