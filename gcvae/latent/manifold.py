"""Learned manifold: the decoder's marginals p(x_j | z) on a grid of latent vectors z."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.rare_levels import GroupedLevelCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import InputError, Problem
from gcvae.figures.figures import format_of_picture
from gcvae.latent.grids import QUANTILES, Grid, LevelGrid, NumberGrid
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.schema.columns import Column

MOST_STEPS = 50
_CELLS_PER_PLACE = 64
_MOST_NAMES = 3
_NOTES = (
    "the decoder's marginals p(x_j | z) on a grid of the prior's quantiles, dimension by dimension",
    "of numbers the 10 %, 50 % and 90 % quantiles, of levels their probabilities; `loadings` are "
    "those of the copula, a of Psi = omega I + a a^T",
)
_HEAD_NOTE = (
    "of the copula head: the autoregressive decoder, from which the model's rows come, moves each "
    "marginal by the columns before it"
)


@dataclass(frozen=True)
class Manifold:
    """Marginals of each column given z, on an S x S grid of two-dimensional z.

    Entry [i, k] of a grid belongs to z = (z_1[k], z_2[i]).

    Attributes:
        probability: Probabilities whose prior quantiles are the grid values. Shape: (S,).
        z_1: Grid values of the first dimension of z: quantiles of the prior. Shape: (S,).
        z_2: Grid values of the second dimension of z. Shape: (S,).
        log_density: Log prior density log p(z), nats. Shape: (S, S).
        columns: Quantiles or level probabilities of each column.
        loadings: Loadings of the copula given z, for D encoded columns; None without a copula.
            Shape: (S, S, D).
        notes: Statements for users on the meaning of the numbers.
    """

    probability: Grid
    z_1: Grid
    z_2: Grid
    log_density: Grid
    columns: tuple[NumberGrid | LevelGrid, ...]
    loadings: Grid | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the attributes as a JSON-compatible dict."""
        return {
            "probability": self.probability.tolist(),
            "z_1": self.z_1.tolist(),
            "z_2": self.z_2.tolist(),
            "log_density": self.log_density.tolist(),
            "columns": [column.to_json() for column in self.columns],
            "loadings": None if self.loadings is None else self.loadings.tolist(),
            "notes": list(self.notes),
        }

    def draw(self, target: str | Path | BinaryIO, format: str | None = None) -> None:
        """Draws a picture with a panel for each column and saves it.

        A panel shows the median of numbers, or the most probable level, at each z of the grid.

        Args:
            target: Path or binary file to which the picture is written.
            format: `png` or `svg`. Default: the path's extension, else `png`.
        """
        from gcvae.latent.manifold_picture import draw_manifold

        chosen = format or format_of_picture(target)
        draw_manifold(target, chosen, self.columns, self.z_1, self.z_2)

    def picture(self, format: str = "png") -> bytes:
        """Returns the picture as the bytes of a `png` or `svg` file."""
        buffer = BytesIO()
        self.draw(buffer, format)
        return buffer.getvalue()


def manifold_of(model: GenerativeModel, codec: TableCodec, n_steps: int) -> Manifold:
    """Computes the decoder's marginals on a grid of two-dimensional latent vectors.

    The grid values of each dimension are the prior's quantiles at (i + 1/2) / S, for i from 0 to
    S - 1.

    Args:
        model: Model with two latent dimensions.
        codec: Codec of the model's table, which converts codes and numbers back to cells.
        n_steps: Number S of grid values in each dimension, from 2 to `MOST_STEPS`.

    Raises:
        InputError: The latent space is not two-dimensional, or `n_steps` is out of range.
    """
    _check(model.prior.d_latent, n_steps)
    probability = (np.arange(n_steps) + 0.5) / n_steps
    with torch.no_grad():
        z_1, z_2 = model.prior.quantiles(probability, generator_for(0, "manifold")).T
    places = np.stack(np.meshgrid(z_1, z_2), axis=-1).reshape(-1, 2)
    z = torch.tensor(places, dtype=torch.float32)
    shape = n_steps, n_steps
    with torch.no_grad():
        loadings = model.conditional(z).loadings
        return Manifold(
            probability=probability,
            z_1=z_1,
            z_2=z_2,
            log_density=model.prior.log_prob(z).view(shape).double().numpy(),
            columns=_columns(model, codec, z, shape),
            loadings=None if loadings is None else loadings.unflatten(0, shape).double().numpy(),
            notes=(*_NOTES, _HEAD_NOTE) if model.is_autoregressive else _NOTES,
        )


def _check(d_latent: int, n_steps: int) -> None:
    if d_latent != 2:
        problem = Problem(
            f"the latent space has {d_latent} dimensions",
            expected="a model trained with d_latent 2, to draw its manifold on a plane",
        )
        raise InputError(problem)
    if not 2 <= n_steps <= MOST_STEPS:
        expected = f"2 to {MOST_STEPS} quantiles a dimension"
        raise InputError(Problem(f"steps is {n_steps}", "?steps", expected=expected))


