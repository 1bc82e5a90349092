"""Represents a column by its distinct cells (strings) and the index of each row's cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import TIMES, Codes, Mask, Numbers
from gcvae.cells.from_arrow import plain_series
from gcvae.errors import Problem, TableError
from gcvae.spelling.date_text import (
    DAY_OF_TIMES,
    Dates,
    infer_format,
    read_dates,
    typed_format,
    write_dates,
)
from gcvae.spelling.forms import NumberFormat
from gcvae.spelling.number_formats import numerals, written_in
from gcvae.spelling.number_text import Spelling, are_numbers, numbers_of, write_numbers

# Texts that mean "missing" in any column.
MARKERS = frozenset(
    ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "null", "Null", "#N/A", "<NA>",
     "NaT"]
)  # fmt: skip
# Texts that also mean "missing" if all other cells are numbers, dates or booleans.
WEAK_MARKERS = frozenset(
    ["None", "none", "NONE", "na", "Na", "-", "--", ".", "nil", "*", "#NA", "#NULL!", "#DIV/0!"]
)
# Words that also mean "missing" if the other cells are many numbers, dates or durations.
MARKER_WORDS = frozenset(
    spelled
    for word in ("n.a.", "n.a", "k.a.", "unknown", "missing", "not available", "undefined")
    for spelled in (word, word.upper(), word.capitalize(), word.title())
)

_LOOKED_AT_TEXTS = 100
"""Number of cells that are checked first; they suffice to see that a column of words has no
numbers."""

Source = str  # "text", "integer", "float", "boolean" or "datetime"


@dataclass(frozen=True)
class TextColumn:
    """Column of n strings in an Arrow array, which needs no Python object for each string; null
    marks a missing cell. Shape: texts (n,)."""

    name: str
    texts: pa.ChunkedArray

    @property
    def index(self) -> pd.RangeIndex:
        """Row labels 0 to n - 1, like the default index of a pandas series."""
        return pd.RangeIndex(len(self.texts))


@dataclass(frozen=True)
class RowNumbers:
    """Position of a chunk of rows in a file without text lines, such as Parquet.

    Attributes:
        first: Row number, in the file, of the row with index label 0. The row with index label i is
            row `first` + i of the file.
    """

    first: int


@dataclass(frozen=True)
class Cells:
    """One column: its distinct cells as strings, and the index of each row's cell among them.

    Shape: texts (U,) for U distinct cells, codes (n,) for n rows. Codes are in [-1, U); -1 marks a
    row without a value (None, NaN or NaT).

    Attributes:
        source: Type of the cells before conversion to strings: "text", "integer", "float",
            "boolean" or "datetime".
        texts: Distinct cells as strings, in order of first appearance.
        codes: Index in `texts` of each row's cell.
        lines: For a text file, the line number of each row by index label; for a chunk of another
            file, its RowNumbers; None for data frames.
        date_format: Format in which `texts` contains the cells of a datetime dtype.
        labels: Index labels of the n rows.
        number_format: Separators, signs and units of the numbers in a text column; None if numbers
            are plain or have only a decimal point.
        has_objects: Whether a text column contained objects that are not strings, such as numbers.
        is_cut: Whether times were truncated to microseconds.
    """

    name: str
    source: Source
    texts: pa.Array
    codes: Codes
    lines: Any = None
    date_format: str | None = None
    labels: Any = None
    number_format: NumberFormat | None = None
    has_objects: bool = False
    is_cut: bool = False

    @cached_property
    def counts(self) -> Codes:
        """Number of rows that contain each of the U distinct cells. Shape: (U,)."""
        present = self.codes[self.codes >= 0]
        return np.bincount(present, minlength=len(self.texts)).astype(np.int64)

    @cached_property
    def n_blank(self) -> int:
        """Number of rows without a value, which have code -1."""
        return len(self.codes) - int(self.counts.sum())

    @cached_property
    def stripped(self) -> pa.Array:
        """The U distinct cells, as strings without leading and trailing spaces. Shape: (U,)."""
        trimmed = pc.utf8_trim_whitespace(self.texts)
        return self.texts if trimmed.equals(self.texts) else trimmed

    @cached_property
    def numerals(self) -> pa.Array:
        """The U distinct cells as plain decimals, such as "1234.50" for "1.234,50 €". A cell that
        does not match the number format becomes an empty string. Without a number format, the cells
        are `stripped`. Shape: (U,)."""
        if self.number_format is None or self.source != "text":
            return self.stripped
        return numerals(self.stripped, self.number_format)

    @cached_property
    def are_numbers(self) -> Mask:
        """Mask of the distinct cells that are numbers. Shape: (U,)."""
        return are_numbers(self.numerals)

    @cached_property
    def all_numbers(self) -> bool:
        """Whether every distinct cell is a number."""
        start = self.numerals.slice(0, _LOOKED_AT_TEXTS)
        return bool(are_numbers(start).all() and self.are_numbers.all())

    @cached_property
    def as_numerals_are_written(self) -> pa.Array:
        """The U distinct numbers, written anew in the column's number format. Shape: (U,)."""
        if self.number_format is None or self.source != "text":
            return self.stripped
        return written_in(self.numerals, self.number_format)

    @cached_property
    def numbers(self) -> npt.NDArray[Any] | None:
        """Value of each distinct cell, int64 or float64; None if any is not a number. Shape:
        (U,)."""
        return numbers_of(self.numerals) if self.all_numbers else None

    @cached_property
    def inferred_date_format(self) -> tuple[str, int] | None:
        """(Date format of all distinct cells, number of decimals of the seconds); None if they have
        no common format."""
        return infer_format(self.texts)

    def times(self, date_format: str) -> Dates:
        """Returns the time of each distinct cell in the format, or NaT; cached by format. Shape:
        (U,)."""
        if date_format not in self._times:
            self._times[date_format] = read_dates(self.texts, date_format)
        return self._times[date_format]

    @cached_property
    def _times(self) -> dict[str, Dates]:
        return {}

    def are_markers(self, markers: frozenset[str]) -> Mask:
        """Returns a mask of the distinct cells that equal one of the strings, apart from spaces
        around them. Shape: (U,)."""
        return _are_in(self.stripped, sorted(markers))

    def are_listed(self, markers: tuple[str, ...]) -> Mask:
        """Returns a mask of the distinct cells that equal one of the strings exactly. Shape:
        (U,)."""
        return _are_in(self.texts, list(markers))

    def select(self, chosen: Mask) -> Cells:
        """Returns the column with only some of its U distinct cells. A row whose cell is not kept
        counts as a row without a value (code -1).

        Args:
            chosen: Mask of the distinct cells to keep. Shape: (U,).
        """
        if chosen.all():
            return self
        renumbered = np.where(chosen, np.cumsum(chosen) - 1, -1)
        codes = np.append(renumbered, -1)[self.codes]
        texts = self.texts.filter(pa.array(chosen))
        return replace(self, texts=texts, codes=codes)

    def problem(self, wrong: Mask, message: str, **place: Any) -> Problem:
        """Returns a Problem that locates the first row whose cell is in the mask `wrong`, of shape
        (U,).

        Args:
            message: Message, in which `{}` is replaced by the cell.
            **place: Further fields of the Problem, such as `expected`.
        """
        row = int(np.argmax(np.append(wrong, False)[self.codes]))
        text = self.texts[int(self.codes[row])].as_py()
        return self.problem_at(row, message.format(shortened(text)), **place)

    def problem_at(self, row: int, message: str, **place: Any) -> Problem:
        """Returns a Problem that locates a row by its line in a text file, or else by its row
        number."""
        line, position = self._line_or_position(row)
        return Problem(message, line=line, row=position, column=self.name, **place)

    def row_location(self, row: int) -> str:
        """Returns the location of a row for messages, such as "line 7" in a text file and "row 5"
        in other tables."""
        line, position = self._line_or_position(row)
        return f"row {position}" if line is None else f"line {line}"

    def _line_or_position(self, row: int) -> tuple[int | None, int | None]:
        if isinstance(self.lines, RowNumbers):
            return None, self.lines.first + int(self.labels[row])
        return (None, row) if self.lines is None else (self.lines[self.labels[row]], None)


