"""Converts tables between text cells and typed values.

    parse_table: cells -> values                format_table: values -> cells as written

`format(parse(cells)) = cells` if each column has a consistent format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import TIMES, Codes, Mask
from gcvae.cells.data_frames import data_frame, with_columns
from gcvae.cells.distinct_cells import MARKERS, WEAK_MARKERS, Cells, cells_of, plain_cells
from gcvae.cells.from_arrow import plain_series
from gcvae.cells.levels import are_numeric, level_texts, read_levels
from gcvae.errors import Problem, TableError, UnknownColumnError
from gcvae.schema.columns import Column, TableSchema, with_draws
from gcvae.schema.kinds import ColumnKind, Outcomes
from gcvae.schema.suggestions import listed, unknown_names
from gcvae.spelling.date_text import has_offset, read_dates, write_dates
from gcvae.spelling.durations import are_durations
from gcvae.spelling.number_formats import example, number_text, read_number, written_in
from gcvae.spelling.number_text import spelling_of, write_numbers, write_whole


def parse_table(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Converts a table's cells, which are strings or typed, to typed values. Columns are in the
    schema's order, and dropped columns are left out.

    Dtypes are int64 for integers and bool for booleans (Int64 and boolean if cells may be missing),
    float64 for other numbers, datetime64[us] for dates, and numbers or str for levels. A missing
    cell is NA, NaN, NaT or None. Columns that the model does not learn may be absent. Levels that
    the schema does not list are kept.

    Raises:
        TableError: A modelled column is absent, or a cell is not valid for its column's kind.
        UnknownColumnError: The frame has a column that is not in the schema.
    """
    frame = data_frame(frame)
    check_columns(list(frame.columns), schema)
    problems: list[Problem] = []
    lines = frame.attrs.get("lines", frame.attrs.get("rows"))
    columns = {
        column.name: _parse_column(frame[column.name], column, lines, problems)
        for column in schema
        if column.name in frame and not column.drop
    }
    if problems:
        raise TableError(*problems)
    return pd.DataFrame(columns, index=frame.index)


