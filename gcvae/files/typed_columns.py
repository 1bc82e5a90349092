"""Parsed tables larger than memory: columns in files, with the values that `parse_table` returns.

    with typed_columns(source, schema) as table:
        table["age"]                     # all rows of one column
        for chunk in row_chunks(table): ...  # all columns of some rows

A table in memory is a data frame; the columns of a file are stored in memory-mapped files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyarrow import feather

from gcvae.arrays import Mask
from gcvae.cells.distinct_cells import Cells, TextColumn, cells_of
from gcvae.cells.values import (
    READERS,
    Values,
    are_missing,
    check_finite,
    durations_as_numbers,
    is_nullable,
    is_parsed,
    parse_table,
    placed_values,
    read_column,
)
from gcvae.errors import Problem, TableError
from gcvae.files.source_columns import SourceColumns
from gcvae.files.temporary_files import temporary_files, written_to
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import Column, TableSchema

CHUNK_ROWS = 1 << 16
"""Number of rows that `row_chunks` loads into memory at once."""

RowIndices = slice | npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArrayFile:
    """Array of numbers, times or strings in an Arrow file, which is mapped into memory only while
    its values are used."""

    path: Path

    @classmethod
    def of(cls, array: npt.NDArray[Any] | pa.Array, path: Path) -> ArrayFile:
        """Writes an array of NumPy, or of strings of Arrow, to the path."""
        with written_to(path):
            table = pa.table({"values": array})
            feather.write_feather(table, path, "uncompressed", chunksize=len(array) + 1)
        return cls(path)

    def read(self) -> Any:
        """Returns the array, mapped from the file."""
        values = feather.read_table(self.path, memory_map=True).column(0).combine_chunks()
        return values if pa.types.is_string(values.type) else np.asarray(values)


@dataclass(frozen=True)
class StoredColumn:
    """A column of n rows, stored as distinct values with the index of each row's value, or as one
    value for each row.

    Attributes:
        values: The U distinct values, in a file or as a list; or, if `codes` is None, a file with
            the value of each row, which is NaN or NaT if the cell is missing.
        codes: Index of each row's value; -1 for a missing cell. Shape: (n,).
        nullable: Whether integers and booleans get a nullable dtype.
    """

    values: ArrayFile | list[Any]
    codes: ArrayFile | None
    nullable: bool = False

    def placed(self, codes: npt.NDArray[np.integer[Any]]) -> pd.Series[Any]:
        """Returns a series with the distinct values that have the indices `codes`; -1 means
        missing."""
        values = self.values if isinstance(self.values, list) else self.values.read()
        return placed_values(values, codes, self.nullable)

    def at(self, places: RowIndices) -> pd.Series[Any]:
        """Returns the values of the rows with indices `places`."""
        if self.codes is not None:
            return self.placed(self.codes.read()[places])
        assert isinstance(self.values, ArrayFile), "lists are of distinct values"
        return pd.Series(np.array(self.values.read()[places]))


@dataclass(frozen=True, eq=False)
class TypedFiles:
    """A parsed table whose columns are stored in files.

    Attributes:
        stored: Columns by name, in the schema's order.
        n_rows: Number of rows.
    """

    stored: dict[str, StoredColumn]
    n_rows: int

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.stored)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return self.n_rows

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """Returns all rows of a column, in memory."""
        return self.stored[name].at(slice(None)).rename(name)


TypedTable = pd.DataFrame | TypedFiles


def with_cells(table: TypedTable, columns: Mapping[str, pd.Series[Any]]) -> TypedTable:
    """Returns a copy of a table in which the cells of some columns are replaced.

    Args:
        columns: New cells by column name, of the same types as the old ones.
    """
    if isinstance(table, pd.DataFrame):
        changed = table.copy(deep=False)
        for name, series in columns.items():
            changed[name] = series
        return changed
    replaced = dict(table.stored)
    for name, series in columns.items():
        own = replaced[name]
        old = own.values if own.codes is None else own.codes
        assert isinstance(old, ArrayFile), "lists are of distinct values"
        path = old.path.with_suffix(".learned")
        if own.codes is None:
            replaced[name] = replace(own, values=ArrayFile.of(series.to_numpy(), path))
            continue
        codes, distinct = pd.factorize(series)
        values = np.asarray(distinct)
        replaced[name] = replace(
            own,
            values=values.tolist()
            if values.dtype == object
            else ArrayFile.of(values, path.with_suffix(".values")),
            codes=ArrayFile.of(codes.astype(np.int32), path),
        )
    return TypedFiles(replaced, len(table))


def rows_at(
    table: TypedTable, places: RowIndices, names: Sequence[str] | None = None
) -> pd.DataFrame:
    """Returns the rows with indices `places` as a data frame, with the columns `names` (all if
    None)."""
    chosen = list(table.columns) if names is None else list(names)
    if isinstance(table, pd.DataFrame):
        return table[chosen].iloc[places]
    return pd.DataFrame({name: table.stored[name].at(places) for name in chosen})


def value_codes(table: TypedTable, name: str) -> npt.NDArray[np.integer[Any]]:
    """Returns, for each of n rows, the index of its value among the column's distinct values, or -1
    if its cell is missing. Shape: (n,)."""
    column = None if isinstance(table, pd.DataFrame) else table.stored[name]
    if column is None or column.codes is None:
        return pd.factorize(table[name])[0]
    codes: npt.NDArray[np.integer[Any]] = column.codes.read()
    # Cells that are written differently may have the same value, such as 1 and 1.0.
    of_values = pd.factorize(column.placed(np.arange(codes.max(initial=-1) + 1)))[0]
    if len(of_values) == of_values.max(initial=-1) + 1:
        return codes
    return np.asarray(np.append(of_values, -1)[codes])


def row_chunks(table: TypedTable, names: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """Yields all rows in order, CHUNK_ROWS at a time, with the columns `names` (all if None)."""
    for first in range(0, len(table), CHUNK_ROWS):
        yield rows_at(table, slice(first, first + CHUNK_ROWS), names)


@contextmanager
def typed_columns(
    source: SourceColumns, schema: TableSchema, report: Report = report_to_nobody
) -> Iterator[TypedTable]:
    """Context manager that yields a table with its cells parsed to the schema's types; `report`
    receives the share of columns that have been parsed.

    Raises:
        TableError: A cell is not valid for its column's kind.
        OSError: The disk is full.
    """
    with growing_columns(source) as grown:
        kept = [column for column in schema if not column.drop]
        for i, column in enumerate(kept):
            report(i / len(kept))
            grown.add(column)
        yield grown.table(schema)


@contextmanager
def growing_columns(source: SourceColumns) -> Iterator[GrowingColumns]:
    """Context manager that yields an empty table to which parsed columns can be added; its files
    are deleted afterwards."""
    if source.frame is not None:
        yield GrowingColumns(source, None)
        return
    with temporary_files() as folder:
        yield GrowingColumns(source, folder)


class GrowingColumns:
    """Builds a parsed table column by column. Columns of a file are stored on disk as soon as they
    are parsed, so memory holds only the column that is being parsed."""

    def __init__(self, source: SourceColumns, folder: Path | None) -> None:
        """Starts without columns. `folder` is the folder of the files; None if the source is in
        memory, in which case `table` parses it."""
        self._source, self._folder = source, folder
        self._columns: dict[str, StoredColumn] = {}
        self._problems: list[Problem] = []

    def add(self, column: Column, known: KnownCells | None = None) -> None:
        """Parses a column and stores its values; collects errors in cells, which `table` raises.

        Args:
            known: Cells of the column that schema inference has read; None to read the source.
        """
        if self._folder is None:
            return
        path = self._folder / str(len(self._columns))
        if known is not None and known.are_texts:
            read = known.read(column, self._problems)
        else:
            series = self._source[column.name]
            if not isinstance(series, TextColumn) and is_parsed(series, column):
                check_finite(series, column, self._problems)
                self._columns[column.name] = _plain(series, path)
                return
            lines = self._source.lines
            if not isinstance(series, TextColumn):
                series = durations_as_numbers(series, column)
            cells = cells_of(series, lines, column.datetime_format, column.number_format)
            del series
            read = read_column(cells, column, self._problems)
            del cells
        values, codes = read
        self._columns[column.name] = _stored(values, codes, is_nullable(codes, column), path)

    def table(self, schema: TableSchema) -> TypedTable:
        """Returns the table of the added columns.

        Raises:
            TableError: A cell is not valid for its column's kind.
        """
        if self._source.frame is not None:
            return parse_table(self._source.frame[list(schema.names)], schema)
        if self._problems:
            raise TableError(*self._problems)
        return TypedFiles(self._columns, len(self._source))


@dataclass(frozen=True)
class KnownCells:
    """Cells of a column that schema inference has read, kept so that they need not be read again.

    Attributes:
        cells: All cells.
        missing: Mask of the U distinct cells, True for those that mean "missing". Shape: (U,).
        present: Cells that are not missing.
    """

    cells: Cells
    missing: Mask
    present: Cells

    @property
    def are_texts(self) -> bool:
        """Whether the cells come from a text file, so that each is a string."""
        return self.cells.source == "text" and not self.cells.has_objects

    def read(self, column: Column, problems: list[Problem]) -> tuple[Values, npt.NDArray[np.int64]]:
        """Returns (U distinct typed values, index of each of n rows' values; -1 for missing), and
        appends errors in cells to `problems`. Shape: (U,), (n,)."""
        number_format = column.number_format
        if (are_missing(self.cells, column) != self.missing).any():
            cells = replace(self.cells, number_format=number_format)
            return read_column(cells, column, problems)
        present = self.present
        if present.number_format != number_format:
            present = replace(present, number_format=number_format)
        return READERS[column.kind](present, column, problems), present.codes


def _plain(series: pd.Series[Any], path: Path) -> StoredColumn:
    if not isinstance(series.dtype, pd.Int64Dtype):
        return StoredColumn(ArrayFile.of(series.to_numpy(), path), None)
    values = series.ffill().bfill().fillna(0).to_numpy(dtype=np.int64)
    codes = np.where(series.isna(), -1, np.arange(len(series)))
    return _stored(values, codes, True, path)


def _stored(values: Values, codes: npt.NDArray[Any], nullable: bool, path: Path) -> StoredColumn:
    kept = ArrayFile.of(codes.astype(np.int32), path.with_name(f"{path.name}.codes"))
    # Levels stay in memory.
    distinct = values if isinstance(values, list) else ArrayFile.of(values, path)
    return StoredColumn(distinct, kept, nullable)
