"""Typed tables that need not fit into memory: columns in files, given out as `parse_table` would.

    with typed_columns(source, schema) as table:
        table["age"]                     # a column, whole
        for chunk in row_chunks(table): ...  # all columns of some rows

A table in memory is a data frame here; one of a file has its columns in files, mapped as needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.cells.distinct_cells import TextColumn, cells_of
from gcvae.cells.values import (
    Values,
    check_finite,
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
"""Rows of which all columns are in memory at once."""

Places = slice | npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArrayFile:
    """An array in a file, mapped for as long as it is used: memory forgets it between two uses."""

    path: Path

    @classmethod
    def of(cls, array: npt.NDArray[Any], path: Path) -> ArrayFile:
        """Writes the array to the path."""
        with written_to(path):
            np.save(path, array)
        return cls(path)

    def read(self) -> npt.NDArray[Any]:
        """The array in the file."""
        return np.load(self.path, mmap_mode="r")  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TextFile:
    """Texts in an Arrow file, mapped for as long as they are used."""

    path: Path

    @classmethod
    def of(cls, texts: pa.Array, path: Path) -> TextFile:
        """Writes the texts to the path."""
        table = pa.table({"texts": texts})
        with (
            written_to(path),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, table.schema) as sink,
        ):
            sink.write_table(table)
        return cls(path)

    def read(self) -> pa.Array:
        """The texts in the file."""
        with pa.memory_map(str(self.path)) as file:
            return pa.ipc.open_file(file).read_all().column(0).combine_chunks()


@dataclass(frozen=True)
class DistinctColumn:
    """A column as its distinct values, and which of them stands in each row, -1 for none.

    Shape: values (U,), codes (n,).
    """

    values: ArrayFile | TextFile | list[Any]
    codes: ArrayFile
    nullable: bool

    def at(self, places: Places) -> pd.Series[Any]:
        """The cells of some rows."""
        values = self.values if isinstance(self.values, list) else self.values.read()
        return placed_values(values, self.codes.read()[places], self.nullable)


@dataclass(frozen=True)
class PlainColumn:
    """A column of numbers or times as they are. Shape: (n,).

    Attributes:
        is_blank: Of whole numbers that may be missing; None where the values say it themselves.
    """

    values: ArrayFile
    is_blank: ArrayFile | None

    def at(self, places: Places) -> pd.Series[Any]:
        """The cells of some rows."""
        values = np.array(self.values.read()[places])
        if self.is_blank is None:
            return pd.Series(values)
        return pd.Series(pd.arrays.IntegerArray(values, np.array(self.is_blank.read()[places])))


class TypedFiles:
    """The typed columns of a file, each in files of its own.

    Attributes:
        columns: Their names, in the schema's order.
    """

    def __init__(self, columns: dict[str, DistinctColumn | PlainColumn], n_rows: int) -> None:
        """Joins the columns; `typed_columns` is the way to get them."""
        self._columns = columns
        self._n_rows = n_rows
        self.columns = list(columns)

    def __len__(self) -> int:
        """The number of rows."""
        return self._n_rows

    def __getitem__(self, name: str) -> pd.Series[Any]:
        """A column, in memory."""
        return self._columns[name].at(slice(None)).rename(name)

    def with_levels(self, columns: Mapping[str, pd.Series[Any]]) -> TypedFiles:
        """The table with other cells in columns of levels, in files beside those they had."""
        replaced = dict(self._columns)
        for name, series in columns.items():
            old = replaced[name]
            assert isinstance(old, DistinctColumn), "a column of levels"
            codes, distinct = pd.factorize(series)
            path = old.codes.path.with_suffix(".learned.npy")
            kept = ArrayFile.of(codes.astype(np.int32), path)
            replaced[name] = DistinctColumn(distinct.tolist(), kept, old.nullable)
        return TypedFiles(replaced, self._n_rows)

    def at(self, places: Places, names: Sequence[str]) -> pd.DataFrame:
        """The named columns of some rows, in memory."""
        return pd.DataFrame({name: self._columns[name].at(places) for name in names})


TypedTable = pd.DataFrame | TypedFiles


def with_levels(table: TypedTable, columns: Mapping[str, pd.Series[Any]]) -> TypedTable:
    """The table with other cells in some columns of levels; the given one stays as it is."""
    if isinstance(table, TypedFiles):
        return table.with_levels(columns)
    changed = table.copy(deep=False)
    for name, series in columns.items():
        changed[name] = series
    return changed


def rows_at(table: TypedTable, places: Places, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Some rows of a table, of all columns or of those named."""
    chosen = list(table.columns) if names is None else list(names)
    if isinstance(table, pd.DataFrame):
        return table[chosen].iloc[places]
    return table.at(places, chosen)


def row_chunks(table: TypedTable, names: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """All rows in order, CHUNK_ROWS at a time, of all columns or of those named."""
    for first in range(0, len(table), CHUNK_ROWS):
        yield rows_at(table, slice(first, first + CHUNK_ROWS), names)


@contextmanager
def typed_columns(
    source: SourceColumns, schema: TableSchema, report: Report = report_to_nobody
) -> Iterator[TypedTable]:
    """The table that `parse_table` makes of the source's columns of the schema.

    Raises:
        TableError: A cell can not be of its column's kind.
        OSError: The disk is full.
    """
    kept = [column for column in schema if not column.drop]
    if isinstance(source, FrameColumns):
        yield parse_table(source.frame[list(schema.names)], schema)
        return
    with temporary_files() as folder:
        columns, problems = {}, list[Problem]()
        for i, column in enumerate(kept):
            report(i / len(kept))
            columns[column.name] = _column_in_files(source, column, folder / str(i), problems)
        if problems:
            raise TableError(*problems)
        yield TypedFiles(columns, len(source))


def _column_in_files(
    source: SourceColumns, column: Column, path: Path, problems: list[Problem]
) -> DistinctColumn | PlainColumn:
    """Reads a column, and keeps what came out in files that begin with the path."""
    series = source[column.name]
    if not isinstance(series, TextColumn) and is_parsed(series, column):
        check_finite(series, column, problems)
        return _plain(series, path)
    cells = cells_of(series, source.lines, column.datetime_format, column.number_format)
    del series
    values, codes = read_column(cells, column, problems)
    del cells
    kept = ArrayFile.of(codes.astype(np.int32), path.with_name(f"{path.name}.codes.npy"))
    return DistinctColumn(_kept(values, path), kept, is_nullable(codes, column))


def _plain(series: pd.Series[Any], path: Path) -> PlainColumn:
    place = path.with_name(f"{path.name}.npy")
    if not isinstance(series.dtype, pd.Int64Dtype):
        return PlainColumn(ArrayFile.of(series.to_numpy(), place), None)
    values = ArrayFile.of(series.fillna(0).to_numpy(dtype=np.int64), place)
    blank = ArrayFile.of(series.isna().to_numpy(), path.with_name(f"{path.name}.blank.npy"))
    return PlainColumn(values, blank)


def _kept(values: Values, path: Path) -> ArrayFile | TextFile | list[Any]:
    """Distinct values: those that may be as many as rows in a file, levels in memory."""
    if isinstance(values, np.ndarray):
        return ArrayFile.of(values, path.with_name(f"{path.name}.values.npy"))
    if isinstance(values, pa.Array):
        return TextFile.of(values, path.with_name(f"{path.name}.values.arrow"))
    return values