def values_of(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Converts a frame of typed values of any dtypes to the dtypes of `parse_table`.

    Raises:
        TableError: A cell is not valid for its column's kind.
    """
    known = {column.name: column for column in schema}
    others = [
        name
        for name, dtype in frame.dtypes.items()
        if name in known and _is_typed(dtype, known[name])
    ]
    if not others:
        return frame
    problems: list[Problem] = []
    found = {name: _parse_column(frame[name], schema[name], None, problems) for name in others}
    if problems:
        raise TableError(*problems)
    return with_columns(frame, found)


_OWN_DTYPES = ("float64", "int64", "Int64", "bool", "boolean", TIMES, "object")


def _is_typed(dtype: Any, column: Column) -> bool:
    """Returns whether `values_of` has to convert a column with this dtype. It has to if no result
    of `parse_table` has the dtype, or if the schema stores it as that of the training frame."""
    return not column.drop and (str(dtype) not in _OWN_DTYPES or str(dtype) == column.dtype)


def in_column_zones(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Returns rows in which times without a zone get the time zone of their column's dtype in the
    schema, if it has one.

    Times without a zone are read as local times of this zone. In the hour that is repeated at the
    end of summer time, they are read as the earlier of the two possible times. In a column that the
    training table stores as strings with an offset from UTC, times without a zone are in UTC, as in
    generated rows.
    """
    rows = frame.copy(deep=False)
    for column in schema:
        name = column.name
        has_zone = column.has_times and "tz=" in (column.parquet_type or "")
        if name not in frame or column.zone is None or not has_zone:
            continue
        if not isinstance(frame[name].dtype, pd.DatetimeTZDtype) and not is_text(frame[name]):
            times = plain_cells(plain_series(frame[name]))
            if pd.api.types.is_datetime64_dtype(times.dtype):
                first = np.ones(len(times), dtype=bool)
                rows[name] = times.dt.tz_localize(
                    column.zone, ambiguous=first, nonexistent="shift_forward"
                )
    return rows


def format_table(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Converts typed values to cells as strings, in the formats of the schema. A missing value
    becomes the column's most frequent marker of missing cells. The frame may lack columns of the
    schema, and may have the column `draw`, in which `Synthesizer.impute` numbers imputations.

    Raises:
        UnknownColumnError: The frame has a column that is not in the schema.
        TableError: A cell is not valid for its column's kind.
    """
    schema = with_draws(schema)
    frame = values_of(frame, schema)
    written = {name: _written(frame[name], schema[name]) for name in frame.columns}
    columns = {
        name: np.array(texts, dtype=object)[codes] for name, (texts, codes) in written.items()
    }
    return pd.DataFrame(columns, index=frame.index, dtype=object)


def written_columns(frame: pd.DataFrame, schema: TableSchema) -> dict[str, Any]:
    """Converts values with the dtypes of `parse_table` to cells as strings, in the formats of the
    schema: a dictionary-encoded Arrow array for each column."""
    written = {str(name): _written(series, schema[str(name)]) for name, series in frame.items()}
    return {
        name: pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(texts, pa.string()))
        for name, (texts, codes) in written.items()
    }


# Cells to values


def check_columns(names: Sequence[Any], schema: TableSchema) -> None:
    """Checks that a table has all modelled columns, and only columns of the schema.

    Raises:
        TableError: A modelled column is absent.
        UnknownColumnError: A column is not in the schema.
    """
    refuse_unknown_columns(names, schema)
    absent = [column.name for column in schema if column.is_modelled and column.name not in names]
    if absent:
        expected = "every column that the model learned"
        raise TableError(
            *(Problem("the table lacks this column", None, None, name, expected) for name in absent)
        )


def with_absent_columns(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Returns the rows with absent modelled columns added. Their cells are missing: None in a table
    of strings, and the missing value of the column's dtype in a typed table.

    Raises:
        TableError: All modelled columns are absent.
        UnknownColumnError: A column is not in the schema.
    """
    refuse_unknown_columns(list(frame.columns), schema)
    modelled = [column for column in schema if column.is_modelled]
    absent = [column for column in modelled if column.name not in frame]
    if not absent:
        return frame
    if len(absent) == len(modelled):
        expected = listed(column.name for column in modelled)
        raise TableError(Problem("the table has none of the model's columns", expected=expected))
    is_typed = "parquet_types" in frame.attrs or not all(is_text(frame[name]) for name in frame)
    blank = blank_columns(absent, frame.index, are_typed=is_typed)
    whole = pd.concat([frame, blank], axis=1)
    whole.attrs = dict(frame.attrs)
    return whole


def blank_columns(columns: Sequence[Column], index: Any, *, are_typed: bool) -> pd.DataFrame:
    """Returns a frame with these columns in which all cells are missing.

    Args:
        columns: Columns of the frame.
        index: Index of the frame.
        are_typed: Whether columns of numbers, dates and booleans get the dtypes of `parse_table`.
            In columns of strings, and in all columns if False, the cells are None.
    """
    blank = pd.DataFrame(None, index, [column.name for column in columns], dtype=object)
    typed = [column for column in columns if are_typed and not column.holds_text]
    if typed:
        names = [column.name for column in typed]
        blank[names] = parse_table(blank[names], TableSchema(tuple(typed)))
        truths = [c.name for c in typed if c.kind.outcomes is Outcomes.TRUTH_VALUES]
        blank = blank.astype(dict.fromkeys(truths, "boolean"))  # missing objects count as text
    return blank


def is_text(series: pd.Series[Any]) -> bool:
    """Returns whether every cell is a string or missing."""
    return pd.api.types.infer_dtype(series, skipna=True) in ("string", "empty")


def refuse_unknown_columns(names: Sequence[Any], schema: TableSchema) -> None:
    """Checks that the schema contains all these column names.

    Raises:
        UnknownColumnError: A name is not in the schema.
    """
    known = set(schema.names)
    places = [(str(name), {"column": str(name)}) for name in names if name not in known]
    if places:
        unknown = unknown_names("the schema has no such column", places, schema.names)
        if len(places) == len(names) > 1 and all(one.suggestion is None for one in unknown):
            message = "the table has none of the schema's columns: is it another one?"
            raise UnknownColumnError(Problem(message, expected=listed(schema.names)))
        raise UnknownColumnError(
            *(replace(one, expected=f"{one.expected}; leave others out") for one in unknown)
        )


def _parse_column(
    series: pd.Series[Any], column: Column, lines: Any, problems: list[Problem]
) -> pd.Series[Any]:
    if is_parsed(series, column):
        check_finite(series, column, problems)
        return _without_markers(series, column)
    if column.has_times and pd.api.types.is_datetime64_dtype(series.dtype):
        return _without_markers(plain_series(series).astype(TIMES), column)
    series = durations_as_numbers(series, column)
    cells = cells_of(series, lines, column.datetime_format, column.number_format)
    if cells.source == "datetime" and column.has_times and column.zone is None:
        _refuse_zone(plain_cells(plain_series(series)), cells, problems)
    values, codes = read_column(cells, column, problems)
    nullable = is_nullable(codes, column)
    return placed_values(values, codes, nullable).set_axis(series.index)


def _refuse_zone(times: pd.Series[Any], cells: Cells, problems: list[Problem]) -> None:
    """Appends a problem to `problems` if a column, which has no time zone in the schema, contains
    times with one. `times` are its `cells` as a datetime series."""
    if isinstance(times.dtype, pd.DatetimeTZDtype) and times.notna().any():
        row = int(np.argmax(times.notna()))
        message = f"the time {times.iloc[row]} has a zone, but the column has none"
        expected = "times without a zone, as by series.dt.tz_localize(None)"
        problems.append(cells.problem_at(row, message, expected=expected))


def _without_markers(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Replaces dates that mean "missing" by missing cells; columns of other kinds are unchanged."""
    if not (column.has_times and column.missing.markers):
        return series
    markers = read_dates(pa.array(column.missing.markers, pa.string()), column.date_format)
    return series.mask(series.isin(markers[~np.isnat(markers)]))


def durations_as_numbers(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Converts durations to numbers in the column's unit; returns other columns unchanged."""
    if column.duration_unit is None:
        return series
    is_arrow = isinstance(series.dtype, pd.ArrowDtype) and series.dtype.kind == "m"
    held = pd.api.types.infer_dtype(series, skipna=True)
    if not is_arrow and held not in ("timedelta", "timedelta64"):
        return series
    durations = pd.to_timedelta(series.astype(object))
    return durations / pd.Timedelta(f"1{column.duration_unit}")


def check_finite(series: pd.Series[Any], column: Column, problems: list[Problem]) -> None:
    """Appends a problem to `problems` if a typed column has an infinite number."""
    if series.dtype.kind == "f" and np.isinf(series).any():
        problems.append(Problem("the column holds an infinite number", column=column.name))


def read_column(cells: Cells, column: Column, problems: list[Problem]) -> tuple[Values, Codes]:
    """Returns (U distinct values of a column; for each of n rows the index of its value, or -1 if
    it is missing). Cells that are not valid for the column's kind are added to `problems`. Shape:
    (U,), (n,)."""
    present = cells.select(~are_missing(cells, column))
    return READERS[column.kind](present, column, problems), present.codes


def is_nullable(codes: Codes, column: Column) -> bool:
    """Returns whether the column needs a dtype that can represent missing cells, which have code
    -1."""
    return column.missing.allowed or bool((codes < 0).any())


def is_parsed(series: pd.Series[Any], column: Column) -> bool:
    """Returns whether a series already has the dtype that `parse_table` gives to the column."""
    return column.kind.dtype is not None and series.dtype == own_dtype(column)


def own_dtype(column: Column) -> str:
    """Returns the name of the dtype that `parse_table` gives to a column."""
    if column.datetime_format is not None:
        return TIMES
    if column.kind.dtype is not None:
        return "Int64" if column.kind.is_whole and column.missing.allowed else column.kind.dtype
    values: list[Any] = list(column.typed_levels)
    if column.kind.outcomes is Outcomes.KEYS:
        values = [0] if column.decimals == 0 else [""]
    return str(placed_values(values, np.arange(0), column.missing.allowed).dtype)


def are_missing(cells: Cells, column: Column) -> Mask:
    """Returns a mask of the distinct cells that mean "missing": the markers in the column's schema,
    and common markers such as NA, except those that are levels of the column. Shape: (U,)."""
    own = cells.are_listed(column.missing.markers)
    if cells.source != "text":
        return own & (cells.source == "datetime")
    usual = cells.are_markers(MARKERS | WEAK_MARKERS if column.kind.is_strict else MARKERS)
    if usual.any() and column.levels and column.kind.has_levels:
        usual &= ~cells.are_listed(tuple(level_texts(column)))
    return own | usual


Values: TypeAlias = npt.NDArray[Any] | list[Any] | pa.Array


def _read_real(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    values = cells.numbers
    wrong = np.zeros(len(cells.texts), dtype=bool) if values is not None else ~cells.are_numbers
    values = np.zeros(len(wrong)) if values is None else values
    if column.kind.is_whole and not wrong.any():
        wrong = values != np.floor(values)
    if wrong.any():
        message = f"the kind is {column.kind}, but the cell is {{}}"
        whole = "a whole number" if column.kind.is_whole else "a number"
        if column.number_format is not None and cells.source == "text":
            whole = "a duration" if column.number_format.duration else whole
            whole += f" such as {example(column.number_format)}"
        problems.append(cells.problem(wrong, message, expected=whole))
    return values.astype(column.kind.dtype)


def _read_dates(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    date_format = column.date_format
    times = cells.times(date_format)
    if np.isnat(times).any():
        message = f"the date format is {date_format}, but the cell is {{}}"
        has_zone = cells.source == "text" and has_offset(date_format)
        expected = "a date of that format" + (", with an offset from UTC" if has_zone else "")
        problems.append(cells.problem(np.isnat(times), message, expected=expected))
    return times


def _read_level_cells(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    if column.datetime_format is not None:  # a constant date
        return _read_dates(cells, column, problems)
    if not len(cells.texts) and column.levels and are_numeric(column.levels):
        return np.array(column.levels)[:0]
    return read_levels(column, cells)


def _read_identifiers(cells: Cells, column: Column, problems: list[Problem]) -> Values:
    numbers = cells.numbers if column.decimals == 0 else None
    return cells.texts if numbers is None or numbers.dtype != np.int64 else numbers


READERS: dict[ColumnKind, Callable[[Cells, Column, list[Problem]], Values]] = {
    ColumnKind.CONTINUOUS: _read_real,
    ColumnKind.INTEGER: _read_real,
    ColumnKind.ORDINAL: _read_level_cells,
    ColumnKind.CATEGORICAL: _read_level_cells,
    ColumnKind.BOOLEAN: _read_level_cells,
    ColumnKind.DATETIME: _read_dates,
    ColumnKind.IDENTIFIER: _read_identifiers,
    ColumnKind.CONSTANT: _read_level_cells,
}
"""Functions that parse the distinct cells of a column, by kind."""


def _read_number_end(value: Any, column: Column) -> float:
    written = column.number_format
    if isinstance(value, str) and written is not None:
        value = read_number(value, written)
    elif isinstance(value, str) and column.duration_unit and are_durations(pa.array([value])).all():
        value = np.timedelta64(pd.Timedelta(value)) / np.timedelta64(1, column.duration_unit)  # type: ignore[call-overload]
    try:
        number = math.nan if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        such = "" if written is None else f", or a text such as {example(written)}"
        if written is None and column.duration_unit:
            such = f" of {column.duration_unit}, or a duration such as 01:30:00"
        raise ValueError(f"a number{such}")
    return number


def _read_date_end(value: Any, column: Column) -> np.datetime64:
    date_format = column.date_format
    time: np.datetime64 = read_dates(pa.array([str(value)]), date_format)[0]
    if np.isnat(time):
        raise ValueError(f"a date of the format {date_format}")
    return time


END_READERS: dict[ColumnKind, Callable[[Any, Column], Any]] = {
    ColumnKind.CONTINUOUS: _read_number_end,
    ColumnKind.INTEGER: _read_number_end,
    ColumnKind.ORDINAL: _read_number_end,  # if the levels are numbers
    ColumnKind.DATETIME: _read_date_end,
}
"""Functions that parse the ends of a range, from JSON or from text, by kind; kinds without an order
are absent. They raise ValueError with a description of the valid values."""


def placed_values(values: Values, codes: npt.NDArray[Any], nullable: bool) -> pd.Series[Any]:
    """Returns a column of n cells, given its U distinct values and the index of each row's value,
    `codes`; -1 means missing. If `nullable`, integers are Int64 and booleans boolean instead of
    int64 and bool. Shape: values (U,), codes (n,) -> (n,)."""
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
        return pd.Series(taken, dtype=TIMES if array.dtype.kind == "M" else array.dtype)
    if not nullable:
        return pd.Series(taken)
    taken[missing] = 0
    kind = pd.arrays.BooleanArray if array.dtype == bool else pd.arrays.IntegerArray
    return pd.Series(kind(taken, missing))


_BLANKS: dict[str, Any] = {"O": None, "f": np.nan, "M": np.datetime64("NaT")}
"""Missing value of arrays, by dtype kind."""


def _array_of(values: npt.NDArray[Any] | list[Any]) -> npt.NDArray[Any]:
    """Returns the values in the narrowest dtype that represents them exactly."""
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


def _written(series: pd.Series[Any], column: Column) -> tuple[list[str], Codes]:
    """Returns (distinct strings, the last one for missing cells; index of each cell's string)."""
    codes, found = pd.factorize(series)
    texts = [*_texts_of(found, column)]
    codes = codes.astype(np.int64)
    texts.append(column.missing.markers[0] if column.missing.markers else "")
    codes[codes < 0] = len(texts) - 1
    return texts, codes


def _texts_of(found: Any, column: Column) -> list[str]:
    if column.datetime_format is not None and len(found) and not isinstance(found[0], str):
        times = np.asarray(found, dtype=TIMES)
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
    if column.number_format is not None:
        texts = written_in(texts, column.number_format)
    return texts.to_pylist()  # type: ignore[no-any-return]


def _text_of(value: Any, column: Column) -> str:
    """Returns a value as a string, for a column with values of several types."""
    if isinstance(value, bool) and len(column.levels or ()) == 2:
        return level_texts(column)[int(value)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and column.number_format is not None:
        return number_text(value, column.number_format)
    return str(value)
