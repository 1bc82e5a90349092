"""Weights of one column of the autoregressive decoder, for fast generation and scoring.

A code is an integer that stands for a level, a frequent number, or all other numbers. The
unnormalised probability of code k, called its mass, is

    mass_k = 2^(l_k / log 2) (sum_m w_m N(s_k; mu_m, sigma_m^2) + epsilon)

with l_k the logit of the code. Logits are divided by log 2, which converts them to bits, because
exp2 takes half the time of exp. The second factor applies only in columns that contain many atoms
(frequent numbers) and no other numbers. It is the density of the column's Gaussian mixture at the
normal score s_k of the atom, plus a small constant epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gcvae.model.autoregressive import AutoregressiveNetwork
from gcvae.model.change_points import PiecewiseMarginal
from gcvae.model.column_distribution import ColumnDistribution
from gcvae.model.marginals import Marginals
from gcvae.model.number_marginals import Marginal, Triple
from gcvae.numerics.affine import affine
from gcvae.numerics.batches import LANES

_MOST_BITS = 100.0
"""Logits in bits up to which powers of two and their sums do not overflow float32."""
_LEAST_SUM, _MOST_SUM = 1e-30, 1e30
"""Range in which a sum of masses is accurate without logarithms."""
_LN_2 = math.log(2.0)
_LOG2_E = 1.0 / _LN_2


class ColumnWeights:
    """Weights that compute the outputs of one column in one step: the outputs of its marginal layer
    plus the outputs of the autoregressive network.

    A column has w outputs, in this order: the logits of its K codes, in bits; the 3 M parameters of
    the M components of its mixture; the logits of its B bins, if the density of the column has
    steps (see `ChangePointLayer`); and padding.

    Attributes:
        number: Index of the column.
        layers: Layers of the network for this column.
        n_codes: Number of codes K; a column with a single code has no logits.
        point_code: The code shared by all numbers that are not frequent values; -1 for levels.
        number_index: Position in the list of columns of numbers; None for a column of levels.
        n_mixture: 3 M, for M mixture components; 0 for a column of levels.
        of_context: Weights of the hidden vector of z. Shape: (w, d_context).
        of_hidden: Weights of the column's hidden vector. Shape: (w, d_column).
        bias: Biases. Shape: (w,).
        additions: Terms that each code adds to the inputs of later columns.
        marginals: Output layers of the decoder, which convert outputs to distributions.
        network: Autoregressive network, to which `layers` belong.
        densities: Computes the mixture densities at the atoms (frequent numbers); None if the code
            probabilities do not depend on these densities.
        steps: Functional dependencies whose other columns are all generated before this column.
    """

    def __init__(self, network: AutoregressiveNetwork, marginals: Marginals, j: int) -> None:
        shape = marginals.columns[j]
        self.number, self.n_codes = j, shape.n_codes
        self.point_code = int(marginals.point_codes[j])
        self.number_index = network.real.index(j) if j in network.real else None
        self.n_mixture = 0 if self.number_index is None else 3 * marginals.n_components
        self.marginals, self.network, self.layers = marginals, network, network.layers(j)
        self.additions = network.code_additions(j)
        self.steps = [step for step in network.function_steps if step.last == j]
        g, row = network.group_of(j)
        self.densities = None if g is None else marginals.atom_shapes[g].densities(row, shape)
        d_context, d_column = network.read.in_features, network.narrow.shape[-1]
        # A column of one level has no outputs.
        nothing = network.start.new_zeros(0)
        parts: list[Triple] = [(nothing.expand(d_context, 0), nothing.expand(d_column, 0), nothing)]
        if g is not None:
            group = marginals.code_groups[g]
            own = slice(row * group.shape[1], None)
            weight, bias = (part[own][: self.n_codes] for part in group.logits.parameters())
            of_hidden = network.to_logits[g][row][:, : self.n_codes]
            bias = bias + network.shifts[g][row][: self.n_codes]
            parts.append((weight.T * _LOG2_E, of_hidden * _LOG2_E, bias * _LOG2_E))
        if self.number_index is not None:
            own = slice(
                self.number_index * self.n_mixture, (self.number_index + 1) * self.n_mixture
            )
            weight, bias = marginals.mixture.weight[own], marginals.mixture.bias[own]
            parts.append((weight.T, network.to_mixture[self.number_index], bias))
        if network.steps.has_numbers(j):
            of_bins, bias = network.steps.weights(j)
            parts.append((network.start.new_zeros(d_context, len(bias)), of_bins, bias))
        of_context, of_hidden, self.bias = (_widened(part) for part in zip(*parts, strict=True))
        self.of_context, self.of_hidden = of_context.T.contiguous(), of_hidden.T.contiguous()

    @property
    def n_logits(self) -> int:
        """Number of logits: K, or 0 for a column with a single code."""
        return self.n_codes if self.n_codes > 1 else 0

    def outputs(self, context: Tensor, total: Tensor, linear_terms: Tensor) -> Tensor:
        """Returns the w outputs of the column for n rows.

        Args:
            context: Hidden vectors of z. Shape: (n, d_context).
            total: Sums of the terms of z and of the earlier columns. Shape: (n, d_sum).
            linear_terms: Sums to which the earlier columns have added, and which move the means of
                numbers and the logits of bins. Shape: (n, n_linear_terms).

        Shape: (n, w).
        """
        outputs = affine(context, self.of_context, self.bias)
        outputs = affine(self.layers(total), self.of_hidden, None, plus=outputs)
        if self.number_index is not None:
            means = self._mixture(outputs).unflatten(-1, (3, -1))[:, 1]
            means += linear_terms[:, self.number_index, None]
        change_points, offsets = self.network.steps, linear_terms[:, len(self.network.real) :]
        of_codes = change_points.code_logits(self.number, offsets)
        if of_codes is not None:
            outputs[:, : self.n_codes] += of_codes * _LOG2_E
        elif change_points.has_numbers(self.number):
            self._bins(outputs).add_(change_points.bin_offsets(self.number, offsets))
        return outputs

    def _mixture(self, outputs: Tensor) -> Tensor:
        return outputs[:, self.n_logits : self.n_logits + self.n_mixture]

    def marginal(self, outputs: Tensor) -> Marginal | PiecewiseMarginal:
        """Returns for each of n rows the density of the column's numbers, computed from the
        network's outputs for the column. Shape: (n, w) -> batch (n,)."""
        base = self.marginals.numbers_of(self._mixture(outputs))
        change_points = self.network.steps
        if not change_points.has_numbers(self.number):
            return base
        return change_points.marginal(base, self.number, self._bins(outputs))

    def _bins(self, outputs: Tensor) -> Tensor:
        start = self.n_logits + self.n_mixture
        return outputs[:, start : start + self.network.steps.n_bins(self.number)]

    def masses(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Returns unnormalised code probabilities, with functional dependencies enforced. `codes`
        has a row for each of the D columns; only the rows of earlier columns are used. Shape:
        outputs (n, w), codes (D, n) -> (n, K)."""
        masses = _powers_of_two(outputs[:, : self.n_codes])
        if self.densities is not None:
            atoms = self.densities.atoms
            masses[:, atoms.start : atoms.stop] *= self.densities.at_atoms(self._mixture(outputs))
        for step in self.steps:
            masses = step.masses(masses, codes[step.given].T)
        return masses

    def distribution(self, outputs: Tensor) -> ColumnDistribution:
        """Returns the distribution of the column in each of n rows, computed from the network's
        outputs for the column. Functional dependencies are ignored. Shape: (n, w) -> n
        distributions."""
        log_beta = self._log_beta_alone(outputs)
        if self.number_index is None:
            return ColumnDistribution(log_beta, self.point_code, None, None)
        transform = self.network.warps.column(self.number_index)
        return ColumnDistribution(log_beta, self.point_code, self.marginal(outputs), transform)

    def _log_beta_alone(self, outputs: Tensor) -> Tensor:
        """Returns log code probabilities, ignoring functional dependencies."""
        if not self.n_logits:
            return outputs.new_zeros(len(outputs), 1)
        logits = outputs[:, : self.n_codes] * _LN_2
        if self.densities is not None:
            atoms = self.densities.atoms
            density = self.densities.at_atoms(self._mixture(outputs))
            logits[:, atoms.start : atoms.stop] += density.log()
        return torch.log_softmax(logits, -1)

    def log_code(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Returns the log probability of this column's code in m rows, with functional dependencies
        enforced. Each row is evaluated at n / m samples of z. Shape: outputs (n, w), codes of all
        columns (D, m) -> (n,)."""
        own = codes[self.number].clamp(0, self.n_codes - 1)
        if self.steps:
            log_prob = self._log_code_of_steps(outputs, codes, own)
        elif self.n_logits:
            log_prob = self._log_code(outputs, own.repeat(len(outputs) // len(own)))
        else:
            log_prob = outputs.new_zeros(len(outputs))
        return _rows_of(log_prob, own).masked_fill(codes[self.number] < 0, -torch.inf).flatten()

    def _log_code(self, outputs: Tensor, own: Tensor) -> Tensor:
        """Returns the log probability of each row's code `own`, ignoring functional dependencies.
        Shape: (n, w), (n,) -> (n,)."""
        bits = outputs[:, : self.n_codes]
        masses, found = bits.exp2(), _at(bits, own)
        if self.densities is not None:
            first, last = self.densities.atoms.start, self.densities.atoms.stop
            density = self.densities.at_atoms(self._mixture(outputs))
            masses[:, first:last] *= density
            at_own = _at(density, (own - first).clamp(0, last - first - 1))
            found = found + torch.where((own >= first) & (own < last), at_own, 1.0).log2()
        total = masses.sum(-1)
        if bool(((total > _LEAST_SUM) & (total < _MOST_SUM)).all()):
            return (found - total.log2()) * _LN_2
        return _at(self._log_beta_alone(outputs), own)

    def _log_code_of_steps(self, outputs: Tensor, codes: Tensor, own: Tensor) -> Tensor:
        """Returns the log probability of each row's code `own`, with functional dependencies
        enforced. Shape: outputs (n, w), codes (D, m), own (m,) -> (n,)."""
        log_beta = _rows_of(self._log_beta_alone(outputs), own)
        for step in self.steps[:-1]:
            log_beta = step(log_beta, codes[step.given].T)
        last = self.steps[-1]
        return last.log_prob(log_beta, codes[last.given].T, own).flatten()


def columns_in_order(network: AutoregressiveNetwork, marginals: Marginals) -> list[ColumnWeights]:
    """Returns a `ColumnWeights` for each column, in the order of the chain rule."""
    with torch.no_grad():
        return [ColumnWeights(network, marginals, j) for j in network.order]


def _widened(parts: Sequence[Tensor]) -> Tensor:
    """Concatenates weights along the last dimension and pads it with zeros to a multiple of
    `LANES`. At other widths, the last bit of a row's result may depend on the rest of the batch."""
    joined = torch.cat(list(parts), -1)
    return nn.functional.pad(joined, (0, -joined.shape[-1] % LANES))


def _powers_of_two(bits: Tensor) -> Tensor:
    """Returns 2^bits, up to a factor for each row that avoids overflow."""
    low, high = bits.aminmax()
    if float(low) > -_MOST_BITS and float(high) < _MOST_BITS:
        return bits.exp2()
    return torch.softmax(bits * _LN_2, -1)


def _at(table: Tensor, codes: Tensor) -> Tensor:
    found: Tensor = table.gather(-1, codes[:, None])[:, 0]
    return found


def _rows_of(found: Tensor, own: Tensor) -> Tensor:
    """Splits the first dimension of `found` into samples of z and the m rows, of which `own` has
    one entry each. Shape: (n, ...), (m,) -> (n / m, m, ...)."""
    by_time: Tensor = found.unflatten(0, (-1, len(own)))
    return by_time
