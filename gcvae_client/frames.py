"""Data frames: those of pandas, polars and Arrow go to the service, and its tables become frames.

None of these packages is needed by the client, and none is imported before a frame is asked for.
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
"""A frame of pandas, polars or Arrow."""
Formats = Callable[[], Mapping[str, str]]
"""Asks how a table writes its dates, by column."""
_TEXTS_AT_ONCE = 65_536
_WITH_BLANKS = {"bool": "boolean"} | {
    f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""By Arrow's type the dtype of pandas that has blanks; without it whole numbers come as floats."""


def is_frame(table: object) -> bool:
    """Whether this is a data frame: one of pandas, or what hands itself out as an Arrow table."""
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "to_parquet")


def table_bytes(frame: Frame) -> bytes:
    """The frame as Parquet, which keeps its types; as CSV where pyarrow is not installed.

    The index of a frame of pandas is no column of it, and is left out; periods are sent as their
    first moments.

    Raises:
        ValueError: a column mixes types, so that it has none in Parquet.
        MissingPackageError: it is a frame of neither pandas nor polars, and there is no pyarrow.
    """
    buffer = io.BytesIO()
    for name in _periods(frame):  # which Parquet has not
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
    """The format in which a table keeps most of its types on the way to a frame."""
    return "parquet" if _is_polars(like) or _has("pyarrow") else "json"


def read_frame(file: BinaryIO, format: str, like: Frame | None, formats: Formats) -> Frame:
    """The table in a file as a frame: of the kind of `like`, else of pandas.

    A frame of pandas has the periods of `like`, and its index where it has as many rows.

    Args:
        format: `csv`, `parquet` or `json`.
        formats: asks for the formats of dates, by column: those of JSON are text.

    Raises:
        MissingPackageError: pandas is not installed.
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
    """The dtypes of a pandas frame's columns of periods, by name."""
    dtypes = frame.dtypes.items() if frame is not None and hasattr(frame, "to_parquet") else ()
    return {name: dtype for name, dtype in dtypes if str(dtype).startswith("period[")}


def require_frames() -> None:
    """Let programs pass that can have frames, before the service is asked for any.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    _module("pandas")


def row_documents(rows: Frame | Sequence[Mapping[str, Any]], formats: Formats) -> list[Document]:
    """Rows as documents, whose cells JSON has; dates as the table writes them."""
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
    """A condition on a column as JSON has it: a period of pandas is the span of time that it is."""
    if isinstance(wanted, Mapping):
        ends = {"min": "start_time", "max": "end_time"}
        parts = {key: getattr(part, ends.get(key, ""), part) for key, part in wanted.items()}
        return plain(parts, name, formats)
    if hasattr(wanted, "start_time"):
        ends = {"min": wanted.start_time, "max": wanted.end_time}
        return plain(ends, name, formats)
    return plain(wanted, name, formats)


def plain(value: Any, name: str, formats: Formats) -> Any:
    """A value of a column as JSON has it; dates as the table writes them."""
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(part, name, formats) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part, name, formats) for part in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas, for no value
        return None
    if hasattr(value, "strftime"):
        form = formats().get(name, "%Y-%m-%d")
        if isinstance(value, datetime) and (offset := _OFFSET.search(form)):
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            value = moment.astimezone(_zone(offset[1]))
        if getattr(value, "year", 1000) < 1000:  # which strftime writes without zeros
            form = form.replace("%Y", f"{value.year:04d}")
        return value.strftime(form)
    if hasattr(value, "__float__"):
        return None if math.isnan(float(value)) else float(value)
    return str(value)


def date_formats(schema: Document) -> dict[str, str]:
    """How a schema's table writes its dates, by column."""
    columns = schema["columns"]
    return {c["name"]: c["datetime_format"] for c in columns if c.get("datetime_format")}


_OFFSET = re.compile(r"%[HMISfp] ?([+-]\d\d:?(?:\d\d)?|Z|UTC|GMT)$")
"""At the end of a format: an offset from UTC, in which times are written that are in UTC."""


def _zone(offset: str) -> timezone:
    """The zone of an offset such as +02:00, +0200, +02 or Z."""
    digits = re.sub("[^0-9]", "", offset).ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-ahead if offset[0] == "-" else ahead)


def _of_columns(pandas: Any, file: Any) -> Frame:
    """A Parquet file's columns, read one after the other, so that no table is there twice."""
    names = file.schema_arrow.names
    columns = {name: _series(pandas, file.read([name]).column(0)) for name in names}
    return pandas.DataFrame(columns, columns=names, copy=False)


def _series(pandas: Any, column: Any) -> Any:
    """A column of Arrow as one of pandas, which can be written to."""
    if column.null_count and (dtype := _WITH_BLANKS.get(str(column.type))):
        return column.to_pandas(types_mapper=lambda _: pandas.api.types.pandas_dtype(dtype))
    if str(column.type) not in ("string", "large_string"):
        return column.to_pandas().copy()
    # Arrow keeps a table of the texts that it has met, larger than they are: one of few rows.
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
            try:
                times = pandas.to_datetime(frame[name], format=format)
                offset = _OFFSET.search(format)
                frame[name] = times - _zone(offset[1]).utcoffset(None) if offset else times
            except pandas.errors.OutOfBoundsDatetime:
                frame[name] = _far_dates(pandas, frame[name], format)
    return frame


def _far_dates(pandas: Any, texts: Any, format: str) -> Any:
    """Dates such as 9999-12-31 and those beside them, in microseconds; text where one is finer."""
    form = format.replace("%-", "%")
    try:
        dates = [None if pandas.isna(x) else datetime.strptime(x, form) for x in texts]
    except ValueError:
        return texts
    return pandas.Series(dates, texts.index, dtype="datetime64[us]")


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
