"""Tables as files, as text cells and as typed values.

    read_table: file -> cells as written        parse_table: cells -> values
    write_table: values -> file                 format_table: values -> cells as written

`write(format(parse(read(file)))) = file`, to the byte, where a file is a CSV with commas and LF
that quotes only what it must, and where each column spells its values by one rule.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from gcvae.cells import MARKERS, WEAK_MARKERS, Cells, cells_of
from gcvae.dates import read_dates, write_dates
from gcvae.delimited import read_delimited, write_delimited
from gcvae.errors import Problem, TableError, UnknownColumnError
from gcvae.gzipped import unzipped
from gcvae.levels import are_numeric, level_texts, read_levels
from gcvae.notation import (
    are_numbers,
    are_whole,
    numbers_of,
    spelling_of,
    write_numbers,
    write_whole,
)
from gcvae.parquet_files import read_parquet
from gcvae.schema import Column, ColumnKind, TableSchema

FORMATS = ("csv", "csv.gz", "parquet")
MOST_UNZIPPED_BYTES = 2 << 30  # a small gzip file can unfold to more than any memory holds
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"

Source = str | Path | bytes | BinaryIO
Destination = str | Path | BinaryIO


def read_table(
    source: Source, *, format: str | None = None, dropped: Collection[str] = ()
) -> pd.DataFrame:
    """The table of a file: cells of a text file as written, values of a Parquet file.

    Args:
        source: A path, the bytes, or an open binary file.
        format: One of "csv", "csv.gz", "parquet"; told from the first bytes where not given.
        dropped: Columns that are left out where a Parquet file has no cells there, but lists.

    Raises:
        TableError: It is no such file; the problems name the lines.
    """
    data = _bytes_of(source)
    if format not in (None, *FORMATS):
        raise TableError(f"there is no table format {format!r}, but {', '.join(FORMATS)}")
    if data.startswith(_PARQUET) or format == "parquet":
        return read_parquet(data, dropped)
    return read_delimited(_unzipped(data) if data.startswith(_GZIP) else data)


def write_table(
    frame: pd.DataFrame, destination: Destination, schema: TableSchema, format: str | None = None
) -> None:
    """Writes values as a file: as text spelled like the schema's table, or as Parquet.

    Args:
        frame: Values, as `parse_table` gives them.
        destination: A path or an open binary file.
        schema: Of the table.
        format: One of "csv", "csv.gz", "parquet"; told from the path's ending where not given.
    """
    chosen = format if format is not None else _format_of(destination)
    if chosen not in FORMATS:
        raise TableError(f"there is no table format {chosen!r}, but {', '.join(FORMATS)}")
    if isinstance(destination, str | Path):
        with open(destination, "wb") as file:
            write_table(frame, file, schema, chosen)
    elif chosen == "parquet":
        _write_parquet(frame, destination, schema)
    elif chosen == "csv.gz":
        # No name and no time, so that equal tables are equal files.
        with gzip.GzipFile("", "wb", fileobj=destination, mtime=0) as packed:
            packed.writelines(write_delimited(format_table(frame, schema)))
    else:
        destination.writelines(write_delimited(format_table(frame, schema)))


def _write_parquet(frame: pd.DataFrame, destination: BinaryIO, schema: TableSchema) -> None:
    from gcvae.arrow_tables import arrow_table  # which writes some values as text, as below

    parquet.write_table(arrow_table(frame, schema), destination)


def parse_table(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """The values of text or typed cells, in the schema's order.

    Numbers are int64 (Int64 where cells may be missing) and float64, dates datetime64[ns], booleans
    bool (boolean), levels numbers or str; missing is NA, NaN, NaT or None. Columns that the model
    does not learn may be absent. A level that the schema does not list stays what it is.

    Raises:
        TableError: A modelled column is absent, or a cell can not be of its column's kind.
        UnknownColumnError: The frame has a column that the schema has not.
    """
    _check_columns(frame, schema)
    problems: list[Problem] = []
    lines = frame.attrs.get("lines", frame.attrs.get("rows"))
    columns = {
        column.name: _parse_column(frame[column.name], column, lines, problems)
        for column in schema
        if column.name in frame
    }
    if problems:
        raise TableError(*problems)
    return pd.DataFrame(columns, index=frame.index)


def format_table(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """The cells of values as they are to be written; missing is the most frequent marker.

    Any run of a table's rows can be formatted by itself.

    Raises:
        UnknownColumnError: The frame has a column that the schema has not.
    """
    columns = {name: _format_column(frame[name], schema[name]) for name in frame.columns}
    return pd.DataFrame(columns, index=frame.index, dtype=object)


# Files


def _bytes_of(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | Path):
        return source.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise TableError(f"{source} can not be read: {error.strerror}") from None


def _unzipped(data: bytes) -> bytes:
    pieces: list[bytes] = []
    n_bytes = 0
    for piece in unzipped(io.BytesIO(data)):
        n_bytes += len(piece)
        if n_bytes > MOST_UNZIPPED_BYTES:
            raise TableError(
                f"the gzip file holds more than {MOST_UNZIPPED_BYTES >> 30} GiB; if that is no"
                " mistake, unpack it and read the plain file"
            )
        pieces.append(piece)
    return b"".join(pieces)


def _format_of(destination: Destination) -> str:
    if not isinstance(destination, str | Path):
        return "csv"
    name = str(destination).lower()
    return "csv.gz" if name.endswith(".gz") else "parquet" if name.endswith(".parquet") else "csv"


# Cells to values


def _check_columns(frame: pd.DataFrame, schema: TableSchema) -> None:
    unknown = [name for name in frame.columns if name not in schema]
    if unknown:
        expected = "the columns " + ", ".join(schema.names[:20])
        raise UnknownColumnError(
            *(Problem("the schema has no such column", column=str(name), expected=expected)
              for name in unknown)
        )  # fmt: skip
    absent = [column.name for column in schema if column.is_modelled and column.name not in frame]
    if absent:
        raise TableError(*(Problem("the table lacks this column", column=name) for name in absent))


def _parse_column(
    series: pd.Series[Any], column: Column, lines: Any, problems: list[Problem]
) -> pd.Series[Any]:
    if is_parsed(series, column):
        check_finite(series, column, problems)
        return series
    values, codes = read_column(cells_of(series, lines, column.datetime_format), column, problems)
    nullable = is_nullable(codes, column)
    return placed_values(values, codes, nullable).set_axis(series.index)


def check_finite(series: pd.Series[Any], column: Column, problems: list[Problem]) -> None:
    """Notes that a typed column holds an infinite number, if it does."""
    if series.dtype.kind == "f" and np.isinf(series).any():
        problems.append(Problem("the column holds an infinite number", column=column.name))


def read_column(
    cells: Cells, column: Column, problems: list[Problem]
) -> tuple[Values, npt.NDArray[np.int64]]:
    """The distinct values of a column, and which of them stands in each row, -1 for missing.

    Shape: (U,), (n,). Cells that can not be of the column's kind are added to `problems`.
    """
    present = cells.some(~are_missing(cells, column))
    return _READERS.get(column.kind, _read_level_cells)(present, column, problems), present.codes


def is_nullable(codes: npt.NDArray[np.int64], column: Column) -> bool:
    """Whether the column's dtype has a place for missing cells."""
    return column.missing.allowed or bool((codes < 0).any())


