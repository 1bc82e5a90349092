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

from gcvae.arrays import Mask
from gcvae.cells.distinct_cells import Cells, TextColumn, cells_of
from gcvae.cells.values import (
    READERS,
    Values,
    are_missing,
    check_finite,
    counted,
    is_nullable,
    is_parsed,
    parse_table,
    placed_values,
    read_column,
)
from gcvae.errors import Problem, TableError
from gcvae.files.source_columns import FrameColumns, SourceColumns
from gcvae.files.temporary_files import temporary_files, written_to
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import Column, TableSchema

CHUNK_ROWS = 1 << 16
"""Number of rows that `row_chunks` loads into memory at once."""

RowIndices = slice | npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArrayFile:
    """NumPy array in a file, which is mapped into memory only while its values are used."""

    path: Path

    @classmethod
    def of(cls, array: npt.NDArray[Any], path: Path) -> ArrayFile:
        """Writes an array to the path."""
        with written_to(path):
            np.save(path, array)
        return cls(path)

    def read(self) -> npt.NDArray[Any]:
        """Returns the array, mapped from the file."""
        return np.load(self.path, mmap_mode="r")  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TextFile:
    """Array of strings in an Arrow file, mapped into memory only while they are used."""

    path: Path

    @classmethod
    def of(cls, texts: pa.Array, path: Path) -> TextFile:
        """Writes an array of strings to the path."""
        table = pa.table({"texts": texts})
        with (
            written_to(path),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, table.schema) as sink,
        ):
            sink.write_table(table)
        return cls(path)

    def read(self) -> pa.Array:
        """Returns the strings, mapped from the file."""
        with pa.memory_map(str(self.path)) as file:
            return pa.ipc.open_file(file).read_all().column(0).combine_chunks()


@dataclass(frozen=True)
class DistinctColumn:
    """A column of n rows stored as its U distinct values and the index of each row's value.

    Attributes:
        values: Distinct values, in a file or as a list. Shape: (U,).
        codes: Index of each row's value; -1 for a missing cell. Shape: (n,).
        nullable: Whether integers and booleans get a nullable dtype.
    """

    values: ArrayFile | TextFile | list[Any]
    codes: ArrayFile
    nullable: bool

    def at(self, places: RowIndices) -> pd.Series[Any]:
        """Returns the values of the rows with indices `places`."""
        values = self.values if isinstance(self.values, list) else self.values.read()
        return placed_values(values, self.codes.read()[places], self.nullable)

    def value_codes(self) -> npt.NDArray[np.integer[Any]]:
        """Returns an integer for each of n rows that is equal for equal values; -1 for missing.
        Shape: (n,).

        Cells that are written differently but have the same value, such as 1 and 1.0, get the same
        integer, in contrast to `codes`.
        """
        codes = self.codes.read()
        values = self.values if isinstance(self.values, list) else self.values.read()
        numbers = np.arange(codes.max(initial=-1) + 1)
        of_values = pd.factorize(placed_values(values, numbers, self.nullable))[0]
        if len(of_values) == of_values.max(initial=-1) + 1:
            return codes
        return np.asarray(np.append(of_values, -1)[codes])


@dataclass(frozen=True)
class PlainColumn:
    """A column of numbers or times, stored as an array of the values of its n rows.

    Attributes:
        values: Values of the rows. Shape: (n,).
        is_blank: Mask of the missing cells of an integer column; None if missing cells are NaN or
            NaT in `values`. Shape: (n,).
    """

    values: ArrayFile
    is_blank: ArrayFile | None

    def at(self, places: RowIndices) -> pd.Series[Any]:
        """Returns the values of the rows with indices `places`."""
        values = np.array(self.values.read()[places])
        if self.is_blank is None:
            return pd.Series(values)
        return pd.Series(pd.arrays.IntegerArray(values, np.array(self.is_blank.read()[places])))


class TypedFiles:
    """A parsed table whose columns are stored in files.

    Attributes:
        columns: Names of the columns, in the schema's order.
    """

    def __init__(self, columns: dict[str, DistinctColumn | PlainColumn], n_rows: int) -> None:
        """Stores the columns; use `typed_columns` to create a table."""
        self._columns = columns
        self._n_rows = n_rows
        self.columns = list(columns)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return self._n_rows

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """Returns all rows of a column, in memory."""
        return self._columns[name].at(slice(None)).rename(name)

    def with_levels(self, columns: Mapping[str, pd.Series[Any]]) -> TypedFiles:
        """Returns a table in which some columns of levels (categories) are replaced by those in
        `columns`; the new cells are stored in additional files."""
        replaced = dict(self._columns)
        for name, series in columns.items():
            old = replaced[name]
            assert isinstance(old, DistinctColumn), "a column of levels"
            codes, distinct = pd.factorize(series)
            path = old.codes.path.with_suffix(".learned.npy")
            kept = ArrayFile.of(codes.astype(np.int32), path)
            replaced[name] = DistinctColumn(distinct.tolist(), kept, old.nullable)
        return TypedFiles(replaced, self._n_rows)

    def value_codes(self, name: str) -> npt.NDArray[np.integer[Any]]:
        """Returns the index of each of n rows' values among the column's distinct values; -1 for
        missing. Shape: (n,)."""
        column = self._columns[name]
        if isinstance(column, DistinctColumn):
            return column.value_codes()
        return pd.factorize(column.at(slice(None)))[0]

    def at(self, places: RowIndices, names: Sequence[str]) -> pd.DataFrame:
        """Returns the named columns of the rows with indices `places` as a data frame in memory."""
        return pd.DataFrame({name: self._columns[name].at(places) for name in names})


