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
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
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
_MOST_COLUMNS_WITH_LEAVES_IN_ORDER = 200


@dataclass(frozen=True, repr=False)
class DependencyMap:
    """Pairwise dependence of the D modelled columns of a table. Shape: matrices (D, D), symmetric;
    entries of columns with only one value are NaN."""

    columns: tuple[str, ...]
    """Names of the columns."""
    kind: str
    """Kind of the map, such as `data` (training table) or `total` (synthetic rows)."""
    tau: Matrix
    """Kendall's tau, -1 to 1."""
    unsigned: Matrix
    """Measure without sign (see `measure`), which does not depend on the order of levels."""
    measure: str
    """Name of the measure in `unsigned`, for users."""
    notes: tuple[str, ...]
    """Statements for users on the meaning and the limitations of the map."""
    nominal: tuple[str, ...] = ()
    """Columns whose levels have no natural order; the sign of their tau depends on a chosen
    order."""
    spread: Matrix | None = None
    """Standard deviation of tau over latent vectors; None if the map is not a mean over them."""

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
        """Mask of pairs whose dependence has no sign, because a column has unordered levels."""
        found = np.isin(self.columns, self.nominal)
        return found[:, None] | found

    @property
    def strength(self) -> Matrix:
        """Value of each pair in the picture: the measure without sign for pairs with a column of
        unordered levels, Kendall's tau for all others. Shape: (D, D)."""
        return np.where(self.is_unsigned, self.unsigned, self.tau)

    @property
    def order(self) -> list[int]:
        """Column indices in an order that puts dependent columns next to each other."""
        return clustered_order(self.strength)

    def to_json(self, order: Sequence[int] | None = None) -> dict[str, Any]:
        """Returns the map as a JSON-compatible dict.

        Members are the attributes and `order`, the column indices in the order of the heat map.
        Undefined values are None; `spread` is omitted if it is None.
        """
        spread = {} if self.spread is None else {"spread": _cells(self.spread)}
        return {
            "columns": list(self.columns),
            "kind": self.kind,
            "tau": _cells(self.tau),
            "unsigned": _cells(self.unsigned),
            "measure": self.measure,
            "notes": list(self.notes),
            "nominal": list(self.nominal),
            "order": self.order if order is None else list(order),
        } | spread

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> DependencyMap:
        """Restores a map from a dict that `to_json` returned."""
        lists = {name: tuple(document[name]) for name in ("columns", "notes", "nominal")}
        matrices: dict[str, Any] = {
            name: np.asarray(document[name], dtype=np.float64)
            for name in ("tau", "unsigned", "spread")
            if name in document
        }
        return cls(kind=document["kind"], measure=document["measure"], **lists | matrices)

    def draw(
        self,
        target: str | Path | BinaryIO,
        format: str | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        """Draws the map as a heat map and saves the picture.

        Args:
            target: Path or binary file to which the picture is written.
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
    return [[None if math.isnan(cell) else cell for cell in row] for row in matrix.tolist()]


def clustered_order(tau: Matrix) -> list[int]:
    """Returns column indices in an order that puts dependent columns next to each other.

    The order is that of the leaves of a hierarchical clustering with average linkage and distance
    1 - |tau|; up to 200 columns have optimal leaf ordering. NaN counts as 0.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(tau) < 3:
        return list(range(len(tau)))
    strength = np.clip(np.abs(np.nan_to_num(tau)), 0.0, 1.0)
    distance = squareform(1.0 - strength, checks=False)
    has_order = len(tau) <= _MOST_COLUMNS_WITH_LEAVES_IN_ORDER
    tree = linkage(distance, method="average", optimal_ordering=has_order)
    return leaves_list(tree).tolist()  # type: ignore[no-any-return]


def ranks(frame: pd.DataFrame, rows: EncodedTable, codec: TableCodec) -> Tensor:
    """Returns the rank of each cell in its column, from 0; equal cells share a rank.

    Numbers and dates are ranked by size, levels by their integer codes, and missing cells lowest.
    `frame` contains table cells, `rows` the same rows encoded. Shape: (n, D), for n rows and D
    modelled columns.
    """
    places = {column.name: j for j, column in enumerate(codec.columns)}
    columns = []
    for column in codec.modelled:
        if column.kind.is_real or column.name in codec.reduction.rewritten:
            cells = frame[column.name].rank(method="dense").fillna(0.0).to_numpy(dtype=np.float64)
        else:
            cells = rows.codes[:, places[column.name]].numpy()
        columns.append(np.unique(cells, return_inverse=True)[1])
    return torch.from_numpy(np.stack(columns, axis=1))


def map_of_rows(
    columns: Sequence[str], kind: str, ranks: Tensor, notes: Sequence[str]
) -> DependencyMap:
    """Computes a dependency map with tau-b and Cramér's V of n rows.

    Args:
        ranks: Rank of each cell in its column; rows must be in random order. Shape: (n, D).
        notes: Explanations for users of the map.
    """
    groups = [group(column.numpy().astype(np.float64)) for column in ranks.T]
    unsigned = cramers_v(groups)
    return DependencyMap(tuple(columns), kind, tau_b(ranks), unsigned, V_MEASURE, tuple(notes))


def difference_of(total: DependencyMap, data: DependencyMap, notes: Sequence[str]) -> DependencyMap:
    """Returns the map of the model's errors: the values of `total` (synthetic rows) minus those of
    `data` (the training table)."""
    tau, unsigned = total.tau - data.tau, total.unsigned - data.unsigned
    measure = f"of the model's rows less of the table's: {total.measure}"
    return DependencyMap(total.columns, "difference", tau, unsigned, measure, tuple(notes))


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
        columns: Names of the D columns of the model.
        kind: Kind of the map, `local` or `expected`.
        z: S latent vectors of K dimensions. Shape: (S, K).
        weight: Weight of each z; the sum is one. Shape: (S,).
        notes: Explanations for users of the map.
    """
    with torch.no_grad():
        moments = _moments(model, z, weight)
    tau = with_unit_diagonal(moments[0])
    spread = np.sqrt(np.clip(moments[1] - tau**2, 0.0, None))
    np.fill_diagonal(spread, 0.0)
    unsigned, names = with_unit_diagonal(moments[2]), tuple(columns)
    return DependencyMap(names, kind, tau, unsigned, COPULA_MEASURE, tuple(notes), spread=spread)


def _moments(model: GenerativeModel, z: Tensor, weight: Tensor) -> Matrix:
    """Returns the weighted means over S vectors z of Kendall's tau, its square, and the absolute
    correlation of normal scores, for each pair of columns. Shape: (3, D, D)."""
    total: Tensor | float = 0.0
    for chunk, part in zip(z.split(_Z_PER_CHUNK), weight.split(_Z_PER_CHUNK), strict=True):
        rho = model.conditional(chunk).correlation()
        tau = tau_of_correlation(rho)
        each = (tau, tau.square(), rho.abs())
        total = total + torch.stack([torch.tensordot(part, t, 1) for t in each])
    assert isinstance(total, Tensor), "at least one draw"
    found: Matrix = total.cpu().numpy()
    return found
