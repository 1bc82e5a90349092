"""Converts users' tables to pandas data frames, and results back to frames of the user's library.

Every object with Arrow's PyCapsule interface is supported: tables of pyarrow, polars, DuckDB and
other libraries. The columns of the converted frame keep their Arrow types (`pandas.ArrowDtype`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import pandas as pd
import pyarrow as pa

from gcvae.errors import EmptyTableError, MissingPackageError, Problem, SettingError, TableError

_EXPECTED = "a data frame (pandas, polars, Arrow), or the path of a .csv, .csv.gz or .parquet file"
_FLAT = 'one name each: frame.columns = ["_".join(map(str, names)) for names in frame.columns]'


class FrameKind(StrEnum):
    """Library of the data frames that a user passes and gets back."""

    PANDAS = "pandas"
    POLARS = "polars"
    ARROW = "arrow"


def kind_of(table: object) -> FrameKind:
    """Returns the library of a data frame; PANDAS for paths of files."""
    if _offers_arrow(table) and not isinstance(table, pd.DataFrame):
        package = type(table).__module__.partition(".")[0]
        return FrameKind.POLARS if package == "polars" else FrameKind.ARROW
    return FrameKind.PANDAS


def frame_kind(name: object) -> FrameKind:
    """Returns the frame kind with this name: "pandas", "polars" or "arrow".

    Raises:
        SettingError: The name is unknown.
    """
    try:
        return FrameKind(str(name))
    except ValueError:
        names = ", ".join(FrameKind)
        raise SettingError(f"frames is {name!r}; there are {names}") from None


def of_kind(frame: pd.DataFrame, kind: FrameKind) -> Any:
    """Converts a pandas frame to a frame of the given library. Only pandas frames keep `attrs`.

    Raises:
        MissingPackageError: `kind` is POLARS, but polars is not installed.
    """
    if kind is FrameKind.PANDAS:
        return frame
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    if kind is FrameKind.ARROW:
        return table
    try:
        import polars
    except ImportError as error:
        raise MissingPackageError("frames of polars", "polars", "polars") from error
    return polars.from_arrow(table)


def with_index_of(
    blocks: Iterable[pd.DataFrame], table: object, copies: int = 1, first_row: int = 0
) -> Iterator[pd.DataFrame]:
    """Yields the blocks of a result, each with the index labels of its rows in the table. If the
    table is not a pandas frame, rows are numbered from 0.

    Args:
        blocks: Consecutive blocks of the result, in the order of the table's rows.
        table: The user's table: a pandas frame, whose index is used, or any other object.
        copies: Number of consecutive result rows for each row of the table.
        first_row: Index of the first table row that has a result, counted from 0.
    """
    for block in blocks:
        end = first_row + len(block) // copies
        if isinstance(table, pd.DataFrame):
            block.index = table.index[first_row:end].repeat(copies)
        else:
            block.index = pd.RangeIndex(first_row * copies, end * copies)
        first_row = end
        yield block


def data_frame(table: object) -> pd.DataFrame:
    """Converts a table to a pandas data frame; pandas frames are returned unchanged.

    Raises:
        TableError: `table` is not a table, or its column names are not distinct strings.
    """
    if isinstance(table, pd.DataFrame):
        _check_names(table)
        return table
    if not isinstance(table, pd.Series) and _offers_arrow(table):
        return _of_arrow(table)
    raise TableError(
        Problem(f"a table is expected, but this is {_shown(table)}", expected=_wanted(table))
    )


def _offers_arrow(table: object) -> bool:
    return any(hasattr(table, f"__arrow_c_{kind}__") for kind in ("stream", "array"))


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Returns a copy of the frame with these columns added or replaced. Unlike `DataFrame.assign`,
    it accepts a column called self."""
    whole = frame.copy()
    for name, cells in columns.items():
        whole[name] = cells
    return whole


def refuse_empty(names: Sequence[str], n_rows: int) -> None:
    """Checks that a table has columns and rows.

    Raises:
        EmptyTableError: The table has columns but no rows.
        TableError: The table has no columns.
    """
    expected = "at least one column and one row of cells"
    if not names:
        message = f"the table has no columns (rows: {n_rows})"
        message = message if n_rows else "the table has neither columns nor rows"
        raise TableError(Problem(message, expected=expected))
    if not n_rows:
        message = f"the table has no rows (columns: {len(names)})"
        error = EmptyTableError(Problem(message, expected=expected))
        error.names = tuple(names)
        raise error


def _shown(table: object) -> str:
    """Returns a description of the object's type, without its content."""
    if table is None:
        return "None"
    kind = type(table)
    own = kind.__module__ in ("builtins", "pathlib")
    name = kind.__name__ if own else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _wanted(table: object) -> str:
    """Returns a description of valid input for errors, with a way to convert this object if there
    is one."""
    if isinstance(table, pd.Series):
        return f"{_EXPECTED}; series.to_frame() makes one"
    if isinstance(table, bytes):
        return f"{_EXPECTED}; read_table(...) reads bytes"
    if hasattr(table, "collect"):
        return f"{_EXPECTED}; .collect() may make one"
    if isinstance(table, list | tuple | dict) or hasattr(table, "__array__"):
        return f"{_EXPECTED}; pandas.DataFrame(...) makes one"
    return _EXPECTED


def _check_names(frame: pd.DataFrame) -> None:
    if isinstance(frame.columns, pd.MultiIndex):
        message = f"the columns have {frame.columns.nlevels} names each (a MultiIndex)"
        raise TableError(Problem(message, expected=_FLAT))
    for name, n in Counter(frame.columns).items():
        if not isinstance(name, str):
            message = f"the column name {name!r} is no text"
            raise TableError(Problem(message, expected="text; frame.rename(columns=str) makes it"))
        if n > 1:
            raise TableError(Problem("the name is used twice", column=name, expected="one column"))


def _of_arrow(table: Any) -> pd.DataFrame:
    try:
        arrow = pa.table(table)
    except (pa.ArrowInvalid, TypeError, ValueError):  # for example a single column
        message = f"a table is expected, but this is {_shown(table)} without columns"
        raise TableError(Problem(message, expected=_EXPECTED)) from None
    fields = [field.with_type(_of_texts(field.type)).remove_metadata() for field in arrow.schema]
    columns = [column.cast(field.type) for column, field in zip(arrow.columns, fields, strict=True)]
    plain = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    _check_names(pd.DataFrame(columns=plain.column_names))
    frame: pd.DataFrame = plain.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return frame


def _of_texts(kind: Any) -> Any:
    """Returns the Arrow type `kind` with the type string in place of string view, of which pandas
    cannot select rows."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _of_texts(kind.value_type), kind.ordered)
    return pa.string() if pa.types.is_string_view(kind) else kind
