"""Converts the names of column types in Parquet files, as Arrow writes them, to Arrow types."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")
_DECIMAL = re.compile(r"(decimal(?:32|64|128|256))\((\d+), (-?\d+)\)")
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered=([01])>")


def parquet_type(text: str) -> Any:
    """Returns the Arrow type with this name, as in Parquet files.

    >>> parquet_type("timestamp[us, tz=Europe/Berlin]")
    TimestampType(timestamp[us, tz=Europe/Berlin])

    Raises:
        ValueError: No type has this name.
    """
    if match := _ZONED.fullmatch(text):
        return pa.timestamp(match[1], match[2])
    if match := _DECIMAL.fullmatch(text):
        return getattr(pa, match[1])(int(match[2]), int(match[3]))
    if match := _DICTIONARY.fullmatch(text):
        values, indices = parquet_type(match[1]), parquet_type(match[2])
        return pa.dictionary(indices, values, ordered=match[3] == "1")
    return pa.type_for_alias(text)
