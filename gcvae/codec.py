"""The codec between tables and tensors: `decode(encode(t)) = t`.

Every modelled column becomes a code and, under the code of a number, a value:

    level      codes are levels; no value
    bundle     rare levels under one code, and which of them as a value (`BundledLevelCodec`)
    number     one code, and the value: (x - offset) / scale, or the number's normal score
    atom       a code of its own, where the codec is by quantiles (`QuantileCodec`)
    missing    code 0 of a column that had missing cells when the codec was fitted

A cell that training had no outcome for, an unseen level or a first missing cell, has code -1.
Identifiers, constants and copies of another column are no part of the tensors; they come back in
decoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.column_codecs import (
    ContinuousCodec,
    DatetimeCodec,
    IntegerCodec,
    LevelCodec,
)
from gcvae.correspondence import coarse_columns
from gcvae.generators import uniform
from gcvae.level_bundles import BundledLevelCodec
from gcvae.quantile_codec import QuantileCodec
from gcvae.schema import Column, ColumnKind, Missing, TableSchema
from gcvae.surrogates import ConstantCodec, IdentifierCodec
from gcvae.typed_columns import TypedTable, row_blocks

CODEC_VERSION = 1


@dataclass(frozen=True)
class EncodedTable:
    """The modelled columns of n rows as tensors.

    Shape: all (n, D).

    Attributes:
        codes: int32; -1 is an outcome that training did not have.
        values: float64, as the column's codec has them; 0 where the code has no value.
        observed: bool; False where the cell is not known and is to be integrated out.
        intervals: float64 (n, D, 2): lower and upper end of the values that a number stands for,
            NaN where it stands for itself alone; None if all do.
    """

    codes: Tensor
    values: Tensor
    observed: Tensor
    intervals: Tensor | None = None

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.codes)

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.codes.device

    @property
    def code_counts(self) -> tuple[Tensor, ...]:
        """For each column how often each code comes up, those of -1 as 0. Shape: (K_j,) each."""
        return tuple(torch.bincount(codes) for codes in self.codes.T.clamp(min=0))

    def take(self, rows: Tensor) -> EncodedTable:
        """The rows of these numbers, in their order."""
        intervals = None if self.intervals is None else self.intervals[rows]
        return EncodedTable(self.codes[rows], self.values[rows], self.observed[rows], intervals)

    def followed_by(self, other: EncodedTable) -> EncodedTable:
        """The rows of both tables, which have no intervals."""
        pairs = zip(
            (self.codes, self.values, self.observed),
            (other.codes, other.values, other.observed),
            strict=True,
        )
        return EncodedTable(*(torch.cat(pair) for pair in pairs))

    def to(self, device: torch.device | str) -> EncodedTable:
        """The same table on a device."""
        intervals = None if self.intervals is None else self.intervals.to(device)
        parts = self.codes.to(device), self.values.to(device), self.observed.to(device)
        return EncodedTable(*parts, intervals)

    @property
    def are_intervals(self) -> Tensor:
        """Which cells are numbers that stand for an interval. Shape: (n, D), bool."""
        if self.intervals is None:
            return torch.zeros_like(self.observed)
        return ~torch.isnan(self.intervals[..., 0])


class ColumnCodec(Protocol):
    """How one modelled column becomes a code and a value.

    Attributes:
        column: Of the schema.
        has_missing: Code 0 is the missing level.
        is_real: The last code, n_codes - 1, has a value.
    """

    @property
    def column(self) -> Column: ...
    @property
    def has_missing(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def n_codes(self) -> int: ...
    @property
    def is_real(self) -> bool: ...

    def encode(
        self, series: pd.Series[Any]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Codes and values of typed cells. Shape: (n,) -> (n,), (n,)."""
        ...

    def decode(
        self, codes: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
    ) -> pd.Series[Any]:
        """Typed cells of codes and values. Shape: (n,), (n,) -> (n,)."""
        ...

    def log_units(
        self, codes: npt.NDArray[np.int32], values: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """log of the column's units (days for dates) per unit of value at each cell; 0 for levels.

        log p(x) = log p(value) - log_units. Shape: (n,), (n,) -> (n,).
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs beside the schema's column."""
        ...

    @classmethod
    def fit(cls, series: pd.Series[Any], column: Column) -> Self:
        """The codec of these typed cells."""
        ...

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """The codec of a document that `to_json` wrote."""
        ...


Unmodelled = IdentifierCodec | ConstantCodec

_CODECS: dict[ColumnKind, type[ColumnCodec]] = {
    ColumnKind.CONTINUOUS: ContinuousCodec,
    ColumnKind.INTEGER: IntegerCodec,
    ColumnKind.DATETIME: DatetimeCodec,
    ColumnKind.ORDINAL: LevelCodec,
    ColumnKind.CATEGORICAL: LevelCodec,
    ColumnKind.BOOLEAN: LevelCodec,
}
_UNMODELLED: dict[ColumnKind, type[Unmodelled]] = {
    ColumnKind.IDENTIFIER: IdentifierCodec,
    ColumnKind.CONSTANT: ConstantCodec,
}


def _codec_of(kind: ColumnKind, numbers: str, levels: str) -> type[ColumnCodec]:
    """The class of codec for a kind of column."""
    if kind.is_real and numbers == "quantile":
        return QuantileCodec
    if kind is ColumnKind.CATEGORICAL and levels == "learned":
        return BundledLevelCodec
    return _CODECS[kind]


def _fit_columns(
    table: TypedTable, columns: list[Column], numbers: str, levels: str
) -> tuple[ColumnCodec, ...]:
    """The codecs of the modelled columns."""
    classes = [_codec_of(column.kind, numbers, levels) for column in columns]
    others = coarse_columns(table, columns) if BundledLevelCodec in classes else []
    return tuple(
        BundledLevelCodec.fit(table[column.name], column, others)
        if found is BundledLevelCodec
        else found.fit(table[column.name], column)
        for column, found in zip(columns, classes, strict=True)
    )


LEAST_ROWS_OF_COPIES = 10
"""Two columns that agree everywhere are copies if so many rows have another value than the most
frequent one; fewer agree by chance."""


def find_copies(table: TypedTable, columns: Sequence[Column]) -> dict[str, str]:
    """The columns that equal an earlier one in every row, with the earlier one's name.

    Only columns of the same limits and levels: a cell of the one must be possible in the other.

    Args:
        table: Typed.
        columns: Of it, to look at.
    """
    copies: dict[str, str] = {}
    seen: dict[Column, list[str]] = {}
    for column in columns:
        missing = Missing(column.missing.allowed)
        possible = replace(column, name="", missing=missing, parquet_type=None)
        alike = seen.setdefault(possible, [])
        source = next((name for name in alike if _are_equal(table, column.name, name)), None)
        if source is None:
            alike.append(column.name)
        elif _has_enough_rows(table[source]):
            copies[column.name] = source
    return copies


def _cells_of(table: TypedTable, name: str) -> Iterator[pd.Series[Any]]:
    """The cells of one column, a block of rows at a time."""
    return (block[name] for block in row_blocks(table, [name]))


def _are_equal(table: TypedTable, one: str, other: str) -> bool:
    """Whether two columns are equal in every row; most that are not differ in the first block."""
    blocks = zip(row_blocks(table, [one]), row_blocks(table, [other]), strict=True)
    return all(a[one].equals(b[other]) for a, b in blocks)


def _has_enough_rows(series: pd.Series[Any]) -> bool:
    """Whether enough rows have another value than the most frequent one."""
    counts = series.value_counts(dropna=False)
    return len(series) - int(counts.max() if len(counts) else 0) >= LEAST_ROWS_OF_COPIES


class TableCodec:
    """Encodes and decodes whole tables, column by column.

    Attributes:
        schema: Of the table.
        columns: The codecs of the modelled columns, in order: column j of the tensors is the j-th.
        copies: Columns that are not modelled but copied, with the column that each is a copy of.
    """

    def __init__(
        self,
        schema: TableSchema,
        columns: tuple[ColumnCodec, ...],
        rest: tuple[Unmodelled, ...],
        copies: Mapping[str, str],
    ) -> None:
        """Joins fitted codecs; `fit` and `from_json` are the ways to get them."""
        self.schema = schema
        self.columns = columns
        self.copies = dict(copies)
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
    ) -> TableCodec:
        """The codec of a typed table, as `parse_table` gives it; dropped columns are left out.

        Args:
            numbers: `standardised`, or `quantile`: as atoms and normal scores.
            levels: Of categorical columns: `listed`, in the schema's order, or `learned`: in the
                order of a correspondence analysis, rare ones bundled.
            with_copies: Columns that equal another in every row are copied, not modelled.
        """
        kept = [column for column in schema if not column.drop]
        candidates = [column for column in kept if column.is_modelled]
        copies = find_copies(table, candidates) if with_copies else {}
        own = [column for column in candidates if column.name not in copies]
        modelled = _fit_columns(table, own, numbers, levels)
        rest = tuple(
            _UNMODELLED[column.kind].fit(_cells_of(table, column.name), column)
            for column in kept
            if not column.is_modelled
        )
        return cls(schema, modelled, rest, copies)

    @property
    def numbers(self) -> str:
        """How numbers are coded: `standardised` or `quantile`."""
        by_quantile = any(isinstance(codec, QuantileCodec) for codec in self.columns)
        return "quantile" if by_quantile else "standardised"

    @property
    def levels(self) -> str:
        """The order of categorical levels: `listed` or `learned`."""
        are_learned = any(isinstance(codec, BundledLevelCodec) for codec in self.columns)
        return "learned" if are_learned else "listed"

    def with_positions(self, table: EncodedTable, generator: torch.Generator) -> EncodedTable:
        """The rows of a model with a uniform value in each cell that tells which level it is."""
        values = table.values.clone()
        for j, codec in enumerate(self.columns):
            if isinstance(codec, BundledLevelCodec):
                values[:, j] = uniform((len(table),), generator, torch.float64)
        return EncodedTable(table.codes, values, table.observed)

    def log_units(self, table: EncodedTable) -> Tensor:
        """log of original units per unit of value, summed over each row's numbers.

        log p(row) = log p(encoded row) - log_units. Blank cells count nothing. Shape: (n,).
        """
        return self.log_units_of_cells(table).sum(-1)

    def log_units_of_cells(self, table: EncodedTable) -> Tensor:
        """`log_units` cell by cell; 0 for blanks and for intervals. Shape: (n, D)."""
        codes, values = table.codes.numpy(), table.values.numpy()
        log_units = torch.zeros(table.codes.shape, dtype=torch.float64)
        for j, codec in enumerate(self.columns):
            log_units[:, j] = torch.from_numpy(codec.log_units(codes[:, j], values[:, j]))
        return torch.where(table.observed & ~table.are_intervals, log_units, 0.0)

    def encode(self, frame: pd.DataFrame, *, blanks_unknown: bool = False) -> EncodedTable:
        """The tensors of typed rows.

        Args:
            frame: As `parse_table` gives it.
            blanks_unknown: A missing cell is not an outcome but a cell that is not known.
        """
        shape = len(frame), len(self.columns)
        codes, values = np.zeros(shape, dtype=np.int32), np.zeros(shape)
        observed = np.ones(shape, dtype=bool)
        for j, codec in enumerate(self.columns):
            series = self.known_cells(frame, codec.name) if blanks_unknown else frame[codec.name]
            codes[:, j], values[:, j] = codec.encode(series)
            if blanks_unknown:
                observed[:, j] = series.notna()
        codes[~observed] = 0
        return EncodedTable(
            torch.from_numpy(codes), torch.from_numpy(values), torch.from_numpy(observed)
        )

    def known_cells(self, frame: pd.DataFrame, name: str) -> pd.Series[Any]:
        """The column of typed rows, its blanks as a copy of it has them."""
        series = frame[name]
        for copy, source in self.copies.items():
            series = series.where(series.notna(), frame[copy]) if source == name else series
        return series

    def differing_copies(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
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
        """The rows with their missing cells as cells that are not known."""
        has_missing = torch.tensor([codec.has_missing for codec in self.columns], dtype=torch.bool)
        observed = table.observed & ~((table.codes == 0) & has_missing)
        return replace(table, observed=observed)

    def decode(self, table: EncodedTable, first_row: int = 0) -> pd.DataFrame:
        """The typed rows of tensors, in the schema's columns and order, dropped ones left out.

        Args:
            table: On any device.
            first_row: Number of the first row; identifiers are numbered by row.
        """
        codes = table.codes.cpu().numpy().astype(np.int64)
        values = table.values.cpu().numpy().astype(np.float64)
        columns = {
            codec.name: codec.decode(codes[:, j], values[:, j])
            for j, codec in enumerate(self.columns)
        }
        columns |= {codec.name: codec.decode(len(table), first_row) for codec in self._rest}
        columns |= {name: columns[source] for name, source in self.copies.items()}
        ordered = {name: columns[name] for name in self.schema.names if name in columns}
        return pd.DataFrame(ordered, index=pd.RangeIndex(len(table)))

    def to_json(self) -> dict[str, Any]:
        """The codec as a document of JSON types: exact, and without any row of the table."""
        return {
            "version": CODEC_VERSION,
            "numbers": self.numbers,
            "levels": self.levels,
            "copies": self.copies,
            "schema": self.schema.to_json(),
            "columns": {codec.name: codec.to_json() for codec in (*self.columns, *self._rest)},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TableCodec:
        """The codec of a document: `from_json(to_json(c)) = c`.

        Raises:
            SchemaError: The schema in it is malformed.
            KeyError: It is no such document.
        """
        schema, parts = TableSchema.from_json(document["schema"]), document["columns"]
        kept = [column for column in schema if not column.drop]
        modelled = tuple(
            _codec_of(column.kind, document["numbers"], document["levels"]).from_json(
                column, parts[column.name]
            )
            for column in kept
            if column.is_modelled and column.name not in document["copies"]
        )
        rest = tuple(
            _UNMODELLED[column.kind].from_json(column, parts[column.name])
            for column in kept
            if not column.is_modelled
        )
        return cls(schema, modelled, rest, document["copies"])

    def __eq__(self, other: object) -> bool:
        """True for codecs that encode and decode alike."""
        return isinstance(other, TableCodec) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]
