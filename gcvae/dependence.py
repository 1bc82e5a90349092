"""Kendall's tau between columns: of the decoder's copula, of the model's rows, of the data.

What each kind of map shows, and what it can not:

- `expected`: tau of the decoder copula at one z, (2/pi) arcsin rho, averaged over the prior. It is
  the dependence that is left once z is known, *not* the dependence of the columns as a whole: most
  of that runs through z, and a pair may well have the other sign here.
- `total`: tau-b of a large sample of the model's rows: all of the dependence, whatever its path.
- `data`: tau-b of the training table, kept at training time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcvae.model import GenerativeModel

Matrix = NDArray[np.float64]

_PAIR_BUDGET = 4e10
"""Multiplications that one tau-b map may cost: it sets how many rows are compared."""
_MOST_ROWS = 10_000
_ROWS_PER_BLOCK = 64
_N_BINS = 10
"""Quantile bins of a continuous column in Cramér's V."""
_PRIOR_DRAWS = 2_000


@dataclass(frozen=True)
class DependencyMap:
    """Pairwise dependence of the modelled columns.

    Shape: tau, unsigned (D, D), symmetric with a diagonal of ones; spread (D, D) or None.
    """

    columns: tuple[str, ...]
    kind: str
    tau: Matrix
    """Kendall's tau, -1 to 1."""
    unsigned: Matrix
    """A measure without sign, 0 to 1, named by `measure`; it needs no order of the levels."""
    measure: str
    notes: tuple[str, ...]
    spread: Matrix | None = None
    """Standard deviation of tau over the draws of z, where the map is a mean over them."""

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document: `columns`, `kind`, `tau`, `unsigned`, `measure`, `notes`."""
        document = {
            "columns": list(self.columns),
            "kind": self.kind,
            "tau": self.tau.tolist(),
            "unsigned": self.unsigned.tolist(),
            "measure": self.measure,
            "notes": list(self.notes),
        }
        return document if self.spread is None else {**document, "spread": self.spread.tolist()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> DependencyMap:
        """The map of a document that `to_json` made."""
        spread = document.get("spread")
        return cls(
            columns=tuple(document["columns"]),
            kind=document["kind"],
            tau=np.asarray(document["tau"], dtype=np.float64),
            unsigned=np.asarray(document["unsigned"], dtype=np.float64),
            measure=document["measure"],
            notes=tuple(document["notes"]),
            spread=None if spread is None else np.asarray(spread, dtype=np.float64),
        )

    def draw(self, target: str | Path | BinaryIO, format: str = "png") -> None:
        """Draws the map as a heat map (`png` or `svg`), its columns in clustered order."""
        from gcvae.heat_map import draw_heat_map

        draw_heat_map(self, target, format)

    def picture(self, format: str = "png") -> bytes:
        """The drawn map as bytes."""
        buffer = BytesIO()
        self.draw(buffer, format)
        return buffer.getvalue()


def tau_of_correlation(rho: Tensor) -> Tensor:
    """Kendall's tau of a Gaussian copula, tau = (2/pi) arcsin rho. Shape: as rho.

    >>> round(float(tau_of_correlation(torch.tensor(0.5))), 6)
    0.333333

    Source: Meyer 2013, as used for the figure on UCI Auto.
    """
    return (2.0 / math.pi) * torch.arcsin(rho)


def tau_b(ranks: Tensor) -> Matrix:
    """Kendall's tau-b of every pair of columns.

    tau_b(x, y) = sum s_x s_y / sqrt(sum s_x^2 sum s_y^2) over pairs of rows, with s the sign of
    the pair's difference, zero for a tie. So all pairs of columns come from one matrix product.
    Where there are more rows than the budget allows, the first ones are used: pass rows in random
    order. A column of ties only has tau 0 with all others.

    Shape: ranks (n, D) -> (D, D).
    Source: Kendall 1945.
    """
    ranks = ranks[: _rows_within_budget(ranks.shape[1])].float()
    n, d = ranks.shape
    product = torch.zeros(d, d, dtype=torch.float64)
    for start in range(0, n, _ROWS_PER_BLOCK):
        block, later = ranks[start : start + _ROWS_PER_BLOCK], ranks[start + _ROWS_PER_BLOCK :]
        # Within the block every pair of rows comes up twice, once in each order.
        product += 0.5 * _sign_product(block, block) + _sign_product(block, later)
    untied = product.diagonal().clamp(min=1.0).sqrt()
    tau = product / (untied[:, None] * untied[None, :])
    return _with_unit_diagonal(tau.numpy())


def _sign_product(x: Tensor, y: Tensor) -> Tensor:
    """Sum over row pairs of sign(x_a - y_b) sign(x_a - y_b)^T. Shape: (m, D), (n, D) -> (D, D)."""
    signs = torch.sign(x[:, None] - y[None]).flatten(0, 1)
    return (signs.T @ signs).double()


def _rows_within_budget(n_columns: int) -> int:
    return int(min(_MOST_ROWS, math.sqrt(2.0 * _PAIR_BUDGET / n_columns**2)))


def _with_unit_diagonal(matrix: Matrix) -> Matrix:
    """The symmetric part, with ones on the diagonal and clipped to [-1, 1]."""
    symmetric = np.clip((matrix + matrix.T) / 2.0, -1.0, 1.0)
    np.fill_diagonal(symmetric, 1.0)
    return symmetric


def cramers_v(groups: Sequence[NDArray[np.int64]]) -> Matrix:
    """Cramér's V of every pair of grouped columns, corrected for its bias.

    phi^2 = chi^2 / n less its expectation under independence, over the corrected number of groups.

    Shape: D arrays (n,) -> (D, D).
    Source: Bergsma 2013.
    """
    d = len(groups)
    v = np.eye(d)
    for i in range(d):
        for j in range(i):
            v[i, j] = v[j, i] = _corrected_v(groups[i], groups[j])
    return v


def _corrected_v(x: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    rows, columns = int(x.max()) + 1, int(y.max()) + 1
    table = np.bincount(x * columns + y, minlength=rows * columns).reshape(rows, columns)
    table = table[table.sum(1) > 0][:, table.sum(0) > 0].astype(np.float64)
    n = table.sum()
    r, c = table.shape
    if min(r, c) < 2:
        return 0.0
    expected = np.outer(table.sum(1), table.sum(0)) / n
    phi_squared = float(((table - expected) ** 2 / expected).sum() / n)
    corrected = max(0.0, phi_squared - (r - 1) * (c - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return min(1.0, math.sqrt(corrected / least)) if least > 0 else 0.0


def group(ranks: NDArray[np.float64]) -> NDArray[np.int64]:
    """A column's values as groups: its levels, or ten quantile bins if it has more than 50.

    Shape: (n,) -> (n,).
    """
    levels, codes = np.unique(ranks, return_inverse=True)
    if len(levels) <= 50:
        return codes.astype(np.int64)
    edges = np.unique(np.quantile(ranks, np.linspace(0, 1, _N_BINS + 1)[1:-1]))
    return np.searchsorted(edges, ranks, side="right").astype(np.int64)


def map_of_rows(
    columns: Sequence[str], kind: str, ranks: Tensor, notes: Sequence[str]
) -> DependencyMap:
    """tau-b and Cramér's V of rows given by the ranks of their cells. Shape: ranks (n, D)."""
    groups = [group(ranks[:, j].numpy().astype(np.float64)) for j in range(ranks.shape[1])]
    return DependencyMap(
        columns=tuple(columns),
        kind=kind,
        tau=tau_b(ranks),
        unsigned=cramers_v(groups),
        measure="Cramér's V, bias-corrected; columns of over 50 values in ten quantile bins",
        notes=tuple(notes),
    )


