"""The tables in memory that users have, as pandas data frames, and the way back.

Whatever offers Arrow's PyCapsule interface is read: tables of pyarrow, polars, DuckDB and others.
Its columns keep their Arrow types (`pandas.ArrowDtype`). What comes out is of the kind that went
in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import pandas as pd
import pyarrow as pa

from gcvae.errors import EmptyTableError, MissingPackageError, Problem, SettingError, TableError

_EXPECTED = "a data frame (pandas, polars, Arrow), or the path of a .csv, .csv.gz or .parquet file"
_FLAT = 'one name each: frame.columns = ["_".join(map(str, names)) for names in frame.columns]'


class FrameKind(StrEnum):
    """Whose a data frame is."""

    PANDAS = "pandas"
    POLARS = "polars"
    ARROW = "arrow"


def kind_of(table: object) -> FrameKind:
    """Whose frame it is; of files and of what offers Arrow's interface pandas' and Arrow's."""
    if _offers_arrow(table) and not isinstance(table, pd.DataFrame):
        package = type(table).__module__.partition(".")[0]
        return FrameKind.POLARS if package == "polars" else FrameKind.ARROW
    return FrameKind.PANDAS


def frame_kind(name: object) -> FrameKind:
    """The kind of this name.

    Raises:
        SettingError: There is none.
    """
    try:
        return FrameKind(str(name))
    except ValueError:
        names = ", ".join(FrameKind)
        raise SettingError(f"frames is {name!r}; there are {names}") from None


def of_kind(frame: pd.DataFrame, kind: FrameKind) -> Any:
    """The rows as a frame of this kind. Only pandas' keeps `attrs`.

    Raises:
        MissingPackageError: Its package is not installed.
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
    """Blocks that answer a table row by row, with the index of its rows.

    Of files, polars and Arrow the rows are numbered from 0 through all blocks.

    Args:
        blocks: In the order of the table's rows.
        table: As it was given.
        copies: Rows in the blocks for each row of the table, one after the other.
        first_row: Position in the table of the first row that is answered.
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
    """The table as a data frame; one of pandas is passed on.

    Raises:
        TableError: It is no table, or its columns have not one text each as their name.
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


def refuse_empty(names: Sequence[str], n_rows: int) -> None:
    """Lets tables with cells pass.

    Raises:
        TableError: There are no columns, no rows, or neither.
    """
    n_columns = len(names)
    expected = "at least one column and one row of cells"
    if not n_columns and not n_rows:
        raise TableError(Problem("the table has neither columns nor rows", expected=expected))
    if not n_columns:
        message = f"the table has no columns (rows: {n_rows})"
        raise TableError(Problem(message, expected=expected))
    if not n_rows:
        message = f"the table has no rows (columns: {n_columns})"
        error = EmptyTableError(Problem(message, expected=expected))
        error.names = tuple(names)
        raise error


def _shown(table: object) -> str:
    """What kind of thing it is; its content is nobody's business."""
    if table is None:
        return "None"
    kind = type(table)
    own = kind.__module__ in ("builtins", "pathlib")
    name = kind.__name__ if own else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _wanted(table: object) -> str:
    """What would be right, and how to come by it."""
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
    except (pa.ArrowInvalid, TypeError, ValueError):  # a column alone, for one
        message = f"a table is expected, but this is {_shown(table)} without columns"
        raise TableError(Problem(message, expected=_EXPECTED)) from None
    fields = [field.with_type(_of_texts(field.type)).remove_metadata() for field in arrow.schema]
    columns = [column.cast(field.type) for column, field in zip(arrow.columns, fields, strict=True)]
    plain = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    _check_names(pd.DataFrame(columns=plain.column_names))
    frame: pd.DataFrame = plain.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return frame


def _of_texts(kind: Any) -> Any:
    """The type with texts as pandas can take rows of them."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _of_texts(kind.value_type), kind.ordered)
    return pa.string() if pa.types.is_string_view(kind) else kind
