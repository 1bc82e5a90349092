"""The codec between tables and tensors: `decode(encode(t)) = t`.

Every modelled column becomes a code and, under the code of a number, a value:

    level      codes are levels; no value
    group      rare levels under one code, and which of them as a value (`GroupedLevelCodec`)
    number     one code, and the value: (x - offset) / scale, or the number's normal score
    atom       a code of its own, where the codec is by quantiles (`QuantileCodec`)
    missing    code 0 of a column that had missing cells when the codec was fitted

A cell that training had no outcome for, an unseen level or a first missing cell, has code -1.
Identifiers, constants and copies of another column are no part of the tensors; they come back in
decoding. A column that rules give from others is coded as what the rules leave open of it
(`gcvae.rules.reduction`): the columns of the tensors are those of the reduced table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask, Numbers
from gcvae.codec.code_units import codes_with_units
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.column_codecs import LINES, ContinuousCodec, RealCodec
from gcvae.codec.correspondence import coarse_columns
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.function_levels import FunctionLevels, coded_functions
from gcvae.codec.identifiers import IdentifierCodec
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.rare_levels import HIDDEN, GroupedLevelCodec
from gcvae.codec.repeated_numbers import LEAST_ROWS, are_names
from gcvae.codec.unmodelled_columns import (
    Unmodelled,
    find_copies,
    fit_unmodelled,
    people_document,
    unmodelled_of_json,
)
from gcvae.files.typed_columns import TypedTable
from gcvae.numerics.generators import uniform
from gcvae.numerics.seeds import derived_seed
from gcvae.rules.reduction import Reduction
from gcvae.rules.residuals import Rewriting, type_limits
from gcvae.schema.columns import Column, Level, TableSchema
from gcvae.schema.kinds import ColumnKind, Outcomes
from gcvae.schema.rules import Rule

if TYPE_CHECKING:
    from gcvae.codec.region import Region

CODEC_VERSION = 1


def _codec_of(kind: ColumnKind, numbers: str, levels: str) -> type[ColumnCodec]:
    """Returns the class of codec for a kind of column that is modelled."""
    if kind.is_real:
        return QuantileCodec if numbers == "quantile" else LINES[kind]
    is_learned = kind.outcomes is Outcomes.NOMINAL_LEVELS and levels == "learned"
    return GroupedLevelCodec if is_learned else LevelCodec


def _fit_columns(
    table: TypedTable,
    columns: list[Column],
    numbers: str,
    levels: str,
    functions: Sequence[Rule],
    rare_rows: int,
    withheld: Mapping[str, Mapping[Level, int]],
    never: Mapping[str, Sequence[int]],
    of_rules: Collection[str],
) -> tuple[ColumnCodec, ...]:
    """Returns the codecs of the modelled columns; those of functions by what these fix."""
    classes = [_codec_of(column.kind, numbers, levels) for column in columns]
    are_compared = not {GroupedLevelCodec, QuantileCodec}.isdisjoint(classes)
    others = coarse_columns(table, columns) if are_compared else []

    def fitted(column: Column, found: type[ColumnCodec]) -> ColumnCodec:
        series = table[column.name]
        if found is GroupedLevelCodec:
            of_functions = FunctionLevels.of(column.name, functions, table)
            stands_for = withheld.get(column.name)
            return GroupedLevelCodec.fit(series, column, others, of_functions, stands_for)
        if found is QuantileCodec:
            least = 1 if any(column.name in rule.columns for rule in functions) else None
            if least is None and are_names(series, column.name, others):
                least = max(LEAST_ROWS, rare_rows)
            apart = never.get(column.name, ())
            may_share = least is None and column.name not in of_rules
            return QuantileCodec.fit(
                series,
                column,
                atom_rows=least,
                rare_rows=rare_rows,
                apart=apart,
                with_members=may_share,
            )
        if numbers == "unit" and issubclass(found, RealCodec):
            return found.fit_to_range(series, column)
        return found.fit(series, column)

    return tuple(fitted(*pair) for pair in zip(columns, classes, strict=True))


def _is_open(codec: ColumnCodec) -> bool:
    """Returns whether a model's outputs leave something of the column's cells open."""
    has_members = isinstance(codec, QuantileCodec) and codec.members is not None
    return _is_rounded(codec) or has_members or isinstance(codec, GroupedLevelCodec)


def _is_rounded(codec: ColumnCodec) -> bool:
    line = codec.line if isinstance(codec, QuantileCodec) else codec
    return isinstance(line, ContinuousCodec) and line.rounding is not None


def _rounded(
    codec: ContinuousCodec | QuantileCodec, values: Tensor, u: Tensor, region: Region | None
) -> Tensor:
    """Values of one column, rounded to the decimals at their quantiles u, within the region.

    Args:
        codec: Codec of the column.
        values: Values of drawn numbers. Shape: (n,).
        u: Uniform on (0, 1). Shape: (n,).
        region: What they were drawn from, alike for all rows; everything if None.
    """

    def are_allowed(found: Numbers) -> Any:
        if region is None:
            return np.ones(len(found), dtype=bool)
        placed = torch.from_numpy(found)[:, None]
        return ((placed >= region.lower) & (placed <= region.upper)).any(dim=1).numpy()

    return torch.from_numpy(codec.with_decimals(values.numpy(), u.numpy(), are_allowed))


class TableCodec:
    """Encodes and decodes whole tables, column by column.

    Attributes:
        schema: Schema of the table.
        columns: The codecs of the modelled columns, in order: column j of the tensors is the j-th.
        copies: Columns that are not modelled but copied, with the column that each is a copy of.
        reduction: From the table's columns to those that the codecs are of.
    """

    def __init__(
        self,
        schema: TableSchema,
        columns: tuple[ColumnCodec, ...],
        rest: tuple[Unmodelled, ...],
        copies: Mapping[str, str],
        reduction: Reduction,
    ) -> None:
        """Joins fitted codecs; `fit` and `from_json` are the ways to get them."""
        self.schema = schema
        self.reduction = reduction
        self.columns = columns
        # In the schema's order, for a document's keys have none; the first one fills a blank.
        self.copies = {name: copies[name] for name in schema.names if name in copies}
        self._rest = rest

    @classmethod
    def fit(
        cls,
        table: TypedTable,
        schema: TableSchema,
        *,
        numbers: str = "standardised",
        levels: str = "listed",
        with_copies: bool = False,
        with_rules: bool = False,
        functions: Sequence[Rule] = (),
        rare_rows: int = 1,
        withheld: Mapping[str, Mapping[Level, int]] | None = None,
    ) -> TableCodec:
        """Returns the codec of a typed table, as `parse_table` gives it; dropped columns are left
        out.

        Args:
            numbers: `standardised`; `unit`: on [0, 1], by the column's range; or `quantile`: as
                atoms and normal scores.
            levels: Levels of categorical columns: `listed`, in the schema's order, or `learned`: in
                the order of a correspondence analysis, rare ones in groups.
            with_copies: Columns that equal another in every row are copied, not modelled.
            with_rules: Columns that the schema's rules give from others are modelled as residuals,
                those with steps in parts.
            functions: That the model keeps: columns that others fix.
            rare_rows: What fewer rows share is not told, but for atoms; 1 for no such limit.
            withheld: By column and level, in how many rows it stands for one that is withheld.
        """
        candidates = [column for column in schema if column.is_modelled]
        copies = find_copies(table, candidates) if with_copies else {}
        functions = coded_functions(table, schema, functions)
        whole = {name for rule in functions for name in rule.columns}
        reduction = Reduction(schema)
        if with_rules:
            reduction = Reduction.of_table(
                table, schema, schema.rules or (), copies, whole, rare_rows
            )
        functions = [rule for rule in functions if reduction.owners.keys().isdisjoint(rule.columns)]
        reduced = reduction.reduced_table(table)
        kept = [column for column in reduction.reduced_schema if not column.drop]
        own = [column for column in kept if column.is_modelled and column.name not in copies]
        never = {r.column: r.never for r in reduction.rewritings}
        # Of these a cell must be known before all of the row is drawn.
        of_rules = {part for r in reduction.rewritings for part in reduction.needed([r.column])}
        modelled = _fit_columns(
            reduced, own, numbers, levels, functions, rare_rows, withheld or {}, never, of_rules
        )
        return cls(schema, modelled, fit_unmodelled(table, kept), copies, reduction)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The table's columns that the model learns, in order, without copies."""
        return tuple(c for c in self.schema if c.is_modelled and c.name not in self.copies)

    @property
    def numbers(self) -> str:
        """How numbers are coded: `quantile`, or on a line, of whatever offset and scale."""
        by_quantile = any(isinstance(codec, QuantileCodec) for codec in self.columns)
        return "quantile" if by_quantile else "standardised"

    @property
    def n_numbers(self) -> int:
        """How many columns are of numbers that are not all atoms."""
        real = [codec for codec in self.columns if codec.is_real]
        return sum(not (isinstance(c, QuantileCodec) and c.is_discrete) for c in real)

    @property
    def levels(self) -> str:
        """The order of categorical levels: `listed` or `learned`."""
        are_learned = any(isinstance(codec, GroupedLevelCodec) for codec in self.columns)
        return "learned" if are_learned else "listed"

    def with_positions(
        self,
        table: EncodedTable,
        generator: torch.Generator,
        regions: Sequence[Region | None] | None = None,
        exact: Collection[str] = (),
    ) -> EncodedTable:
        """Returns the rows of a model, with what its outputs leave open in their values.

        In a cell of a group of rare levels the value is uniform and says which level it is; numbers
        are rounded to as many decimals as those of the table have.

        Args:
            table: Drawn, on the CPU.
            generator: Random generator of these draws.
            regions: What the rows were drawn from; numbers stay within. Everything if not given.
            exact: Columns whose numbers stay as they were drawn: what is known of others rests on
                them.
        """
        values = table.values.clone()
        for j, codec in enumerate(self.columns):
            if not _is_open(codec) or codec.name in exact:
                continue
            u = uniform((len(table),), generator, torch.float64)
            if isinstance(codec, QuantileCodec):
                column = table.codes[:, j].numpy(), values[:, j].numpy(), u.numpy()
                values[:, j] = torch.from_numpy(codec.with_positions(*column))
            if isinstance(codec, ContinuousCodec | QuantileCodec) and _is_rounded(codec):
                region = None if regions is None else regions[j]
                at = (table.codes[:, j] == codec.n_codes - 1).nonzero()[:, 0]
                values[at, j] = _rounded(codec, values[at, j], u[at], region)
            elif isinstance(codec, GroupedLevelCodec):
                values[:, j] = u
        return EncodedTable(table.codes, values, table.observed)

    def log_units(self, table: EncodedTable) -> Tensor:
        """log of original units per unit of value, summed over each row's numbers.

        log p(row) = log p(encoded row) - log_units. Blank cells count nothing. Shape: (n,).
        """
        return self.log_units_of_cells(table).sum(-1)

    def log_units_of_cells(self, table: EncodedTable) -> Tensor:
        """`log_units` cell by cell; 0 for blanks and for intervals, but for levels that are
        withheld. Shape: (n, D)."""
        codes, values = table.codes.numpy(), table.values.numpy()
        log_units = torch.zeros(table.codes.shape, dtype=torch.float64)
        for j, codec in enumerate(self.columns):
            units = codec.log_units(codes[:, j], values[:, j])
            if codec.name in self.reduction.owners and table.intervals is None:
                # However its parts are coded, a cell counts per unit of the written column.
                is_present = codes[:, j] >= codec.has_missing
                is_counted = is_present & codes_with_units(codec, self.reduction)[codes[:, j]]
                units = units + np.where(is_counted, self.reduction.log_unit(codec.name), 0.0)
            log_units[:, j] = torch.from_numpy(units)
        counted = table.observed | self.hidden_cells(table)
        return torch.where(counted & ~table.are_intervals, log_units, 0.0)

    def encode(self, frame: pd.DataFrame, *, blanks_unknown: bool = False) -> EncodedTable:
        """Returns the tensors of typed rows.

        Args:
            frame: As `parse_table` gives it.
            blanks_unknown: A missing cell is not an outcome but a cell that is not known.
        """
        shape = len(frame), len(self.columns)
        codes, values = np.zeros(shape, dtype=np.int32), np.zeros(shape)
        observed = np.ones(shape, dtype=bool)
        reduced = self.reduced(frame) if blanks_unknown else self.reduction.reduce(frame)
        for j, codec in enumerate(self.columns):
            series = reduced[codec.name]
            codes[:, j], values[:, j] = codec.encode(series)
            if blanks_unknown:
                observed[:, j] = series.notna()
        codes[~observed] = 0
        table = EncodedTable(
            torch.from_numpy(codes), torch.from_numpy(values), torch.from_numpy(observed)
        )
        return replace(table, observed=table.observed & ~self.hidden_cells(table))

    def hidden_cells(self, table: EncodedTable) -> Tensor:
        """Returns the cells with a level that is withheld. Shape: (n, D)."""
        are_grouped = torch.tensor([isinstance(c, GroupedLevelCodec) for c in self.columns])
        return (table.values == HIDDEN) & are_grouped.to(torch.bool)

    def reduced(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Returns the reduced rows of typed ones whose blanks are not known, but for what copies
        say."""
        own: dict[str, pd.Series[Any]] = {name: frame[name] for name in frame.columns}
        for copy, source in self.copies.items():
            own[source] = own[source].where(own[source].notna(), own[copy])
        return self.reduction.reduce(pd.DataFrame(own, index=frame.index), blanks_unknown=True)

    def written(self, names: Sequence[str], codes: Tensor, values: Tensor) -> pd.DataFrame:
        """Some written columns of encoded rows of which only what these need has to be there.

        Shape: codes, values (n, D) -> n rows.
        """
        frame = self._decoded(self.reduction.needed(names), codes, values)
        return self.reduction.restore(frame, names)

    def _decoded(self, names: Collection[str], codes: Tensor, values: Tensor) -> pd.DataFrame:
        """Some columns of the reduced table."""
        cells = {
            codec.name: codec.decode(
                codes[:, j].numpy().astype(np.int64), values[:, j].numpy().astype(np.float64)
            )
            for j, codec in enumerate(self.columns)
            if codec.name in names
        }
        return pd.DataFrame(cells, index=pd.RangeIndex(len(codes)))

    @cached_property
    def places(self) -> dict[str, int]:
        """The number of each of the tensors' columns, by its name."""
        return {codec.name: j for j, codec in enumerate(self.columns)}

    def earlier(
        self, rewriting: Rewriting, part: str, codes: Tensor, values: Tensor
    ) -> pd.DataFrame:
        """What a part of a column is read from: written parents, and the parts before it."""
        parts = [column.name for column in rewriting.parts]
        before = self._decoded(parts[: parts.index(part)], codes, values)
        parents = self.written(rewriting.parents, codes, values)
        return pd.concat([parents, before], axis=1)

    def column_codec(self, name: str) -> ColumnCodec:
        """Returns the codec of a column of the reduced table."""
        return self.columns[self.places[name]]

    def differing_copies(self, frame: pd.DataFrame) -> dict[str, Mask]:
        """For each copy the typed rows that the model never draws: it differs from its column.

        Shape: (n,) each.
        """
        differing = {}
        for copy, source in self.copies.items():
            both = (frame[copy].notna() & frame[source].notna()).to_numpy()
            differ = (frame[copy] != frame[source]).fillna(False).to_numpy(dtype=bool)
            differing[copy] = both & differ
        return differing

    def without_missing_level(self, table: EncodedTable) -> EncodedTable:
        """Returns the rows with their missing cells as cells that are not known."""
        has_missing = torch.tensor([codec.has_missing for codec in self.columns], dtype=torch.bool)
        observed = table.observed & ~((table.codes == 0) & has_missing)
        for name, parents in self.reduction.parents.items():
            terms = [self.places[parent] for parent in parents if parent in self.places]
            if name in self.places:
                observed[:, self.places[name]] &= observed[:, terms].all(1)
        return replace(table, observed=observed)

    def decode(self, table: EncodedTable, first_row: int = 0, seed: int = 0) -> pd.DataFrame:
        """Returns the typed rows of tensors, in the schema's columns and order, dropped ones left
        out.

        Args:
            table: On any device.
            first_row: Number of the first row.
            seed: With the row's number and the codec itself it gives a row its identifiers: those
                of two tables have nothing in common where their models have one seed.
        """
        codes = table.codes.cpu().numpy().astype(np.int64)
        values = table.values.cpu().numpy().astype(np.float64)
        columns = {
            codec.name: codec.decode(codes[:, j], values[:, j])
            for j, codec in enumerate(self.columns)
        }
        own_seed = derived_seed(str(seed), self._identity)
        columns |= {c.name: c.decode(len(table), first_row, own_seed) for c in self._rest}
        written = self.reduction.restore(pd.DataFrame(columns, index=pd.RangeIndex(len(table))))
        found = {name: written[name] for name in written.columns}
        for name, source in self.copies.items():
            held = type_limits(self.schema[name])
            if held is not None:  # the narrower type of two columns that are equal is that of both
                found[source] = found[source].clip(*held)
        found |= {name: found[source] for name, source in self.copies.items()}
        ordered = {name: found[name] for name in self.schema.names if name in found}
        return pd.DataFrame(ordered, index=written.index)

    @cached_property
    def _identity(self) -> str:
        """What tells the codecs of different tables apart, before and after they are saved."""
        document = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()

    def notes(self, rows: int) -> list[str]:
        """What the user of so many rows should know of their identifiers; see `note` there."""
        codecs = [codec for codec in self._rest if isinstance(codec, IdentifierCodec)]
        return [note for codec in codecs if (note := codec.note(rows)) is not None]

    def without_counts(self) -> TableCodec:
        """Returns the codec without how many rows have each level; see `GroupedLevelCodec`."""
        columns = tuple(
            codec.without_counts() if isinstance(codec, GroupedLevelCodec) else codec
            for codec in self.columns
        )
        return TableCodec(self.schema, columns, self._rest, self.copies, self.reduction)

    def to_json(self) -> dict[str, Any]:
        """Returns the codec as a document of JSON types: exact, and without any row of the
        table."""
        return {
            "version": CODEC_VERSION,
            "numbers": self.numbers,
            "levels": self.levels,
            "copies": self.copies,
            "rules": self.reduction.to_json(),
            "schema": self.schema.to_json(),
            "columns": {codec.name: codec.to_json() for codec in (*self.columns, *self._rest)},
        } | people_document(self._rest)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableCodec:
        """Returns the codec of a document: `from_json(to_json(c)) = c`.

        Raises:
            SchemaError, UnknownColumnError, KeyError: It is no such document.
        """
        schema, parts = TableSchema.from_json(document["schema"]), document["columns"]
        [schema[name] for pair in document["copies"].items() for name in pair]  # or an error
        reduction = Reduction.from_json(document["rules"], schema)
        kept = [column for column in reduction.reduced_schema if not column.drop]
        modelled = tuple(
            _codec_of(column.kind, document["numbers"], document["levels"]).from_json(
                column, parts[column.name]
            )
            for column in kept
            if column.is_modelled and column.name not in document["copies"]
        )
        rest = unmodelled_of_json(kept, parts, document.get("people"))
        return cls(schema, modelled, rest, document["copies"], reduction)

    def __eq__(self, other: object) -> bool:
        """True for codecs that encode and decode alike."""
        return isinstance(other, TableCodec) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]
