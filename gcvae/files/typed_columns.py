"""Typed tables that need not fit into memory: columns in files, given out as `parse_table` would.

    with typed_columns(source, schema) as table:
        table["age"]                     # a column, whole
        for chunk in row_chunks(table): ...  # all columns of some rows

A table in memory is a data frame here; one of a file has its columns in files, mapped as needed.
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

    def value_codes(self) -> npt.NDArray[np.integer[Any]]:
        """Which value stands in each row; two texts may be one value, such as 1 and 1.0."""
        codes = self.codes.read()
        values = self.values if isinstance(self.values, list) else self.values.read()
        numbers = np.arange(codes.max(initial=-1) + 1)
        of_values = pd.factorize(placed_values(values, numbers, self.nullable))[0]
        if len(of_values) == of_values.max(initial=-1) + 1:
            return codes
        return np.asarray(np.append(of_values, -1)[codes])


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

    def value_codes(self, name: str) -> npt.NDArray[np.integer[Any]]:
        """As the function of that name gives them."""
        column = self._columns[name]
        if isinstance(column, DistinctColumn):
            return column.value_codes()
        return pd.factorize(column.at(slice(None)))[0]

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


def value_codes(table: TypedTable, name: str) -> npt.NDArray[np.integer[Any]]:
    """Which distinct value of a column stands in each row, as they appear; -1 for none.

    Shape: (n,).
    """
    if isinstance(table, TypedFiles):
        return table.value_codes(name)
    return pd.factorize(table[name])[0]


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
    with growing_columns(source) as grown:
        kept = [column for column in schema if not column.drop]
        for i, column in enumerate(kept):
            report(i / len(kept))
            grown.add(column)
        yield grown.table(schema)


@contextmanager
def growing_columns(source: SourceColumns) -> Iterator[GrowingColumns]:
    """A typed table that has no column yet; its files go with the block."""
    if isinstance(source, FrameColumns):
        yield GrowingColumns(source, None)
        return
    with temporary_files() as folder:
        yield GrowingColumns(source, folder)


class GrowingColumns:
    """The table of `typed_columns`, column by column."""

    def __init__(self, source: SourceColumns, folder: Path | None) -> None:
        """Of a source, in a folder; of a table in memory there is none."""
        self._source, self._folder = source, folder
        self._columns: dict[str, DistinctColumn | PlainColumn] = {}
        self._problems: list[Problem] = []

    def add(self, column: Column, known: KnownCells | None = None) -> None:
        """Reads a column, and keeps what came out in files.

        Args:
            known: Its cells, where somebody has them already.

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
        """The table of the columns that were added: those of the schema that it does not drop.

        Raises:
            TableError: A cell can not be of its column's kind.
        """
        if isinstance(self._source, FrameColumns):
            return parse_table(self._source.frame[list(schema.names)], schema)
        if self._problems:
            raise TableError(*self._problems)
        return TypedFiles(self._columns, len(self._source))


@dataclass(frozen=True)
class KnownCells:
    """The cells of a column whose schema was made of them.

    Attributes:
        cells: All of it.
        missing: Which of its texts mean "missing". Shape: (U,).
        present: The cells of the others.
    """

    cells: Cells
    missing: Mask
    present: Cells

    @property
    def are_texts(self) -> bool:
        """Whether the cells are those of the file, whatever the column is."""
        return self.cells.source == "text" and not self.cells.has_objects

    def read(self, column: Column, problems: list[Problem]) -> tuple[Values, npt.NDArray[np.int64]]:
        """What `read_column` reads, without a second look at what is known."""
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
    """Distinct values: those that may be as many as rows in a file, levels in memory."""
    if isinstance(values, np.ndarray):
        return ArrayFile.of(values, path.with_name(f"{path.name}.values.npy"))
    if isinstance(values, pa.Array):
        return TextFile.of(values, path.with_name(f"{path.name}.values.arrow"))
    return values
