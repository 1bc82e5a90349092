"""Codec between tables and tensors: `decode(encode(t)) = t`.

Each cell of a modelled column becomes an integer code and, for some codes, a real value:

    level      each level has a code; no value
    group      rare levels share a code; the value selects the level (`GroupedLevelCodec`)
    number     one code; the value is (x - offset) / scale or the number's normal score
    atom       a frequent value has its own code (`QuantileCodec`)
    missing    code 0, if the column had missing cells when the codec was fitted

Values that were not seen in fitting (new levels, or the first missing cell) have code -1.
Identifiers, constants and copies of other columns are not in the tensors; decoding adds them. A
column that rules derive from others is encoded as its residual (`gcvae.rules.reduction`). The
tensors' columns are thus those of a transformed table, in which such columns are replaced.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask, Numbers
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.column_codecs import LINEAR_CODECS, ContinuousCodec, RealCodec
from gcvae.codec.correspondence import coarse_columns
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.entities import Entities, Grouping
from gcvae.codec.function_levels import FunctionLevels, coded_functions
from gcvae.codec.identifiers import IdentifierCodec
from gcvae.codec.level_codec import LevelCodec
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.rare_levels import HIDDEN, GroupedLevelCodec
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
from gcvae.rules.grids import Grid
from gcvae.rules.reduction import Reduction
from gcvae.rules.residuals import type_limits
from gcvae.rules.rewritings import Rewriting
from gcvae.schema.columns import Column, Level, TableSchema
from gcvae.schema.kinds import ColumnKind, Outcomes
from gcvae.schema.rule_documents import is_of_pair
from gcvae.schema.rules import Rule

if TYPE_CHECKING:
    from gcvae.codec.region import Region

CODEC_VERSION = 1


def _codec_of(kind: ColumnKind, encoding: str) -> type[ColumnCodec]:
    if kind.is_real:
        return QuantileCodec if encoding == "quantile" else LINEAR_CODECS[kind]
    is_grouped = kind.outcomes is Outcomes.NOMINAL_LEVELS and encoding == "quantile"
    return GroupedLevelCodec if is_grouped else LevelCodec


def _fit_columns(
    table: TypedTable,
    columns: list[Column],
    encoding: str,
    functions: Sequence[Rule],
    rare_rows: int,
    withheld: Mapping[str, Mapping[Level, int]],
) -> tuple[ColumnCodec, ...]:
    """Returns the codecs of the modelled columns, fitted to the table.

    Args:
        encoding: "standardised", "unit" or "quantile" (see `TableCodec.fit`).
        functions: Functional dependencies and conditions that the model enforces.
        rare_rows: Minimum number of rows that must share a number for a codec to disclose it.
        withheld: By column and level, the number of rows in which the level replaces levels of too
            few rows to be disclosed.
    """
    classes = [_codec_of(column.kind, encoding) for column in columns]
    others = coarse_columns(table, columns) if GroupedLevelCodec in classes else []

    def fitted(column: Column, found: type[ColumnCodec]) -> ColumnCodec:
        series = table[column.name]
        if found is GroupedLevelCodec:
            of_functions = FunctionLevels.of(column.name, functions, table)
            stands_for = withheld.get(column.name)
            return GroupedLevelCodec.fit(series, column, others, of_functions, stands_for)
        if found is QuantileCodec:
            of_codes = [rule for rule in functions if rule.is_dependency]
            least = 1 if any(column.name in rule.columns for rule in of_codes) else None
            return QuantileCodec.fit(series, column, atom_rows=least, rare_rows=rare_rows)
        if encoding == "unit" and issubclass(found, RealCodec):
            return found.fit_to_range(series, column)
        return found.fit(series, column)

    return tuple(fitted(*pair) for pair in zip(columns, classes, strict=True))


def _is_rounded(codec: ColumnCodec) -> bool:
    """Returns whether generated numbers are rounded to random numbers of decimals."""
    line = codec.line if isinstance(codec, QuantileCodec) else codec
    return isinstance(line, ContinuousCodec) and line.rounding is not None


def _rounded(
    codec: ContinuousCodec | QuantileCodec, values: Tensor, u: Tensor, region: Region | None
) -> Tensor:
    """Rounds one column's values to random numbers of decimals, which the uniform random numbers
    `u` select. Rounded values stay within `region`; None if all values are allowed."""

    def are_allowed(found: Numbers) -> Any:
        if region is None:
            return np.ones(len(found), dtype=bool)
        placed = torch.from_numpy(found)[:, None]
        return ((placed >= region.lower) & (placed <= region.upper)).any(dim=1).numpy()

    return torch.from_numpy(codec.with_decimals(values.numpy(), u.numpy(), are_allowed))


class TableCodec:
    """Encodes tables as tensors and decodes them, column by column.

    Attributes:
        columns: Codecs of the modelled columns, in the order of the tensors' columns.
        copies: For each column that is not modelled because it equals another, the other's name.
        reduction: Transformation of the table's columns to those that are encoded, such as
            residuals of rules and parts of numbers.
        entities: Recurring key that groups rows, such as a customer number; None without one.
    """

    def __init__(
        self,
        schema: TableSchema,
        columns: tuple[ColumnCodec, ...],
        rest: tuple[Unmodelled, ...],
        copies: Mapping[str, str],
        reduction: Reduction,
        entities: Entities | None = None,
    ) -> None:
        """Combines fitted codecs; call `fit` or `from_json` to create a codec."""
        self.entities = entities
        self.schema = schema
        self.reduction = reduction
        self.columns = columns
        # In the schema's order, because the first copy fills a missing cell of its original.
        self.copies = {name: copies[name] for name in schema.names if name in copies}
        self._rest = rest

    @classmethod
    def fit(
        cls,
        table: TypedTable,
        schema: TableSchema,
        *,
        encoding: str = "standardised",
        with_rules: bool = False,
        functions: Sequence[Rule] = (),
        rare_rows: int = 1,
        withheld: Mapping[str, Mapping[Level, int]] | None = None,
        with_entities: bool = False,
        whole: TypedTable | None = None,
    ) -> TableCodec:
        """Fits the codec to a parsed table; columns that the schema drops are left out.

        Args:
            encoding: `standardised`, numbers shifted by their mean and divided by their standard
                deviation; `unit`, numbers scaled to [0, 1] by the column's range; or `quantile`:
                codes for frequent numbers and normal scores for others, levels in the
                order of a correspondence analysis with rare ones in groups, and a column that
                equals another in every row is copied instead of modelled.
            with_rules: Whether a column that a rule of the schema computes is modelled as the
                difference from the rule, and a column with several steps (such as 1 and 0.01) as
                several columns (such as whole amounts and cents).
            functions: Functional dependencies that the model enforces.
            rare_rows: Numbers that fewer than this many rows share are not disclosed, except
                frequent values with their own codes; 1 for no limit.
            withheld: `{column: {level: rows}}`: number of rows in which the table has this level
                in place of another one, which too few rows have for it to be disclosed.
            with_entities: Whether rows with the same recurring key are generated as an entity.
            whole: Keys and personal columns of all rows, also those not used in training. Generated
                keys and personal cells never equal one of these cells. None if `table` has all
                rows.
        """
        entities = Entities.fit(table, schema) if with_entities else None
        candidates = [column for column in schema if column.is_modelled]
        copies = find_copies(table, candidates) if encoding == "quantile" else {}
        dependencies, functions = functions, coded_functions(table, schema, functions)
        reduction = Reduction(schema)
        if with_rules:
            constant = () if entities is None else entities.determined
            reduction = Reduction.of_table(
                table,
                schema,
                left_out=copies,
                rare_rows=rare_rows,
                coded=functions,
                dependencies=dependencies,
                constant=constant,
            )
        functions = [rule for rule in functions if reduction.owners.keys().isdisjoint(rule.columns)]
        reduced = reduction.reduced_table(table)
        kept = [column for column in reduction.reduced_schema if not column.drop]
        own = [column for column in kept if column.is_modelled and column.name not in copies]
        functions += [rule for rule in schema.rules or () if is_of_pair(rule, schema)]
        modelled = _fit_columns(reduced, own, encoding, functions, rare_rows, withheld or {})
        return cls(
            schema,
            modelled,
            fit_unmodelled(table, kept, schema, entities, whole),
            copies,
            reduction,
            entities,
        )

    @property
    def modelled(self) -> tuple[Column, ...]:
        """Schema's columns that the model learns, in order, without copies of other columns."""
        return tuple(c for c in self.schema if c.is_modelled and c.name not in self.copies)

    @property
    def encoding(self) -> str:
        """Encoding of cells: `quantile`, or `standardised` for any linear encoding."""
        is_quantile = any(isinstance(c, QuantileCodec | GroupedLevelCodec) for c in self.columns)
        return "quantile" if is_quantile else "standardised"

    def with_positions(
        self,
        table: EncodedTable,
        generator: torch.Generator,
        regions: Sequence[Region | None] | None = None,
        exact: Collection[str] = (),
    ) -> EncodedTable:
        """Completes generated rows by the random parts of encoded values that the model does not
        output: which of a code's levels a cell has, and to how many decimals a number is rounded.

        Args:
            table: Generated rows, on the CPU.
            regions: Allowed cells of each column; rounded numbers stay among them. An entry is None
                if all cells of the column are allowed. None if all cells of all columns are.
            exact: Columns that are not rounded, because constraints on others depend on them.
        """
        values = table.values.clone()
        for j, codec in enumerate(self.columns):
            if codec.name in exact:
                continue
            if isinstance(codec, GroupedLevelCodec):
                values[:, j] = uniform((len(table),), generator, torch.float64)
            elif isinstance(codec, ContinuousCodec | QuantileCodec) and _is_rounded(codec):
                u = uniform((len(table),), generator, torch.float64)
                region = None if regions is None else regions[j]
                at = (table.codes[:, j] == codec.n_codes - 1).nonzero()[:, 0]
                values[at, j] = _rounded(codec, values[at, j], u[at], region)
        return EncodedTable(table.codes, values, table.observed)

    def log_units(self, table: EncodedTable) -> Tensor:
        """Returns the sum of `log_units_of_cells` over the columns, for n rows: log p(row) = log
        p(encoded row) - log_units. Shape: (n,)."""
        return self.log_units_of_cells(table).sum(-1)

    def log_units_of_cells(self, table: EncodedTable) -> Tensor:
        """Returns the terms that `log_units` adds up, for n rows and D columns. Shape: (n, D).

        The term of a number x with encoded value v is log(dx / dv). The term of a level that shares
        its code is -log(share of the level). The term of an interval is 0. The term of an
        unobserved cell is 0, too, unless its level is suppressed.
        """
        codes, values = table.codes.numpy(), table.values.numpy()
        log_units = torch.zeros(table.codes.shape, dtype=torch.float64)
        for j, codec in enumerate(self.columns):
            units = codec.log_units(codes[:, j], values[:, j])
            is_certain = np.zeros(len(codes), dtype=bool)
            if table.determined is not None:
                is_certain = table.determined[:, j].cpu().numpy()
            grid = Grid.of(codec.column)
            if codec.name in self.reduction.owners and table.intervals is None:
                # Densities are per unit of the table's column, however its parts are encoded.
                is_counted = (codes[:, j] >= codec.has_missing) & ~is_certain
                units = units + np.where(is_counted, self.reduction.log_unit(codec.name), 0.0)
            elif is_certain.any() and grid is not None and codec.is_real:
                is_number = codes[:, j] == codec.n_codes - 1
                units = units - np.where(is_certain & is_number, grid.log_unit, 0.0)
            log_units[:, j] = torch.from_numpy(units)
        counted = table.observed | self.hidden_cells(table)
        return torch.where(counted & ~table.are_intervals, log_units, 0.0)

    def encode(self, frame: pd.DataFrame, *, blanks_unknown: bool = False) -> EncodedTable:
        """Returns the tensors of parsed rows.

        Args:
            frame: Rows, as `parse_table` returns them.
            blanks_unknown: Whether a missing cell counts as unobserved instead of as an outcome.
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
        """Returns a mask of the cells with suppressed levels (not disclosed: too few rows have
        them), for D encoded columns. Shape: (n, D)."""
        are_grouped = torch.tensor([isinstance(c, GroupedLevelCodec) for c in self.columns])
        return (table.values == HIDDEN) & are_grouped.to(torch.bool)

    def reduced(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Transforms parsed rows to the columns that are encoded; missing cells count as unknown,
        and are filled if another column is an exact copy."""
        own: dict[str, pd.Series[Any]] = {name: frame[name] for name in frame.columns}
        for copy, source in self.copies.items():
            own[source] = own[source].where(own[source].notna(), own[copy])
        return self.reduction.reduce(pd.DataFrame(own, index=frame.index), blanks_unknown=True)

    def written(
        self,
        names: Sequence[str],
        codes: Tensor,
        values: Tensor,
        known: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Decodes only the named columns of the table. Shape: codes (n, D), values (n, D) for D
        encoded columns -> n rows. `known` has known cells, which replace decoded cells and may lie
        beyond the training table's range."""
        frame = self._decoded(self.reduction.needed(names), codes, values)
        return self.reduction.restore(frame, names, known)

    def _decoded(self, names: Collection[str], codes: Tensor, values: Tensor) -> pd.DataFrame:
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
        """Index of each encoded column in the tensors, by name."""
        return {codec.name: j for j, codec in enumerate(self.columns)}

    def earlier(
        self,
        rewriting: Rewriting,
        part: str,
        codes: Tensor,
        values: Tensor,
        known: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Returns the decoded columns on which one part of a column depends.

        If a rule determines a column, or the column has several step sizes, the codec encodes parts
        in its place: the difference from the rule, or whole amounts and cents. Each part depends on
        the rule's other columns and on the earlier parts.

        Args:
            rewriting: Transformation of the column to its parts.
            part: Name of the part.
            codes: Integer codes of the D encoded columns. Shape: (n, D).
            values: Encoded values. Shape: (n, D).
            known: Known cells, which replace decoded cells and may lie beyond the training table's
                range.
        """
        parts = [column.name for column in rewriting.parts]
        before = self._decoded(parts[: parts.index(part)], codes, values)
        parents = self.written(rewriting.parents, codes, values, known)
        return pd.concat([parents, before], axis=1)

    def column_codec(self, name: str) -> ColumnCodec:
        """Returns the codec of an encoded column, by name."""
        return self.columns[self.places[name]]

    def differing_copies(self, frame: pd.DataFrame) -> dict[str, Mask]:
        """Returns, for each column that was a copy of another in training, a mask of the n rows in
        which the two columns differ. Such rows have probability 0. Shape: (n,) each."""
        differing = {}
        for copy, source in self.copies.items():
            both = (frame[copy].notna() & frame[source].notna()).to_numpy()
            differ = (frame[copy] != frame[source]).fillna(False).to_numpy(dtype=bool)
            differing[copy] = both & differ
        return differing

    def without_missing_level(self, table: EncodedTable) -> EncodedTable:
        """Returns the rows with missing cells marked as unobserved. An encoded value that is
        computed from a missing cell, such as the difference of a total from its terms, becomes
        unobserved, too."""
        has_missing = torch.tensor([codec.has_missing for codec in self.columns], dtype=torch.bool)
        observed = table.observed & ~((table.codes == 0) & has_missing)
        for name, parents in self.reduction.parents.items():
            terms = [self.places[parent] for parent in parents if parent in self.places]
            if name in self.places:
                observed[:, self.places[name]] &= observed[:, terms].all(1)
        return replace(table, observed=observed)

    def decode(
        self,
        table: EncodedTable,
        first_row: int = 0,
        seed: int = 0,
        known: pd.DataFrame | None = None,
        grouping: Grouping = "none",
    ) -> pd.DataFrame:
        """Converts tensors to rows with the columns of the schema, except dropped ones.

        Args:
            table: Tensors, on any device.
            first_row: Number of the first row.
            seed: Seed of identifiers and personal cells. These also depend on the codec, so that
                tables of different models differ for the same seed.
            known: Known cells, with the columns' dtypes. They replace decoded cells and may lie
                beyond the training table's range; computed columns follow from them. None for no
                known cells.
            grouping: Which rows become an entity, with the same key and determined cells.
        """
        own_seed = derived_seed(str(seed), self._identity)
        numbers = np.arange(first_row, first_row + len(table), dtype=np.uint64)
        of_entity: Collection[str] = ()
        if self.entities is not None:
            origin = (str(own_seed), self.entities.key, str(first_row))
            columns, n_bound = self._entity_columns
            table = self._with_middles(table, columns)
            table, groups = self.entities.grouped(table, columns, n_bound, grouping, origin)
            groups += np.uint64(first_row)
            of_entity = {self.entities.key, *self.entities.determined}
        rows = self._decoded(self.places, table.codes.cpu(), table.values.cpu())
        rest = {
            c.name: c.decode(groups if c.name in of_entity else numbers, own_seed)
            for c in self._rest
        }
        rows = pd.concat([rows, pd.DataFrame(rest, index=rows.index)], axis=1)
        written = self.reduction.restore(rows, known=known)
        found = {name: written[name] for name in written.columns}
        for codec in self._rest:
            if isinstance(codec, IdentifierCodec):
                found[codec.name] = codec.completed(found[codec.name], written)
        for name, source in self.copies.items():
            held = type_limits(self.schema[name])
            if held is not None:  # limits of the copy's type hold for both
                found[source] = found[source].clip(*held)
        found |= {name: found[source] for name, source in self.copies.items()}
        ordered = {name: found[name] for name in self.schema.names if name in found}
        return pd.DataFrame(ordered, index=written.index)

    def _with_middles(self, table: EncodedTable, columns: Sequence[int]) -> EncodedTable:
        """Returns generated rows in which each level of these columns has one value, the middle of
        its interval, so that rows with equal levels compare as equal."""
        values = table.values.clone()
        for j in columns:
            codec = self.columns[j]
            if isinstance(codec, GroupedLevelCodec):
                middles = codec.middles(table.codes[:, j].cpu().numpy(), values[:, j].cpu().numpy())
                values[:, j] = torch.from_numpy(middles)
        return replace(table, values=values)

    def grouping(self, conditioned: Iterable[str], together: Iterable[Sequence[str]]) -> Grouping:
        """Returns which generated rows can become an entity: rows with the same key, such as those
        of one customer, and the same cells in the columns that the key determines.

        The result is "none" without a recurring key; "equal" (only rows that already have equal
        determined cells) if conditions or hard rules might no longer hold after a row got the
        determined cells of another; else "near" (rows with similar ones).

        Args:
            conditioned: Columns on which rows are conditioned.
            together: Columns of each hard rule.
        """
        if self.entities is None:
            return "none"
        determined = set(self.entities.determined)
        parents = {name: r.parents for name, r in self.reduction.rewritten.items()}

        def follows(name: str) -> bool:
            of = parents.get(name, ())
            return name not in determined and any(n in determined or follows(n) for n in of)

        is_bound = any(map(follows, conditioned)) or any(
            any(map(follows, names)) or 0 < len(determined.intersection(names)) < len(set(names))
            for names in together
        )
        return "equal" if is_bound else "near"

    @cached_property
    def _entity_columns(self) -> tuple[list[int], int]:
        """Indices of the encoded columns that the key of entities determines, and how many of them
        are bound. A bound column occurs in a functional dependency together with a column that the
        key does not determine.

        Rows are sorted by these columns, in this order: bound columns first; within the bound and
        the other columns, levels before numbers, and few codes before many.
        """
        assert self.entities is not None, "asked where there are entities"
        determined = set(self.entities.determined)
        functions = [
            set(r.columns) for r in self.schema.rules or () if r.is_dependency and r.keep != "off"
        ]
        bound = set[str]().union(
            *(
                names & determined
                for names in functions
                if not names <= {*determined, self.entities.key}
            )
        )
        places = [
            (name not in bound, codec.is_real, codec.n_codes, self.places[part])
            for name in self.entities.determined
            for part in self.reduction.parts_of(name)
            if part in self.places
            for codec in [self.columns[self.places[part]]]
        ]
        places.sort()
        return [place[-1] for place in places], sum(not place[0] for place in places)

    @cached_property
    def _identity(self) -> str:
        document = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()

    def notes(self, rows: int) -> list[str]:
        """Returns a warning for each identifier column that, in a sample of this many rows, needs
        keys with more characters than the table's."""
        notes = []
        for codec in self._rest:
            if isinstance(codec, IdentifierCodec):
                entities = self.entities
                is_key = entities is not None and codec.name == entities.key
                n_each = entities.mean_size if is_key and entities is not None else 1.0
                notes.append(codec.width_warning(math.ceil(rows / n_each)))
        return [note for note in notes if note is not None]

    def without_counts(self) -> TableCodec:
        """Returns a copy that stores the shares of levels, rounded to three digits, instead of
        their numbers of rows, to disclose less."""
        columns = tuple(
            codec.without_counts() if isinstance(codec, GroupedLevelCodec) else codec
            for codec in self.columns
        )
        return TableCodec(
            self.schema, columns, self._rest, self.copies, self.reduction, self.entities
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the codec as an exact JSON document, without any row of the table."""
        return {
            "version": CODEC_VERSION,
            "encoding": self.encoding,
            "copies": self.copies,
            "rules": self.reduction.to_json(),
            "entities": None if self.entities is None else self.entities.to_json(),
            "schema": self.schema.to_json(),
            "columns": {codec.name: codec.to_json() for codec in (*self.columns, *self._rest)},
        } | people_document(self._rest)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableCodec:
        """Restores the codec from a JSON document: `from_json(to_json(c)) = c`.

        Raises:
            SchemaError, UnknownColumnError, KeyError: The document is invalid.
        """
        schema, parts = TableSchema.from_json(document["schema"]), document["columns"]
        [schema[name] for pair in document["copies"].items() for name in pair]  # or an error
        reduction = Reduction.from_json(document["rules"], schema)
        kept = [column for column in reduction.reduced_schema if not column.drop]
        modelled = tuple(
            _codec_of(column.kind, document["encoding"]).from_json(column, parts[column.name])
            for column in kept
            if column.is_modelled and column.name not in document["copies"]
        )
        rest = unmodelled_of_json(kept, parts, document.get("people"))
        entities = None
        if document["entities"] is not None:
            entities = Entities.from_json(document["entities"])
            [schema[name] for name in (entities.key, *entities.determined)]  # or an error
        return cls(schema, modelled, rest, document["copies"], reduction, entities)

    def __eq__(self, other: object) -> bool:
        """Returns whether two codecs encode and decode alike."""
        return isinstance(other, TableCodec) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]
