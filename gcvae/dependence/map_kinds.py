"""Computes every kind of dependency map of a fitted model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.codec.encoded_rows import TrainingRows
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
from gcvae.dependence.concordance import with_computed_columns
from gcvae.dependence.maps import DependencyMap, difference_of, map_of_copula, map_of_rows, ranks
from gcvae.dependence.notes import KIND_NOTES, KINDS
from gcvae.errors import InputError, LeftOutError, Problem, SettingError
from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.model.posterior import posterior_draws
from gcvae.numerics.generators import generator_for
from gcvae.numerics.row_noise import RowNoise
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.schema.kinds import Outcomes
from gcvae.schema.suggestions import unknown_name

_MOST_ROWS, _FEWEST_ROWS, _CELLS = 40_000, 2_000, 4e6
"""Maximum and minimum number of rows from which a map is computed; in between, rows times columns
is `_CELLS`."""
_MOST_DRAWS, _FEWEST_DRAWS, _PAIRS = 2_000, 100, 1e8
"""Maximum and minimum number of latent vectors over which a copula's map is averaged; in between,
their number times the squared number of columns is `_PAIRS`."""
_FEW_EFFECTIVE_DRAWS = 30.0
_FARTHEST = 100.0
"""Largest absolute value of a component of z that users may specify."""

_ORDER_NOTES = {
    "standardised": "categorical columns are ordered as the schema lists their levels; missing "
    "cells rank lowest",
    "quantile": "categorical columns are ordered by the first axis of a correspondence analysis of "
    "their levels, which determines the sign of tau; grouped rare levels are tied; missing cells "
    "rank lowest",
}
_NOMINAL_NOTE = (
    "pairs with a categorical column (listed in `nominal`) have no sign: charts show `unsigned`"
)
_HEAD_NOTE = (
    "computed from the copula head; synthetic rows come from the autoregressive decoder, which is "
    "trained on the same z and adds dependence (see kind total)"
)


def rows_of_a_map(n_columns: int) -> int:
    """Returns the number of rows from which a map of `n_columns` columns is computed."""
    return int(np.clip(_CELLS / max(n_columns, 1), _FEWEST_ROWS, _MOST_ROWS))


def check_map_arguments(kind: str, has_row: bool, has_z: bool) -> None:
    """Checks that the kind of a map exists, and that a row or a latent vector z is specified for a
    local map and for no other kind.

    Raises:
        SettingError: The kind is unknown, not exactly one of row and z is specified for a local
            map, or either is specified for another kind.
    """
    if kind not in KINDS:
        message = f"unknown kind of map {kind!r}"
        raise SettingError(unknown_name(message, kind, KINDS, pointer="/kind"))
    if kind == "local" and has_row == has_z:
        message, expected = "a local map is of one place", "either a row or a z"
    elif kind != "local" and (has_row or has_z):
        message, expected = f"a map of kind {kind!r} is of no single place", "no row and no z"
    else:
        return
    raise SettingError(Problem(message, "/kind", expected=expected))


@dataclass(frozen=True)
class DependencyMaps:
    """Computes the dependency maps of one model.

    Attributes:
        model: Model, with the hard rules that every generated row must satisfy.
        data: Map of the training table, computed in training; None for a model from a minimal file,
            which has no records of its training table.
        sample: Function (number of rows, seed) that generates rows.
    """

    model: ConstrainedModel
    data: DependencyMap | None
    sample: Callable[[int, int], pd.DataFrame]

    def of_kind(self, kind: str, seed: int) -> DependencyMap:
        """Computes a map of the given kind, which may be any except `local`.

        Raises:
            HardRuleError: Too few generated rows satisfy the hard rules.
            LeftOutError: The kind needs the map of the training table, which a minimal file does
                not contain.
        """
        if kind == "data":
            return self._of_data()
        if kind == "expected":
            return self._expected(seed)
        if kind == "total":
            found = self._total(seed)
        else:
            data, total = self._of_data(), self._total(seed)
            notes = (*KIND_NOTES["difference"], *codec_notes(self.model.codec), *total.notes[-1:])
            found = difference_of(total, data, notes)
        return replace(found, nominal=nominal_columns(self.model.codec))

    def _of_data(self) -> DependencyMap:
        if self.data is None:
            message = "the model's file is minimal and has no map of the training table"
            expected = "expected, total or local; or the whole model"
            raise LeftOutError(Problem(message, "/kind", expected=expected))
        return self.data

    def at_row(self, row: EncodedTable, seed: int) -> DependencyMap:
        """Computes the local map of a row: tau given z, averaged over the posterior p(z | row).

        Raises:
            TableError: The row has probability zero under the model.
        """
        names = [column.name for column in self.model.codec.columns]
        noise = RowNoise.numbered(seed, "local dependencies", [0])
        z, weight = posterior_draws(self.model.model, row, self._n_draws(), names, noise)
        effective = float(1.0 / weight.square().sum())
        note = (
            f"averaged over the posterior of the row: {len(z):,} importance-weighted draws, "
            f"effective sample size {effective:,.0f}"
        )
        few = ("too few for an accurate map",) if effective < _FEW_EFFECTIVE_DRAWS else ()
        generator = generator_for(seed, "local dependencies")
        return self._of_copula("local", z, weight, (note, *few), generator)

    def at_latent(self, z: Sequence[float]) -> DependencyMap:
        """Computes the local map at one latent vector: tau of the columns given z.

        Raises:
            InputError: z has the wrong number of dimensions, or a component outside -100 to 100.
        """
        d_latent = self.model.model.prior.d_latent
        if len(z) != d_latent or not all(abs(z_k) <= _FARTHEST for z_k in z):
            expected = f"{d_latent} numbers, one a dimension, from -{_FARTHEST:g} to {_FARTHEST:g}"
            raise InputError(Problem(f"z is {list(z)}", "/z", expected=expected))
        place = torch.tensor([list(z)], dtype=torch.float32)
        generator = generator_for(0, "rows at one z")
        return self._of_copula("local", place, torch.ones(1), ("at one z, as given",), generator)

    def _expected(self, seed: int) -> DependencyMap:
        generator = generator_for(seed, "dependencies")
        with torch.no_grad():
            z = self.model.model.latents(self._n_draws(), generator)
        note = f"{len(z):,} draws of z: the mean's standard error is spread / {len(z) ** 0.5:.0f}"
        weight = torch.full((len(z),), 1.0 / len(z))
        return self._of_copula("expected", z, weight, (note,), generator)

    def _of_copula(
        self,
        kind: str,
        z: Tensor,
        weight: Tensor,
        notes: tuple[str, ...],
        generator: torch.Generator,
    ) -> DependencyMap:
        model, codec = self.model.model, self.model.codec
        head = (_HEAD_NOTE,) if model.is_autoregressive else ()
        with torch.no_grad():
            has_copula = model.conditional(z[:1]).loadings is not None
        none = () if has_copula else ("this model has no copula: tau given z is 0",)
        notes = (*KIND_NOTES[kind], *notes, *head, *none, *codec_notes(codec))
        names = [column.name for column in codec.columns]
        found = map_of_copula(model, names, kind, z, weight.double(), notes)
        found = with_computed_columns(found, self.model, z, weight, generator)
        return replace(found, nominal=nominal_columns(codec))

    def _total(self, seed: int) -> DependencyMap:
        codec = self.model.codec
        n = rows_of_a_map(len(codec.columns))
        sample = self.sample(n, seed)
        cells = ranks(sample, codec.encode(sample), codec)
        notes = (*KIND_NOTES["total"], *codec_notes(codec), _error_note(n))
        return map_of_rows([c.name for c in codec.modelled], "total", cells, notes)

    def _n_draws(self) -> int:
        n_pairs = max(len(self.model.codec.columns), 1) ** 2
        return int(np.clip(_PAIRS / n_pairs, _FEWEST_DRAWS, _MOST_DRAWS))


def map_of_data(
    codec: TableCodec, table: TypedTable, rows: TrainingRows, seed: int
) -> DependencyMap:
    """Computes the dependency map of the training table from a random sample of its rows, given as
    cells (`table`) and encoded (`rows`)."""
    n = rows_of_a_map(len(codec.columns))
    order = torch.randperm(len(rows), generator=generator_for(seed, "data map"))[:n]
    names = [column.name for column in codec.modelled]
    cells = ranks(rows_at(table, order.numpy(), names), rows.take(order), codec)
    notes = (*KIND_NOTES["data"], *codec_notes(codec), _error_note(len(order)))
    return replace(map_of_rows(names, "data", cells, notes), nominal=nominal_columns(codec))


def nominal_columns(codec: TableCodec) -> tuple[str, ...]:
    """Returns the names of the modelled columns whose levels have no natural order."""
    return tuple(c.name for c in codec.modelled if c.kind.outcomes is Outcomes.NOMINAL_LEVELS)


def _error_note(n: int) -> str:
    """Returns a note with the maximum standard error of tau for n rows.

    Source: Kendall's bound, var(tau) <= 2 (1 - tau^2) / n.
    """
    return f"{n:,} rows: a standard error of at most {math.sqrt(2.0 / max(n, 1)):.3f}"


def codec_notes(codec: TableCodec) -> tuple[str, ...]:
    """Returns notes for users on how a map treats columns: which pairs have no sign, how levels are
    ordered, and which columns are left out because they equal another column."""
    copies = (
        f"{name} equals {source} in every row and is left out"
        for name, source in codec.copies.items()
    )
    nominal = (_NOMINAL_NOTE,) if nominal_columns(codec) else ()
    return (*nominal, _ORDER_NOTES[codec.encoding], *copies)
