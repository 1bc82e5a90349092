"""Converts data frames of pandas, polars and Arrow to request bodies, and responses to frames.

The client imports pandas, polars or pyarrow only when a frame is used, and requires none of them.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, BinaryIO

from gcvae_client.errors import Document, MissingPackageError

Frame = Any
"""A data frame of pandas or polars, or an Arrow table."""
Formats = Callable[[], Mapping[str, str]]
"""Function that returns the date formats of a table by column, for `strftime`."""
_TEXTS_AT_ONCE = 65_536
_WITH_BLANKS = {"bool": "boolean"} | {
    f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""Nullable pandas dtype by Arrow type, for columns with missing cells, whose integers would
otherwise become floats."""


def is_frame(table: object) -> bool:
    """Returns whether the object is a pandas frame or supports the Arrow stream interface."""
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "to_parquet")


def table_bytes(frame: Frame) -> bytes:
    """Returns the content of a frame as a Parquet file, or as CSV if pyarrow is not installed.

    The index of a pandas frame is left out; a period is sent as its start time.

    Raises:
        ValueError: A column contains values of different types, which Parquet does not support.
        MissingPackageError: The frame is neither pandas nor polars, and pyarrow is not installed.
    """
    buffer = io.BytesIO()
    for name in _periods(frame):  # not supported by Parquet
        frame = frame.assign(**{name: frame[name].dt.to_timestamp()})
    if hasattr(frame, "write_parquet"):
        frame.write_parquet(buffer)
        return buffer.getvalue()
    if not _has("pyarrow") and hasattr(frame, "to_csv"):
        return str(frame.to_csv(index=False)).encode()
    arrow, parquet = _module("pyarrow"), _module("pyarrow.parquet")
    try:
        is_pandas = hasattr(frame, "to_parquet")
        table = arrow.Table.from_pandas(frame, preserve_index=False) if is_pandas else None
        parquet.write_table(arrow.table(frame) if table is None else table, buffer)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        reason = ": ".join(str(part) for part in error.args[::-1])
        message = f"the frame has no types that a table can keep: {reason}"
        raise ValueError(f"{message}; give such a column one type, as by astype(str)") from error
    return buffer.getvalue()


def table_format(like: Frame | None) -> str:
    """Returns the format in which to request a table: `parquet`, which preserves dtypes, or `json`
    if the result is a pandas frame and pyarrow is not installed. The result has the library of the
    frame `like`; None stands for pandas."""
    return "parquet" if _is_polars(like) or _has("pyarrow") else "json"


def read_frame(file: BinaryIO, format: str, like: Frame | None, formats: Formats) -> Frame:
    """Reads a table from a file as a data frame.

    Args:
        format: `csv`, `parquet` or `json`.
        like: Frame whose library is used for the result; None for pandas. A pandas result also gets
            the period dtypes of `like`, and its index if the number of rows is equal.
        formats: Function that returns the date formats by column, to parse dates in JSON.

    Raises:
        MissingPackageError: A package that the frame needs is not installed.
    """
    if _is_polars(like):
        polars = _module("polars")
        return polars.read_parquet(file) if format == "parquet" else polars.read_csv(file)
    if like is not None and not hasattr(like, "to_parquet"):
        reader = _module("pyarrow.parquet" if format == "parquet" else "pyarrow.csv")
        return reader.read_table(file) if format == "parquet" else reader.read_csv(file)
    pandas = _module("pandas")
    if format == "json":
        found = _of_documents(pandas, json.load(file), formats)
    elif format == "parquet":
        found = _of_columns(pandas, _module("pyarrow.parquet").ParquetFile(file))
    else:
        found = pandas.read_csv(file)
    for name, dtype in _periods(like).items():
        if name in found and found[name].dtype.kind == "M":
            found[name] = found[name].dt.to_period(dtype.freq)
    if like is not None and len(like) == len(found):
        found.index = like.index
    return found


def _periods(frame: Frame | None) -> dict[str, Any]:
    """Returns the dtype of each period column of a pandas frame, by name; {} for other frames."""
    dtypes = frame.dtypes.items() if frame is not None and hasattr(frame, "to_parquet") else ()
    return {name: dtype for name, dtype in dtypes if str(dtype).startswith("period[")}


