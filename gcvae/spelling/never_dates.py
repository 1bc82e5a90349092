"""Dates for "never", such as 9999-12-31, which int64 does not count in nanoseconds.

In a typed column a time that no table has stands in for such a date: after all others of the
column, or before them, so that it is compared as the date itself is. Its text and the date come
back wherever cells leave the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Mask
from gcvae.spelling.date_text import Dates, has_shape, read_dates, write_dates

MOST_NEVER = 2
"""Different dates of a column that stand for never."""
_AHEAD = np.array(["2261-11-01", "2261-12-01"], dtype="datetime64[ns]")
_LONG_AGO = np.array(["1678-02-01", "1678-03-01"], dtype="datetime64[ns]")
_STAND_INS = np.concatenate([_LONG_AGO, _AHEAD])
_MIDDLE_YEAR = 1970
_ISO_FORMATS = tuple(
    clock + zone
    for zone in ("", "+00:00")
    for clock in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S")
)
"""As typed dates are spelled that are too far for nanoseconds."""


def date_of(text: str, date_format: str) -> datetime | None:
    """The date of a text of the format, however far; None where it is none."""
    if not has_shape(text, date_format):
        return None
    try:
        return datetime.strptime(text, date_format.replace("%-", "%"))
    except ValueError:
        return None


def is_far(text: str, date_format: str) -> bool:
    """Whether a text is a date of the format that nanoseconds do not reach."""
    far = date_of(text, date_format) is not None
    return far and bool(np.isnat(read_dates(pa.array([text]), date_format))[0])


def is_beyond(time: pd.Timestamp) -> bool:
    """Whether a time is one that nanoseconds do not reach."""
    try:
        time.as_unit("ns")
    except pd.errors.OutOfBoundsDatetime:
        return True
    return False


def are_never(times: pd.Series[Any] | Dates) -> Mask:
    """Which typed cells stand for never; none of a column that is not of dates. Shape: (n,).

    Where other units count them, those that nanoseconds do not reach.
    """
    cells = np.asarray(times) if isinstance(times, np.ndarray) else times.to_numpy()
    if cells.dtype.kind != "M":
        return np.zeros(len(cells), dtype=bool)
    near = cells.astype("datetime64[ns]")
    if cells.dtype == near.dtype:
        return np.isin(cells, _STAND_INS)
    return np.asarray(~np.isnat(cells) & (near.astype(cells.dtype) != cells))


def without_never(series: pd.Series[Any]) -> pd.Series[Any]:
    """The typed cells with none where they stand for never. Shape: (n,)."""
    never = are_never(series)
    return series.mask(never) if never.any() else series


def stand_ins(never: Sequence[str], date_format: str) -> Dates:
    """The times that stand in for dates of the format. Shape: (k,)."""
    return _stand_ins(tuple(never), date_format)


@cache
def _stand_ins(never: tuple[str, ...], date_format: str) -> Dates:
    dates = [far_date(text, date_format) for text in never]
    found = np.empty(len(never), dtype="datetime64[ns]")
    for times, is_here in (
        (_LONG_AGO, [date.year < _MIDDLE_YEAR for date in dates]),
        (_AHEAD, [date.year >= _MIDDLE_YEAR for date in dates]),
    ):
        places = sorted(np.flatnonzero(is_here), key=lambda i: dates[i])
        found[places] = times[: len(places)]
    return found


def far_date(text: str, date_format: str) -> datetime:
    """The date of a text that is known to be one of the format."""
    date = date_of(text, date_format)
    assert date is not None, "a schema's dates for never are of its format"
    return date


def read_times(texts: pa.Array, date_format: str, never: Sequence[str]) -> Dates:
    """The time of each text, NaT where it is no date of the format, stand-ins for never.

    Typed dates that are too far for nanoseconds make text of all of their column, in ISO 8601; so
    beside dates for never that is read, too. Shape: (n,).
    """
    times = read_dates(texts, date_format)
    if not never:
        return times
    times = np.where(are_never(times), np.datetime64("NaT"), times)
    for form in _ISO_FORMATS:
        unread = np.isnat(times)
        if not unread.any():
            return times
        times[unread] = _read_beside(texts.filter(pa.array(unread)), date_format, never, form)
    return times


def _read_beside(texts: pa.Array, date_format: str, never: Sequence[str], form: str) -> Dates:
    """What is read of texts as they are, or in another format."""
    times = read_dates(texts, form)
    times = np.where(are_never(times), np.datetime64("NaT"), times)
    found = stand_ins(never, date_format)
    said = {far_date(text, date_format): found[i] for i, text in enumerate(never)}
    for i in np.flatnonzero(np.isnat(times)):
        text = texts[int(i)].as_py()
        dates = date_of(text, date_format), date_of(text, form)
        times[i] = next((said[date] for date in dates if date in said), np.datetime64("NaT"))
    return times


def write_times(
    times: Dates, date_format: str, digits: int | None, never: Sequence[str]
) -> pa.Array:
    """The text of each time, none of them NaT; of those that stand for never the column's."""
    texts = write_dates(times, date_format, digits)
    for text, stand_in in zip(never, stand_ins(never, date_format), strict=True):
        texts = pc.if_else(pa.array(times == stand_in), text, texts)
    return texts


def far_times(series: pd.Series[Any], date_format: str, never: Sequence[str]) -> pd.Series[Any]:
    """Typed cells as microseconds, which count the dates for never too. Shape: (n,)."""
    times = series.to_numpy(dtype="datetime64[ns]")
    found = times.astype("datetime64[us]")
    for text, stand_in in zip(never, stand_ins(never, date_format), strict=True):
        found[times == stand_in] = np.datetime64(far_date(text, date_format), "us")
    return pd.Series(found, series.index, name=series.name)


def near_times(
    series: pd.Series[Any], date_format: str, never: Sequence[str]
) -> pd.Series[Any] | None:
    """The typed cells of `far_times`; None where another date is too far. Shape: (n,)."""
    far = series.to_numpy(dtype="datetime64[us]")
    times = far.astype("datetime64[ns]")
    is_read = np.isnat(far) | ((times.astype("datetime64[us]") == far) & ~are_never(times))
    for text, stand_in in zip(never, stand_ins(never, date_format), strict=True):
        said = far == np.datetime64(far_date(text, date_format), "us")
        times[said], is_read[said] = stand_in, True
    return pd.Series(times, series.index, name=series.name) if is_read.all() else None
