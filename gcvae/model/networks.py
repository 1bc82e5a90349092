"""Encoder and building blocks of decoders: perceptrons over columns of levels and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcvae.codec.encoded_table import EncodedTable

LOG_TAU_RANGE = (-7.0, 2.0)
"""The posterior's log standard deviation is clamped to this range."""

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "silu": nn.SiLU}


@dataclass(frozen=True)
class ColumnShape:
    """Properties of a table column that determine the sizes of the networks' layers.

    A cell's integer code is one of `n_codes`. It stands for a level, missing or an atom (a frequent
    number), or is the point code, which all other numbers share.
    """

    name: str
    n_codes: int
    point_code: int | None
    """The code of cells that also have a real value, the last one; None for a column of levels."""
    code_scores: tuple[float, ...] | None = None
    """Normal score of the number for which each code stands, an input of the networks; None for
    levels, and for numbers that are not encoded as normal scores."""
    discrete_codes: range = range(0)
    """Codes of the atoms if all numbers of the column are atoms, else empty."""
    parents: tuple[int, ...] = ()
    """Indices of columns that come before this one in the chain rule, because its cells cannot be
    decoded without theirs."""
    other_code_values: tuple[float, ...] | None = None
    """Number that each code stands for, without the code of infrequent numbers; None if all lie
    below the column's values."""

    @property
    def code_values(self) -> tuple[float, ...]:
        """Number that each code stands for, without the last code, which infrequent numbers share;
        -inf for codes that are ordered below all numbers, such as that of missing cells. Empty for
        a column of levels."""
        if self.point_code is None:
            return ()
        lowest = (-math.inf,) * self.point_code
        return lowest if self.other_code_values is None else self.other_code_values


def set_constants(module: nn.Module, **tensors: Tensor) -> None:
    """Registers tensors as buffers of a module, which move with it and are not saved."""
    for name, tensor in tensors.items():
        module.register_buffer(name, tensor, persistent=False)


class EmptyLinear(nn.Module):
    """Linear layer with zero inputs or outputs; `nn.Linear` warns about empty matrices."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


def linear(d_in: int, d_out: int) -> nn.Linear | EmptyLinear:
    """Returns a linear layer; the numbers of inputs and outputs may be zero."""
    return nn.Linear(d_in, d_out) if d_in and d_out else EmptyLinear(d_in, d_out)


@dataclass(frozen=True)
class Dropout:
    """Samples the dropout masks of a training step.

    Attributes:
        columns: Mean share of dropped input cells. Each row has a random share, uniform from 0 to
            twice the mean.
        hidden: Share of dropped hidden units.
        generator: Random generator of the step.
    """

    columns: float
    hidden: float
    generator: torch.Generator

    def kept_columns(self, shape: torch.Size) -> Tensor:
        """Samples a mask of input cells: 1 for visible, 0 for dropped. Shape: (n, D)."""
        rate = 2.0 * self.columns * self._uniform((shape[0], 1))
        return (self._uniform(tuple(shape)) > rate).float()

    def kept_units(self, h: Tensor) -> Tensor:
        """Returns hidden units, some of them zero and the others scaled up to keep the mean."""
        if self.hidden == 0.0:
            return h
        # Each unit needs one random byte; the generator returns eight at once.
        n_dropped = round(256 * self.hidden)
        bits = torch.empty(-(-h.numel() // 8), dtype=torch.int64, device=h.device)
        bits.random_(-(2**63), None, generator=self.generator)
        kept = (bits.view(torch.uint8)[: h.numel()] >= n_dropped).view(h.shape)
        return h * (kept.to(h.dtype) * (256 / (256 - n_dropped)))

    def _uniform(self, shape: tuple[int, ...]) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.generator.device)


class MixedInput(nn.Module):
    """First layer V_y x + b_y of the encoder, over one-hot encoded levels and standardised numbers.

    The product with a one-hot vector is an embedding lookup. Unobserved cells contribute zero.

    Attributes:
        offsets: Index of each one-hot column's first code in the table of embeddings.
        one_hot_columns: Indices of the columns with several codes.
        real_columns: Indices of the columns of numbers.

    Shape: n rows of D columns -> (n, d_out).
    Source: Eq. (vae4); one-hot and standardised input as in the experiment on UCI Auto.
    """

    offsets: Tensor
    one_hot_columns: Tensor
    real_columns: Tensor

    def __init__(self, columns: Sequence[ColumnShape], d_out: int) -> None:
        super().__init__()
        one_hot = [j for j, column in enumerate(columns) if column.n_codes > 1]
        real = [j for j, column in enumerate(columns) if column.point_code is not None]
        starts = [sum(columns[i].n_codes for i in one_hot[:at]) for at in range(len(one_hot))]
        set_constants(
            self,
            one_hot_columns=torch.tensor(one_hot, dtype=torch.long),
            real_columns=torch.tensor(real, dtype=torch.long),
            offsets=torch.tensor(starts, dtype=torch.long),
        )
        n_levels = sum(columns[j].n_codes for j in one_hot)
        # Initialisation bound of a linear layer with as many inputs as a row has non-zero ones.
        self.bound = math.sqrt(3.0 / max(1, len(one_hot) + len(real)))
        self.levels = nn.Embedding(n_levels, d_out)
        self.numbers = linear(len(real), d_out)
        nn.init.uniform_(self.levels.weight, -self.bound, self.bound)

    def forward(self, rows: EncodedTable) -> Tensor:
        j = self.one_hot_columns
        codes = rows.codes[:, j].long()
        counts = (rows.observed[:, j] & (codes >= 0)).to(self.levels.weight.dtype)
        looked_up = self.levels(codes.clamp(min=0) + self.offsets)
        r = self.real_columns
        values = rows.values[:, r].to(self.numbers.weight.dtype) * rows.observed[:, r]
        output: Tensor = (looked_up * counts[..., None]).sum(1) + self.numbers(values)
        return output


def perceptron(d_in: int, widths: Sequence[int], activation: str) -> nn.Sequential:
    """Returns linear layers with the given output widths, each followed by an activation."""
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(d_in, width), ACTIVATIONS[activation]()]
        d_in = width
    return nn.Sequential(*layers)


class Encoder(nn.Module):
    """Network that computes the approximate posterior q(z|x) = N(eta(x), diag tau(x)^2).

    Shape: n rows of D columns -> eta (n, K), log tau (n, K), for K latent dimensions.
    Source: Eqs. (vae3) and (vae4).
    """

    def __init__(
        self, columns: Sequence[ColumnShape], widths: Sequence[int], d_latent: int, activation: str
    ) -> None:
        super().__init__()
        self.input = MixedInput(columns, widths[0])
        self.activation = ACTIVATIONS[activation]()
        self.hidden = perceptron(widths[0], widths[1:], activation)
        self.eta = nn.Linear(widths[-1], d_latent)
        self.log_tau = nn.Linear(widths[-1], d_latent)

    def forward(self, rows: EncodedTable) -> tuple[Tensor, Tensor]:
        """Returns mean and log standard deviation of q(z | row). Shape: (n, K) each."""
        y = self.hidden(self.activation(self.input(rows)))
        return self.eta(y), self.log_tau(y).clamp(*LOG_TAU_RANGE)

    def spread(self, factor: float) -> None:
        """Multiplies the weights of the posterior means by `factor`, so that the means of different
        rows lie farther apart when training starts."""
        with torch.no_grad():
            self.eta.weight.mul_(factor)
