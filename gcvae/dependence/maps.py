"""Dependency maps: matrices of the pairwise dependence of columns, from rows or from copulas.

`gcvae.dependence.notes` and docs/dependencies.md describe the kinds of maps and their limitations.
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

from gcvae.errors import MissingPackageError
from gcvae.figures.figures import format_of_picture
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.cramers_v import cramers_v, group
from gcvae.numerics.kendall import tau_b, tau_of_correlation, with_unit_diagonal

Matrix = NDArray[np.float64]

V_MEASURE = "Cramér's V, bias-corrected; columns of over 50 values in ten quantile bins"
COPULA_MEASURE = (
    "mean |rho| of the copula: with I the mutual information of its pair, sqrt(1 - exp(-2 I))"
)
_Z_PER_CHUNK = 16


@dataclass(frozen=True, repr=False)
class DependencyMap:
    """Pairwise dependence of the D modelled columns of a table. Shape: matrices (D, D), symmetric;
    entries of columns with only one value are NaN."""

    columns: tuple[str, ...]
    """Names of the columns."""
    kind: str
    """Kind of the map, such as `data` (training table) or `total` (synthetic rows)."""
    tau: Matrix
    """Kendall's tau, -1 to 1; for `within` and `between` shares of a correlation, see the notes."""
    unsigned: Matrix
    """Measure without sign, named by `measure`, which does not depend on the order of levels."""
    measure: str
    """Name of the measure in `unsigned`, for users."""
    notes: tuple[str, ...]
    """Statements for users on the meaning and the limitations of the map."""
    nominal: tuple[str, ...] = ()
    """Columns whose levels have no natural order; the sign of their tau depends on a chosen
    order."""
    spread: Matrix | None = None
    """Standard deviation of tau over latent vectors; None if the map is not a mean over them."""
    standard_error: Matrix | None = None
    """Standard error of `tau` for the kinds `within` and `between`; None for other kinds."""

    def __repr__(self) -> str:
        """Returns kind, number of columns and measure, without the matrices."""
        return f"<DependencyMap: {self.kind}, {len(self.columns)} columns, {self.measure}>"

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        """Returns the picture and its description, for notebooks.

        Raises:
            NotImplementedError: matplotlib is not installed; notebooks then show the text.
        """
        try:
            return self.picture(), {
                "alt": f"Dependency map, {self.kind}, of {len(self.columns)} columns"
            }
        except MissingPackageError as error:
            raise NotImplementedError from error  # makes IPython use another representation

    @property
    def is_unsigned(self) -> NDArray[np.bool_]:
        """Mask of pairs of D columns whose dependence has no sign, because a column has unordered
        levels. Shape: (D, D)."""
        found = np.isin(self.columns, self.nominal)
        return found[:, None] | found

    @property
    def strength(self) -> Matrix:
        """Value of each pair of D columns in the picture: an unsigned measure for pairs with a
        column of unordered levels, Kendall's tau for all others. Shape: (D, D)."""
        return np.where(self.is_unsigned, self.unsigned, self.tau)

    @property
    def order(self) -> list[int]:
        """Column indices in an order that puts dependent columns next to each other."""
        from gcvae.dependence.order import clustered_order

        return clustered_order(self.strength)

    def to_json(self, order: Sequence[int] | None = None) -> dict[str, Any]:
        """Returns the map as a JSON-compatible dict.

        Members are the attributes, and `order`: the column indices in the order of the heat map.
        Undefined values are None; `spread` and `standard_error` are omitted if they are None.

        Args:
            order: Value of the member `order`. Default: the property `order`.
        """
        optional = {"spread": self.spread, "standard_error": self.standard_error}
        return {
            "columns": list(self.columns),
            "kind": self.kind,
            "tau": _cells(self.tau),
            "unsigned": _cells(self.unsigned),
            "measure": self.measure,
            "notes": list(self.notes),
            "nominal": list(self.nominal),
            "order": self.order if order is None else list(order),
        } | {name: _cells(matrix) for name, matrix in optional.items() if matrix is not None}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> DependencyMap:
        """Restores a map from a dict that `to_json` returned."""
        spread, standard_error = (
            None if name not in document else np.asarray(document[name], dtype=np.float64)
            for name in ("spread", "standard_error")
        )
        return cls(
            columns=tuple(document["columns"]),
            kind=document["kind"],
            tau=np.asarray(document["tau"], dtype=np.float64),
            unsigned=np.asarray(document["unsigned"], dtype=np.float64),
            measure=document["measure"],
            notes=tuple(document["notes"]),
            nominal=tuple(document["nominal"]),
            spread=spread,
            standard_error=standard_error,
        )

    def draw(
        self,
        target: str | Path | BinaryIO,
        format: str | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        """Draws the map as a heat map and saves the picture.

        Args:
            format: `png` or `svg`. Default: the path's extension, else `png`.
            order: Column indices in the order to draw, such as the `order` of another map. Default:
                dependent columns next to each other.
        """
        from gcvae.dependence.heat_map import draw_heat_map

        chosen = self.order if order is None else list(order)
        places = np.ix_(chosen, chosen)
        draw_heat_map(
            target,
            format or format_of_picture(target),
            [self.columns[i] for i in chosen],
            self.strength[places],
            self.is_unsigned[places],
            self.kind,
        )

    def picture(self, format: str = "png", order: Sequence[int] | None = None) -> bytes:
        """Returns the picture of the map as the bytes of a file, with the arguments of `draw`."""
        buffer = BytesIO()
        self.draw(buffer, format, order)
        return buffer.getvalue()


def _cells(matrix: Matrix) -> list[list[float | None]]:
    """Returns the matrix as lists, with None for NaN."""
    return [[None if math.isnan(cell) else cell for cell in row] for row in matrix.tolist()]


def map_of_rows(
    columns: Sequence[str], kind: str, ranks: Tensor, notes: Sequence[str]
) -> DependencyMap:
    """Computes a dependency map with tau-b and Cramér's V of n rows.

    Args:
        columns: Names of the D columns.
        ranks: Rank of each cell in its column; rows must be in random order. Shape: (n, D).
        notes: Explanations for users of the map.
    """
    groups = [group(ranks[:, j].numpy().astype(np.float64)) for j in range(ranks.shape[1])]
    return DependencyMap(
        columns=tuple(columns),
        kind=kind,
        tau=tau_b(ranks),
        unsigned=cramers_v(groups),
        measure=V_MEASURE,
        notes=tuple(notes),
    )


def difference_of(total: DependencyMap, data: DependencyMap, notes: Sequence[str]) -> DependencyMap:
    """Returns the map of the model's errors: the values of `total` minus those of `data`.

    Args:
        total: Map of synthetic rows.
        data: Map of the training table.
        notes: Explanations for users of the new map.
    """
    return DependencyMap(
        columns=total.columns,
        kind="difference",
        tau=total.tau - data.tau,
        unsigned=total.unsigned - data.unsigned,
        measure=f"of the model's rows less of the table's: {total.measure}",
        notes=tuple(notes),
    )


def map_of_copula(
    model: GenerativeModel,
    columns: Sequence[str],
    kind: str,
    z: Tensor,
    weight: Tensor,
    notes: Sequence[str],
) -> DependencyMap:
    """Computes a map of the decoder's copula: mean and standard deviation over z of Kendall's tau.

    tau_ij(z) = (2/pi) arcsin R_ij(z), with R(z) the copula's correlation matrix given z.

    Args:
        columns: Names of the model's columns i, j.
        z: S latent vectors of K dimensions. Shape: (S, K).
        weight: Weight of each z; the sum is one. Shape: (S,).
        notes: Explanations for users of the map.
    """
    with torch.no_grad():
        moments = _moments(model, z, weight)
    tau = with_unit_diagonal(moments[0])
    spread = np.sqrt(np.clip(moments[1] - tau**2, 0.0, None))
    np.fill_diagonal(spread, 0.0)
    return DependencyMap(
        columns=tuple(columns),
        kind=kind,
        tau=tau,
        unsigned=with_unit_diagonal(moments[2]),
        measure=COPULA_MEASURE,
        notes=tuple(notes),
        spread=spread,
    )


def _moments(model: GenerativeModel, z: Tensor, weight: Tensor) -> Matrix:
    """Returns weighted means over z of tau, its square and |rho|. Shape: (3, D, D)."""
    total: Tensor | float = 0.0
    for chunk, part in zip(z.split(_Z_PER_CHUNK), weight.split(_Z_PER_CHUNK), strict=True):
        rho = model.conditional(chunk).correlation()
        tau = tau_of_correlation(rho)
        each = (tau, tau.square(), rho.abs())
        total = total + torch.stack([torch.tensordot(part, t, 1) for t in each])
    assert isinstance(total, Tensor), "at least one draw"
    found: Matrix = total.cpu().numpy()
    return found