def map_of_copula(
    model: GenerativeModel, columns: Sequence[str], generator: torch.Generator, notes: Sequence[str]
) -> DependencyMap:
    """Expected tau of the decoder's copula over the prior: E_z (2/pi) arcsin R_ij(z).

    The mean of tau, not the tau of the mean correlation.
    """
    with torch.no_grad():
        z = model.prior.sample(_PRIOR_DRAWS, generator)
        total, squares = _moments_of_tau(model, z)
    mean = _with_unit_diagonal((total / len(z)).cpu().numpy())
    variance = (squares / len(z)).cpu().numpy() - mean**2
    spread = np.sqrt(np.clip(variance, 0.0, None))
    np.fill_diagonal(spread, 0.0)
    return DependencyMap(
        columns=tuple(columns),
        kind="expected",
        tau=mean,
        unsigned=np.abs(mean),
        measure="absolute value of the expected tau",
        notes=tuple(notes),
        spread=spread,
    )


def _moments_of_tau(model: GenerativeModel, z: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of tau and of its square over draws of z, a block at a time. Shape: two of (D, D)."""
    sums: list[Tensor] = []
    for block in torch.split(z, _ROWS_PER_BLOCK):
        tau = tau_of_correlation(model.conditional(block).correlation())
        sums.append(torch.stack([tau.sum(0), tau.square().sum(0)]))
    total = torch.stack(sums).sum(0)
    return total[0], total[1]