def _are_in(texts: pa.Array, known: list[str]) -> Mask:
    return np.asarray(pc.is_in(texts, pa.array(known, texts.type)), dtype=bool)


def shortened(text: str) -> str:
    """Returns a string in quotes for messages, truncated to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def cells_of(
    column: pd.Series[Any] | TextColumn,
    lines: Any = None,
    date_format: str | None = None,
    number_format: NumberFormat | None = None,
) -> Cells:
    """Returns the distinct cells of a column of any supported dtype.

    Args:
        lines: Line numbers of the rows of a text file, or RowNumbers of a chunk of another file;
            None for data frames.
        date_format: Format in which cells of a datetime dtype are written; None for ISO 8601.
        number_format: Format of the numbers in text cells; None if the numbers are plain or their
            format is unknown.

    Raises:
        TableError: The column contains infinite numbers, integers beyond 64 bits, or objects such
            as lists; or some of its times have a time zone and others have none.
    """
    if isinstance(column, TextColumn):
        numbering, texts = _distinct_texts(column)
        return Cells(
            column.name, "text", texts, numbering, lines, date_format, column.index, number_format
        )
    series = plain_cells(plain_series(column))
    name, dtype = str(series.name), series.dtype
    is_cut = has_objects = False
    if pd.api.types.is_bool_dtype(dtype):
        source, (codes, found) = "boolean", pd.factorize(series)
        texts = pa.array(["True" if x else "False" for x in found], pa.string())
    elif pd.api.types.is_integer_dtype(dtype):
        source, (codes, found) = "integer", pd.factorize(series)
        texts = pa.array(np.asarray(found)).cast(pa.string())
    elif pd.api.types.is_float_dtype(dtype):
        source, (codes, found) = "float", pd.factorize(series)
        texts = _float_texts(np.asarray(found, dtype=np.float64), name)
    elif pd.api.types.is_datetime64_any_dtype(dtype):
        source, (codes, found) = "datetime", pd.factorize(series.dt.as_unit("us"))
        is_cut = bool((series.dt.nanosecond > 0).any())
        times = np.asarray(found, dtype=TIMES)
        full_format, digits = typed_format(times, has_zone=isinstance(dtype, pd.DatetimeTZDtype))
        if isinstance(column.dtype, pd.PeriodDtype):
            full_format = _PERIOD_FORMATS.get(column.dtype.name, full_format)
        date_format = full_format if date_format is None else date_format
        texts = write_dates(times, date_format, digits) if len(times) else pa.array([], pa.string())
    else:
        source, (codes, found) = "text", _distinct(series, name)
        texts = _object_texts(found, name, number_format)
        has_objects = pd.api.types.infer_dtype(found, skipna=True) not in ("string", "empty")
    numbering = np.asarray(codes, dtype=np.int64)
    place = lines, date_format, column.index
    return Cells(name, source, texts, numbering, *place, number_format, has_objects, is_cut)


def _distinct_texts(column: TextColumn) -> tuple[Codes, pa.Array]:
    """Returns (index of each of n rows' string, -1 if missing; the U distinct strings, in order of
    appearance). Shape: (n,), (U,).

    Raises:
        TableError: The distinct strings are too long for one array.
    """
    try:
        encoded = column.texts.dictionary_encode().chunks
    except (pa.ArrowCapacityError, pa.ArrowInvalid):
        message = "the distinct texts of the column take more than 2 GiB"
        expected = "shorter texts, or a table without the column"
        raise TableError(Problem(message, column=column.name, expected=expected)) from None
    codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy() for chunk in encoded])
    return codes.astype(np.int64), encoded[-1].dictionary


_PERIOD_FORMATS = {
    "period[Y-DEC]": "%Y",
    "period[M]": "%Y-%m",
    "period[h]": "%Y-%m-%d %H:00",
    "period[min]": "%Y-%m-%d %H:%M",
}
"""Date formats of pandas periods other than days; periods of any other length are written as their
first moment."""


def plain_cells(series: Any) -> Any:
    """Converts a column of categories, periods, sparse values, durations or Python objects to a
    dtype of numbers, booleans or times. A column of other objects, such as strings, keeps dtype
    object."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if isinstance(series.dtype, pd.PeriodDtype):
        starts = series.dt.asfreq("us", "start").array.asi8  # to_timestamp counts in nanoseconds
        series = pd.Series(starts.view(TIMES), series.index, name=series.name)
    if isinstance(series.dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    if series.dtype == object:
        held = pd.api.types.infer_dtype(series, skipna=True)
        series = series.mask(series.isna(), None)  # pd.NA cannot be converted to float
        if held in _HELD_DTYPES:
            try:
                return series.astype(_HELD_DTYPES[held])
            except OverflowError:
                message = "the column has whole numbers of more than 64 bits"
                expected = "smaller numbers, floating-point numbers, or text"
                problem = Problem(message, column=str(series.name), expected=expected)
                raise TableError(problem) from None
        if held in ("date", "datetime", "datetime64"):
            series = _times(series)
        elif held == "time":
            day = pd.Timestamp(DAY_OF_TIMES).date()
            times = series.map(lambda time: datetime.combine(day, time), na_action="ignore")
            series = times.astype(TIMES)
        elif held in ("timedelta", "timedelta64"):
            series = pd.to_timedelta(series)
        elif held == "decimal":
            series = series.astype("float64")
    if pd.api.types.is_timedelta64_dtype(series.dtype):  # in units of the dtype
        blank = series.isna().to_numpy()
        counts = pd.arrays.IntegerArray(series.to_numpy().astype(np.int64), blank)
        return pd.Series(counts, index=series.index, name=series.name)
    return series


def _times(series: Any) -> Any:
    zones = {getattr(date, "tzinfo", None) for date in series.dropna()}
    if None in zones and len(zones) > 1:
        message = "some times of the column have a zone, and some have none"
        expected = "a zone for all or for none, as by series.map(lambda time: time.astimezone())"
        raise TableError(Problem(message, column=str(series.name), expected=expected))
    return series.astype(TIMES if None in zones else "datetime64[us, UTC]")


_HELD_DTYPES = {
    "integer": "Int64",
    "floating": "float64",
    "mixed-integer-float": "float64",
    "boolean": "boolean",
}


def _distinct(series: Any, name: str) -> tuple[Any, Any]:
    try:
        return pd.factorize(series)
    except TypeError:
        raise TableError(
            Problem(
                "the column holds lists or other objects that cannot be cells",
                column=name,
                expected="text, numbers, booleans or dates",
            )
        ) from None


def _float_texts(values: Numbers, name: str) -> pa.Array:
    if not np.isfinite(values).all():
        raise TableError(
            Problem("the column holds an infinite number", column=name, expected="finite numbers")
        )
    return write_numbers(values, Spelling())


def _object_texts(found: Any, name: str, number_format: NumberFormat | None) -> pa.Array:
    """Returns objects as strings; numbers are written in the column's number format."""
    try:
        return pa.array(np.asarray(found, dtype=object), pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = pa.array([str(cell) for cell in found], pa.string())
        if number_format is None:
            return texts
        are_texts = pa.array([isinstance(cell, str) for cell in found])
        written = pc.coalesce(written_in(texts, number_format), texts)
        return pc.if_else(are_texts, texts, written)
    except UnicodeError:
        raise TableError(Problem("a cell cannot be written as text", column=name)) from None