def require_frames() -> None:
    """Checks that pandas is installed, before a table is requested from the service.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    _module("pandas")


def row_documents(rows: Frame | Sequence[Mapping[str, Any]], formats: Formats) -> list[Document]:
    """Returns rows as dictionaries of JSON values, with dates as strings.

    Args:
        rows: A data frame, or a list of rows as dictionaries.
        formats: Function that returns the date formats of the table by column.
    """
    found: Any = rows
    if hasattr(rows, "to_dicts"):
        found = found.to_dicts()
    elif hasattr(rows, "to_pylist"):
        found = found.to_pylist()
    elif hasattr(rows, "to_parquet"):
        found = found.astype(object).where(found.notna(), None).to_dict("records")
    return [
        {str(name): plain(cell, str(name), formats) for name, cell in row.items()} for row in found
    ]


def condition(wanted: Any, name: str, formats: Formats) -> Any:
    """Returns a condition on a column as JSON. A pandas period becomes a range of times.

    Args:
        wanted: The condition: a value, a list of values, {"min": ..., "max": ...}, or None for a
            missing cell.
        name: Name of the column.
        formats: Function that returns the date formats of the table by column.
    """
    if isinstance(wanted, Mapping):
        ends = {"min": "start_time", "max": "end_time"}
        parts = {key: getattr(part, ends.get(key, ""), part) for key, part in wanted.items()}
        return plain(parts, name, formats)
    if hasattr(wanted, "start_time"):
        ends = {"min": wanted.start_time, "max": wanted.end_time}
        return plain(ends, name, formats)
    return plain(wanted, name, formats)


def plain(value: Any, name: str, formats: Formats) -> Any:
    """Converts a Python or NumPy value of a column to a JSON value; dates become strings.

    NaN and the missing values of pandas become None.

    Args:
        value: A cell, or a list or dictionary of cells.
        name: Name of the column.
        formats: Function that returns the date formats of the table by column.
    """
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(part, name, formats) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part, name, formats) for part in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' missing value
        return None
    if hasattr(value, "strftime"):
        form = formats().get(name, "%Y-%m-%d")
        if isinstance(value, datetime) and (offset := _OFFSET.search(form)):
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            value = moment.astimezone(_zone(offset[1]))
        if getattr(value, "year", 1000) < 1000:  # strftime writes these years without leading zeros
            form = form.replace("%Y", f"{value.year:04d}")
        return value.strftime(form)
    if hasattr(value, "__float__"):
        return None if math.isnan(float(value)) else float(value)
    return str(value)


def date_formats(schema: Document) -> dict[str, str]:
    """Returns the date format of each date column in a schema (JSON), by name."""
    columns = schema["columns"]
    return {c["name"]: c["datetime_format"] for c in columns if c.get("datetime_format")}


_OFFSET = re.compile(r"%[HMISfp] ?([+-]\d\d:?(?:\d\d)?|Z|UTC|GMT)$")
"""Offset from UTC at the end of a date format. Data frames contain times with an offset in UTC."""


def _zone(offset: str) -> timezone:
    """Returns the time zone of an offset such as +02:00, +0200, +02 or Z."""
    digits = re.sub("[^0-9]", "", offset).ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-ahead if offset[0] == "-" else ahead)


def _of_columns(pandas: Any, file: Any) -> Frame:
    """Reads a Parquet file column by column, to save memory."""
    names = file.schema_arrow.names
    columns = {name: _series(pandas, file.read([name]).column(0)) for name in names}
    return pandas.DataFrame(columns, columns=names, copy=False)


def _series(pandas: Any, column: Any) -> Any:
    """Converts an Arrow column to a writable pandas column."""
    if column.null_count and (dtype := _WITH_BLANKS.get(str(column.type))):
        return column.to_pandas(types_mapper=lambda _: pandas.api.types.pandas_dtype(dtype))
    if str(column.type) not in ("string", "large_string"):
        return column.to_pandas().copy()
    # Arrow's conversion keeps a hash table of all texts, which is smaller for slices of the column.
    starts = range(0, max(1, len(column)), _TEXTS_AT_ONCE)
    parts = [column.slice(start, _TEXTS_AT_ONCE).to_pandas() for start in starts]
    return pandas.concat(parts, ignore_index=True)


def _of_documents(pandas: Any, rows: list[Document], formats: Formats) -> Frame:
    frame = pandas.DataFrame(rows)
    cells = pandas.DataFrame(rows, dtype=object)
    for name in frame.columns[frame.dtypes == "float64"]:
        if pandas.api.types.infer_dtype(cells[name], skipna=True) == "integer":
            frame[name] = cells[name].astype(_WITH_BLANKS["int64"])
    for name, format in formats().items():
        if name in frame:
            form, offset = format.replace("%-", "%"), _OFFSET.search(format)
            dates = [None if pandas.isna(x) else datetime.strptime(x, form) for x in frame[name]]
            times = pandas.Series(dates, frame.index, dtype="datetime64[us]")
            frame[name] = times - _zone(offset[1]).utcoffset(None) if offset else times
    return frame


def _is_polars(frame: Frame | None) -> bool:
    return type(frame).__module__.split(".")[0] == "polars"


def _has(package: str) -> bool:
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def _module(name: str) -> Any:
    try:
        return sys.modules.get(name) or importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise MissingPackageError(package) from error
