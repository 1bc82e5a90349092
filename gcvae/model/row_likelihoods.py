"""Computes likelihoods of rows under the autoregressive decoder with few evaluations.

For each column, a log density needs the unnormalised probability of the row's code and the log of
the sum over all codes of the column (`ColumnWeights.log_code`). The network's hidden layer is a sum
to which each preceding cell of the row adds a term. The terms of observed cells do not depend on z,
so they are computed once for all samples of z. Unobserved cells are sampled at each z during the
pass, so rows with unobserved cells need their own terms for each z.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.region import Drawn
from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.column_weights import ColumnWeights, columns_in_order
from gcvae.model.marginals import Marginals
from gcvae.model.walks import AutoregressiveWalk
from gcvae.numerics.affine import through
from gcvae.numerics.batches import padded_to_lanes


@dataclass(frozen=True)
class Cells:
    """Cells of m rows at N latent vectors, filled column by column. Complete rows are stored once
    for all their N / m latent vectors; otherwise m = N.

    Attributes:
        log_prob: Log probability (density) of each cell. Shape: (D, N).
        codes: Integer codes of the cells. Shape: (D, m), int64.
        values: Values of the cells. Shape: (D, m).
    """

    log_prob: Tensor
    codes: Tensor
    values: Tensor

    def write(self, j: int, at: Tensor, drawn: Drawn) -> None:
        """Replaces the cells of column j in the rows with the indices `at` by sampled ones."""
        self.log_prob[j, at] = drawn.log_prob.double()
        self.codes[j, at], self.values[j, at] = drawn.codes.long(), drawn.values


class RowLikelihoods:
    """Computes log p(x|z) of rows under an autoregressive decoder; valid until the decoder's
    weights change.

    Attributes:
        trunk: Network from the latent vector z to the hidden vector.
        network: Network that adds the dependence on earlier columns.
        marginals: Marginals of the copula head.
        columns: Weights of the columns, in the order of the chain rule.
    """

    def __init__(
        self, trunk: nn.Module, network: AutoregressiveNetwork, marginals: Marginals
    ) -> None:
        self.trunk, self.network, self.marginals = trunk, network, marginals
        self.columns = columns_in_order(network, marginals)

    @torch.no_grad()
    def __call__(self, rows: EncodedTable, z: Tensor, noise: Tensor) -> Tensor:
        """Returns cumulative log densities: entry j is log p(x|z) of the first j + 1 columns in the
        order of the chain rule.

        Observed cells are scored, and unobserved cells sampled. A cell that stands for an interval
        is scored as the interval, and a number in it is sampled.

        Args:
            rows: Rows. Shape: (n, D).
            z: S latent vectors for each row. Shape: (S, n, K).
            noise: Uniform noise, from which cells are sampled. Shape: (S, n, D).

        Shape: (S, n, D), float64.
        """
        cells = self._start(rows, noise)
        context = through(self.trunk, z.flatten(0, -2))
        walk = AutoregressiveWalk(self.network, self.marginals, context, cells.codes, self.columns)
        noise = noise.flatten(0, -2).double()
        for column in self.columns:
            j, outputs = column.number, walk.outputs(column)
            cells.log_prob[j] = column.log_code(outputs, cells.codes)
            self._add_density(column, outputs, cells)
            if len(cells.codes[j]) == len(outputs):
                self._draw_blanks(column, walk, outputs, rows, cells, noise[:, j])
                self._draw_intervals(column, walk, outputs, rows, cells, noise[:, j])
            walk.step(j, cells.codes[j], cells.values[j])
        prefixes = cells.log_prob[self.network.order].cumsum(0)
        by_row: Tensor = prefixes.unflatten(1, z.shape[:2]).movedim(0, -1)
        return by_row

    def _start(self, rows: EncodedTable, noise: Tensor) -> Cells:
        """Returns the cells before the pass: one copy of each row for each sample of z if cells
        have to be sampled, else one copy for all samples."""
        n_all = noise[..., 0].numel()
        is_whole = rows.intervals is None and bool(rows.observed.all())
        times = 1 if is_whole else n_all // len(rows)
        return Cells(
            noise.new_zeros((noise.shape[-1], n_all), dtype=torch.float64),
            rows.codes.T.long().repeat(1, times),
            rows.values.T.repeat(1, times),
        )

    def _add_density(self, column: ColumnWeights, outputs: Tensor, cells: Cells) -> None:
        """Adds the log density of the column's infrequent numbers to `cells.log_prob`."""
        j = column.number
        if column.number_index is None:
            return
        of_rows = padded_to_lanes((cells.codes[j] == column.point_code).nonzero()[:, 0])
        if not len(of_rows):
            return
        transform = self.network.warps.column(column.number_index)
        value, log_slope = transform.forward(cells.values[j, of_rows])
        m, times = cells.codes.shape[1], cells.log_prob.shape[1] // cells.codes.shape[1]
        index = (of_rows + m * torch.arange(times, device=of_rows.device)[:, None]).flatten()
        numbers = column.marginal(outputs[index])
        cells.log_prob[j, index] += numbers.log_prob(value.repeat(times)) + log_slope.repeat(times)

    def _draw_blanks(
        self,
        weights: ColumnWeights,
        walk: AutoregressiveWalk,
        outputs: Tensor,
        rows: EncodedTable,
        cells: Cells,
        noise: Tensor,
    ) -> None:
        """Samples the unobserved cells of a column and stores them in `cells`.

        `rows.dependent` may allow only some cells, depending on earlier ones. The stored log
        probability is that of all allowed cells together, so 0 without constraints. `walk` has
        visited the earlier columns, and `outputs` are those of this column.
        """
        j = weights.number
        times = cells.codes.shape[1] // len(rows)
        blank = padded_to_lanes((~rows.observed[:, j]).repeat(times).nonzero()[:, 0])
        if not len(blank):
            return
        column = walk.with_functions(j, weights.distribution(outputs[blank]), blank)
        if j in rows.dependent:
            codes, values = cells.codes[:, blank].T, cells.values[:, blank].T
            known = rows.dependent[j].take(blank % len(rows))
            drawn = known.draw(column, noise[blank], codes, values)
        else:
            drawn = Drawn(noise.new_zeros(len(blank)), *column.draw(noise[blank]))
        cells.write(j, blank, drawn)

    def _draw_intervals(
        self,
        weights: ColumnWeights,
        walk: AutoregressiveWalk,
        outputs: Tensor,
        rows: EncodedTable,
        cells: Cells,
        noise: Tensor,
    ) -> None:
        """Samples a number in each cell of the column that stands for an interval, and stores it in
        `cells` with the log probability of the interval."""
        j = weights.number
        if rows.intervals is None or weights.number_index is None:
            return
        intervals = rows.intervals[:, j].repeat(cells.codes.shape[1] // len(rows), 1)
        at = padded_to_lanes((~torch.isnan(intervals[:, 0])).nonzero()[:, 0])
        column = walk.with_functions(j, weights.distribution(outputs[at]), at)
        codes, values, log_prob = (t[j, at] for t in (cells.codes, cells.values, cells.log_prob))
        drawn = column.draw_intervals(codes, values, intervals[at], log_prob, noise[at])
        cells.write(j, at, drawn)