def _columns(
    model: GenerativeModel, codec: TableCodec, z: Tensor, shape: tuple[int, int]
) -> tuple[NumberGrid | LevelGrid, ...]:
    """Returns the distribution of each modelled column at each latent vector z.

    Probabilities are those of the decoder, with two exceptions: columns that a rule computes, and
    columns that are modelled as several columns (such as whole amounts and cents). For these, 64
    rows are decoded at each z, and shares are counted.
    """
    cells, owners = _quantile_cells(model, codec, z), codec.reduction.owners
    found: dict[str, NumberGrid | LevelGrid] = {}
    for column, probability in zip(codec.columns, _code_probabilities(model, z), strict=True):
        name = owners.get(column.name, column.name)
        if name in found:  # another part of the same column
            continue
        if column.name in owners:
            found[name] = _grid_of_cells(codec.reduction.schema[name], cells[name], shape)
        elif column.is_real:
            missing = probability[:, 0] if column.has_missing else np.zeros(len(probability))
            found[name] = _number_grid(name, cells[name], missing, shape)
        else:
            found[name] = LevelGrid(name, _code_names(column), probability.reshape(*shape, -1))
    return tuple(found.values())


def _grid_of_cells(
    column: Column, cells: pd.Series[Any], shape: tuple[int, int]
) -> NumberGrid | LevelGrid:
    missing = cells.isna().to_numpy().reshape(-1, _CELLS_PER_PLACE).mean(1)
    if not column.kind.has_levels:
        return _number_grid(column.name, cells, missing, shape)
    shares = [
        (cells == level).fillna(False).to_numpy(bool).reshape(-1, _CELLS_PER_PLACE).mean(1)
        for level in column.typed_levels
    ]
    names = tuple(map(str, column.levels or ()))
    if column.missing.allowed:
        names, shares = ("(missing)", *names), [missing, *shares]
    return LevelGrid(column.name, names, np.stack(shares, -1).reshape(*shape, -1))


def _code_probabilities(model: GenerativeModel, z: Tensor) -> list[Grid]:
    """Returns, for every column, the probability of each code at each vector z."""
    parameters = model.conditional(z).marginal_parameters
    found: list[Grid] = [np.ones((len(z), column.n_codes)) for column in model.marginals.columns]
    for group, log_beta in zip(model.marginals.code_groups, parameters.log_beta, strict=True):
        for at, j in enumerate(group.columns.tolist()):
            n_codes = model.marginals.columns[j].n_codes
            found[j] = log_beta[:, at, :n_codes].double().exp().numpy()
    return found


def _quantile_cells(model: GenerativeModel, codec: TableCodec, z: Tensor) -> pd.DataFrame:
    """Returns 64 evenly spaced quantiles of every marginal for each z, decoded to table cells: 64
    consecutive rows for each z."""
    u = (torch.arange(_CELLS_PER_PLACE, dtype=torch.float64) + 0.5) / _CELLS_PER_PLACE
    parameters = model.conditional(z.repeat_interleave(len(u), 0)).marginal_parameters
    score = torch.special.ndtri(u).repeat(len(z))[:, None].expand(-1, len(codec.columns))
    codes, values = model.marginals.quantile(parameters, score)
    return codec.decode(EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool)))


def _number_grid(
    name: str, cells: pd.Series[Any], missing: Grid, shape: tuple[int, int]
) -> NumberGrid:
    """Returns the quantiles of a column of numbers or dates on a grid of z with this `shape`. For
    each z, `cells` contains 64 cells, some of which may be missing, and `missing` the probability
    of missing cells."""
    by_place = cells.astype(object).to_numpy().reshape(-1, _CELLS_PER_PLACE)
    present = [sorted(cell for cell in place if not pd.isna(cell)) for place in by_place]
    grids = {
        quantile: np.array([_quantile(place, p) for place in present], dtype=object).reshape(shape)
        for quantile, p in QUANTILES.items()
    }
    return NumberGrid(name=name, **grids, missing=missing.reshape(shape))


def _quantile(cells: Sequence[Any], probability: float) -> Any:
    return cells[int(probability * len(cells))] if cells else None


def _code_names(column: ColumnCodec) -> tuple[str, ...]:
    """Returns the label of each code; for levels that share a code, up to three of their names."""
    assert isinstance(column, LevelCodec | GroupedLevelCodec), "a column of levels"
    codes = (
        column.codes.tolist()
        if isinstance(column, GroupedLevelCodec)
        else range(len(column.levels))
    )
    members: dict[int, list[str]] = {}
    for level, code in zip(column.column.levels or (), codes, strict=True):
        members.setdefault(code, []).append(str(level))
    named = [_joined_names(members[code]) for code in sorted(members)]
    return ("(missing)", *named) if column.has_missing else tuple(named)


def _joined_names(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
