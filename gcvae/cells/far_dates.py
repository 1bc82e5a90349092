"""Times in Arrow columns outside of the nanosecond range, such as 9999-12-31.

A column with such a time becomes text, as in CSV: as days if all times are days, else with the
digits of a second that the column needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gcvae.errors import Problem, TableError

_DAY = "day"
_UNITS = (_DAY, "s", "ms", "us")
_NO_TEXT = "<"  # prefix of Arrow's text for times beyond its years


def far_unit(chunks: Iterable[Any]) -> str | None:
    """Returns the unit in which to write the times of a column; None if nanoseconds suffice.

    Args:
        chunks: Chunks of the column, dates or timestamps.
    """
    is_far, unit = False, _UNITS[0]
    for chunk in chunks:
        is_far = is_far or not _fits(chunk, pa.timestamp("ns", _zone_of(chunk)))
        if unit == _DAY and not _are_days(chunk):
            unit = "s"
        while unit not in (_DAY, _UNITS[-1]) and not _fits(
            chunk, pa.timestamp(unit, _zone_of(chunk))
        ):
            unit = _UNITS[_UNITS.index(unit) + 1]
    return unit if is_far else None


def _zone_of(column: Any) -> str | None:
    return column.type.tz if pa.types.is_timestamp(column.type) else None


def _fits(chunk: Any, kind: Any) -> bool:
    try:
        chunk.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _are_days(chunk: Any) -> bool:
    """Returns whether all are midnights without a time zone."""
    if pa.types.is_date(chunk.type):
        return True
    if chunk.type.tz is not None:
        return False
    midnights = chunk.cast(pa.date32()).cast(chunk.type)
    return bool(pc.all(pc.equal(midnights, chunk)).as_py())


def far_texts(column: Any, unit: str, name: str) -> Any:
    """Returns the times in ISO 8601; those with a zone in UTC, with offset.

    Raises:
        TableError: A time of the column `name` has no such text.
    """
    is_day = unit == _DAY
    plain = column if is_day else column.cast(pa.timestamp(column.type.unit))
    texts = plain.cast(pa.date32() if is_day else pa.timestamp(unit)).cast(pa.string())
    if pc.any(pc.starts_with(texts, _NO_TEXT)).as_py():
        raise TableError(Problem("a time is of a year that can not be written", column=name,
                                 expected="years that ISO 8601 has"))  # fmt: skip
    has_offset = not is_day and column.type.tz is not None
    return pc.binary_join_element_wise(texts, "+00:00", "") if has_offset else texts


def in_nanoseconds(column: Any) -> Any:
    """Converts times in range to nanoseconds; in UTC if the zone is unknown."""
    zone = _zone_of(column)
    # The times are in UTC.
    return column.cast(pa.timestamp("ns", zone if zone is None or _is_known(zone) else "UTC"))


def _is_known(zone: str) -> bool:
    try:
        pa.array([], pa.timestamp("ns", zone)).to_pandas()
    except (LookupError, ValueError):  # of names, of offsets
        return False
    return True