def is_parsed(series: pd.Series[Any], column: Column) -> bool:
    """True for a column that has the dtype of its kind already."""
    if column.kind is ColumnKind.CONTINUOUS:
        return series.dtype == np.float64
    if column.kind is ColumnKind.INTEGER:
        return series.dtype == ("Int64" if column.missing.allowed else np.int64)
    return column.kind is ColumnKind.DATETIME and series.dtype == "datetime64[ns]"


def are_missing(cells: Cells, column: Column) -> npt.NDArray[np.bool_]:
    """True for each distinct text that means "missing" in this column.

    Beside the column's own markers these are the usual ones, where they are no level of it.
    """
    if cells.source != "text":
        return np.zeros(len(cells.texts), dtype=bool)
    own = cells.are_listed(column.missing.markers)
    strict = column.kind.is_real or column.kind is ColumnKind.BOOLEAN
    usual = cells.are_markers(MARKERS | WEAK_MARKERS if strict else MARKERS)
    levels = tuple(level_texts(column)) if column.levels and column.kind.has_levels else ()
    return own | (usual & ~cells.are_listed(levels))


Values: TypeAlias = npt.NDArray[Any] | list[Any] | pa.Array


def _read_real(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    wrong = ~are_numbers(cells.stripped)
    values = np.zeros(len(wrong)) if wrong.any() else numbers_of(cells.stripped)
    if column.kind is ColumnKind.INTEGER and not wrong.any():
        wrong = values != np.floor(values)
    if wrong.any():
        message = f"the kind is {column.kind}, but the cell is {{}}"
        whole = "a whole number" if column.kind is ColumnKind.INTEGER else "a number"
        problems.append(cells.problem(wrong, message, expected=whole))
    return values.astype(np.int64 if column.kind is ColumnKind.INTEGER else np.float64)


def _read_dates(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    date_format = column.datetime_format or "%Y-%m-%d"
    times = read_dates(cells.texts, date_format)
    if np.isnat(times).any():
        message = f"the date format is {date_format}, but the cell is {{}}"
        expected = "a date of that format"
        problems.append(cells.problem(np.isnat(times), message, expected=expected))
    return times


def _read_level_cells(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    if column.datetime_format is not None:  # a constant date
        return _read_dates(cells, column, problems)
    if not len(cells.texts) and column.levels and are_numeric(column.levels):
        return np.array(column.levels)[:0]
    return read_levels(column, cells.texts)


def _read_identifiers(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    if column.decimals == 0 and are_whole(cells.stripped).all():
        return numbers_of(cells.stripped).astype(np.int64)
    return cells.texts


_READERS: dict[ColumnKind, Callable[[Cells, Column, list[Problem]], Values]] = {
    ColumnKind.CONTINUOUS: _read_real,
    ColumnKind.INTEGER: _read_real,
    ColumnKind.DATETIME: _read_dates,
    ColumnKind.IDENTIFIER: _read_identifiers,
}


def placed_values(values: Values, codes: npt.NDArray[Any], nullable: bool) -> pd.Series[Any]:
    """values[codes], -1 standing for missing.

    Whole numbers are int64 or, where `nullable`, Int64; booleans bool or boolean.

    Shape: values (U,), codes (n,) in [-1, U).
    """
    missing = codes < 0
    if isinstance(values, pa.Array):
        texts = values.take(pa.array(codes, mask=missing))
        return pd.Series(texts.to_numpy(zero_copy_only=False), dtype=object)
    array = _array_of(values)
    if not len(array):
        array = np.zeros(1, dtype=array.dtype)
    taken = array[np.where(missing, 0, codes)]
    if array.dtype.kind in _BLANKS:
        taken[missing] = _BLANKS[array.dtype.kind]
        return pd.Series(taken, dtype="datetime64[ns]" if array.dtype.kind == "M" else array.dtype)
    if not nullable:
        return pd.Series(taken)
    taken[missing] = 0
    kind = pd.arrays.BooleanArray if array.dtype == bool else pd.arrays.IntegerArray
    return pd.Series(kind(taken, missing))


_BLANKS: dict[str, Any] = {"O": None, "f": np.nan, "M": np.datetime64("NaT")}
"""What a missing cell is in arrays that have a place for it, by their dtype's kind."""


def _array_of(values: npt.NDArray[Any] | list[Any]) -> npt.NDArray[Any]:
    """The values in the narrowest dtype that holds them all without a change."""
    if not isinstance(values, list):
        return values
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {bool, int, float}:
        return np.array(values)
    if kinds == {int, float}:
        return np.array(values, dtype=np.float64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# Values to cells


def _format_column(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    codes, found = pd.factorize(series)
    texts = _texts_of(found, column)
    marker = column.missing.markers[0] if column.missing.markers else ""
    cells = np.append(np.asarray(texts, dtype=object), marker)[codes]
    if series.dtype.kind == "f":
        _sign_zeros(cells, series.to_numpy(dtype=np.float64))
    return pd.Series(cells, index=series.index, dtype=object)


def _sign_zeros(cells: npt.NDArray[Any], values: npt.NDArray[np.float64]) -> None:
    """Gives each zero its own sign, in place: the distinct values do not tell -0.0 from 0.0."""
    zero, negative = values == 0, np.signbit(values)
    if not (zero & negative).any():
        return
    for row in np.flatnonzero(zero):
        cells[row] = "-" * int(negative[row]) + cells[row].removeprefix("-")


def _texts_of(found: Any, column: Column) -> list[str]:
    """How each distinct value is written."""
    if column.datetime_format is not None and len(found) and not isinstance(found[0], str):
        times = np.asarray(found, dtype="datetime64[ns]")
        texts = write_dates(times, column.datetime_format, column.decimals)
    elif pd.api.types.is_bool_dtype(found.dtype) and len(column.levels or ()) == 2:
        names = level_texts(column)
        return [names[int(value)] for value in found]
    elif pd.api.types.is_integer_dtype(found.dtype):
        texts = write_whole(np.asarray(found, dtype=np.int64), spelling_of(column))
    elif pd.api.types.is_float_dtype(found.dtype):
        texts = write_numbers(np.asarray(found, dtype=np.float64), spelling_of(column))
    else:
        return [_text_of(value, column) for value in found]
    return texts.to_pylist()  # type: ignore[no-any-return]


def _text_of(value: Any, column: Column) -> str:
    """How one value of a mixed column is written."""
    if isinstance(value, bool) and len(column.levels or ()) == 2:
        return level_texts(column)[int(value)]
    return str(value)
