"""Kendall's tau given a latent vector z for columns that the copula does not model directly.

If a rule computes a column from other columns, the model learns its residual (the deviation from
the computed value), and the copula describes the residual. The dependence of the column itself is
therefore estimated from generated rows: rows with the same z are compared in pairs, and a pair
counts +1 if two columns differ in the same direction, -1 if in opposite directions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from gcvae.dependence.maps import DependencyMap, Matrix, ranks
from gcvae.numerics.kendall import with_unit_diagonal
from gcvae.sampling.constrained import ConstrainedModel

_ROWS_PER_Z = 8
_FEWEST_ROWS = 2_000
_MOST_COMPARED = 400  # all pairs of rows of one z
NOTE = "of pairs with {names}, which rules give from other columns: tau-b of rows drawn at each z"


def with_computed_columns(
    copula_map: DependencyMap,
    model: ConstrainedModel,
    z: Tensor,
    weight: Tensor,
    generator: torch.Generator,
) -> DependencyMap:
    """Converts a dependency map of the model's columns, computed from a copula, to a map of the
    table's columns. A column that a rule computes is modelled by its residual, the deviation from
    the computed value.

    Pairs with a column that is modelled by its residual are estimated from rows generated at S
    latent vectors z with weights that add up to one; the other entries are copied. Without such
    columns the map is returned unchanged. Shape: z (S, K), weight (S,).
    """
    codec = model.codec
    if not len(codec.reduction):
        return copula_map
    rows_per_z = max(_ROWS_PER_Z, -(-_FEWEST_ROWS // len(z)))
    names = [column.name for column in codec.modelled]
    tau = _concordance(model, z, weight, rows_per_z, generator)
    indices = {name: i for i, name in enumerate(copula_map.columns)}
    own = [i for i, name in enumerate(names) if name not in codec.reduction.rewritten]
    of_copula = np.ix_([indices[names[i]] for i in own], [indices[names[i]] for i in own])
    unsigned, spread = np.abs(tau), np.full(tau.shape, np.nan)
    tau[np.ix_(own, own)] = copula_map.tau[of_copula]
    unsigned[np.ix_(own, own)] = copula_map.unsigned[of_copula]
    if copula_map.spread is not None:
        spread[np.ix_(own, own)] = copula_map.spread[of_copula]
    rewritten = ", ".join(name for name in names if name in codec.reduction.rewritten)
    return replace(
        copula_map,
        columns=tuple(names),
        tau=tau,
        unsigned=unsigned,
        spread=None if copula_map.spread is None else spread,
        notes=(*copula_map.notes, NOTE.format(names=rewritten)),
    )


def _concordance(
    model: ConstrainedModel, z: Tensor, weight: Tensor, rows_per_z: int, generator: torch.Generator
) -> Matrix:
    """Returns tau-b over pairs of generated rows with the same z, weighted by the weight of z."""
    drawn, _ = model.draw_at(z.repeat_interleave(rows_per_z, 0), generator)
    cells = ranks(model.codec.decode(drawn), drawn, model.codec).numpy().astype(np.int64)
    grouped = cells.reshape(len(z), rows_per_z, -1)
    first, last = np.triu_indices(min(rows_per_z, _MOST_COMPARED), 1)
    products = np.zeros((grouped.shape[-1], grouped.shape[-1]))
    for group, share in zip(grouped, weight.double().numpy(), strict=True):
        signs = np.sign(group[first] - group[last]).astype(np.float64)
        products += share * (signs.T @ signs)
    sizes = np.sqrt(np.diag(products))
    with np.errstate(invalid="ignore", divide="ignore"):
        tau: Matrix = products / np.outer(sizes, sizes)
    return with_unit_diagonal(tau)