TypedTable = pd.DataFrame | TypedFiles


def with_levels(table: TypedTable, columns: Mapping[str, pd.Series[Any]]) -> TypedTable:
    """Returns a table in which some columns of levels (categories) have new cells; the original is
    not changed.

    Args:
        columns: New cells of each column, by name.
    """
    if isinstance(table, TypedFiles):
        return table.with_levels(columns)
    changed = table.copy(deep=False)
    for name, series in columns.items():
        changed[name] = series
    return changed


def rows_at(
    table: TypedTable, places: RowIndices, names: Sequence[str] | None = None
) -> pd.DataFrame:
    """Returns the rows with indices `places` as a data frame, with the columns `names` (all if
    None)."""
    chosen = list(table.columns) if names is None else list(names)
    if isinstance(table, pd.DataFrame):
        return table[chosen].iloc[places]
    return table.at(places, chosen)


def value_codes(table: TypedTable, name: str) -> npt.NDArray[np.integer[Any]]:
    """Returns the index of each of n rows' values among the column's distinct values; -1 for
    missing. Shape: (n,)."""
    if isinstance(table, TypedFiles):
        return table.value_codes(name)
    return pd.factorize(table[name])[0]


def row_chunks(table: TypedTable, names: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """Yields all rows in order, CHUNK_ROWS at a time, with the columns `names` (all if None)."""
    for first in range(0, len(table), CHUNK_ROWS):
        yield rows_at(table, slice(first, first + CHUNK_ROWS), names)


@contextmanager
def typed_columns(
    source: SourceColumns, schema: TableSchema, report: Report = report_to_nobody
) -> Iterator[TypedTable]:
    """Context manager that returns a table with its cells parsed to the schema's types.

    Args:
        report: Function that receives the share of columns that have been parsed.

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
    """Context manager that returns an empty table to which parsed columns can be added; its files
    are deleted afterwards."""
    if isinstance(source, FrameColumns):
        yield GrowingColumns(source, None)
        return
    with temporary_files() as folder:
        yield GrowingColumns(source, folder)


class GrowingColumns:
    """Builds a parsed table column by column, so that memory holds one column at a time."""

    def __init__(self, source: SourceColumns, folder: Path | None) -> None:
        """Starts without columns.

        Args:
            source: Columns of the table.
            folder: Folder for the files; None if the table is in memory, and is then parsed in
                `table`.
        """
        self._source, self._folder = source, folder
        self._columns: dict[str, DistinctColumn | PlainColumn] = {}
        self._problems: list[Problem] = []

    def add(self, column: Column, known: KnownCells | None = None) -> None:
        """Parses a column and stores its values; errors in cells are collected, and the method
        `table` raises them.

        Args:
            known: The column's cells if they have already been read, else None.

        Raises:
            OSError: The disk is full.
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
                series = counted(series, column)
            cells = cells_of(series, lines, column.datetime_format, column.number_format)
            del series
            read = read_column(cells, column, self._problems)
            del cells
        values, codes = read
        kept = ArrayFile.of(codes.astype(np.int32), path.with_name(f"{path.name}.codes.npy"))
        nullable = is_nullable(codes, column)
        self._columns[column.name] = DistinctColumn(_kept(values, path), kept, nullable)

    def table(self, schema: TableSchema) -> TypedTable:
        """Returns the table of the added columns.

        Raises:
            TableError: A cell is not valid for its column's kind.
        """
        if isinstance(self._source, FrameColumns):
            return parse_table(self._source.frame[list(schema.names)], schema)
        if self._problems:
            raise TableError(*self._problems)
        return TypedFiles(self._columns, len(self._source))


@dataclass(frozen=True)
class KnownCells:
    """Cells of a column that schema inference has read, kept so that they need not be read again.

    Attributes:
        cells: All cells.
        missing: Mask of those of the U distinct cells that mean "missing". Shape: (U,).
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
        """Parses the cells of a column to its typed values, reusing what schema inference has
        found.

        Args:
            problems: List to which errors in cells are appended.

        Returns:
            (U distinct values, index of each of n rows' values; -1 for missing). Shape: (U,), (n,).
        """
        number_format = column.number_format
        if (are_missing(self.cells, column) != self.missing).any():
            cells = replace(self.cells, number_format=number_format)
            return read_column(cells, column, problems)
        present = self.present
        if present.number_format != number_format:
            present = replace(present, number_format=number_format)
        return READERS[column.kind](present, column, problems), present.codes


def _plain(series: pd.Series[Any], path: Path) -> PlainColumn:
    place = path.with_name(f"{path.name}.npy")
    if not isinstance(series.dtype, pd.Int64Dtype):
        return PlainColumn(ArrayFile.of(series.to_numpy(), place), None)
    values = ArrayFile.of(series.fillna(0).to_numpy(dtype=np.int64), place)
    blank = ArrayFile.of(series.isna().to_numpy(), path.with_name(f"{path.name}.blank.npy"))
    return PlainColumn(values, blank)


def _kept(values: Values, path: Path) -> ArrayFile | TextFile | list[Any]:
    """Stores distinct values: numbers and texts in a file, levels in memory."""
    if isinstance(values, np.ndarray):
        return ArrayFile.of(values, path.with_name(f"{path.name}.values.npy"))
    if isinstance(values, pa.Array):
        return TextFile.of(values, path.with_name(f"{path.name}.values.arrow"))
    return values
