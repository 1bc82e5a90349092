"""Sentinel dates such as 9999-12-31 that are outside of the nanosecond timestamp range.

A typed column represents such a date by an unused time, after or before all others, so that
comparisons give the date's result. The date and its text are restored in all output.
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
"""Maximum number of different sentinel dates of a column."""
_AHEAD = np.array(["2261-11-01", "2261-12-01"], dtype="datetime64[ns]")
_LONG_AGO = np.array(["1678-02-01", "1678-03-01"], dtype="datetime64[ns]")
_STAND_INS = np.concatenate([_LONG_AGO, _AHEAD])
_MIDDLE_YEAR = 1970
_ISO_FORMATS = tuple(
    clock + zone
    for zone in ("", "+00:00")
    for clock in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S")
)
"""Formats of typed dates outside of the nanosecond range."""


def date_of(text: str, date_format: str) -> datetime | None:
    """Returns the date of a text in the format, at any distance; None if it is none."""
    if not has_shape(text, date_format):
        return None
    try:
        return datetime.strptime(text, date_format.replace("%-", "%"))
    except ValueError:
        return None


def is_far(text: str, date_format: str) -> bool:
    """Returns whether a text is a date of the format outside of the nanosecond range."""
    far = date_of(text, date_format) is not None
    return far and bool(np.isnat(read_dates(pa.array([text]), date_format))[0])


def is_beyond(time: pd.Timestamp) -> bool:
    """Returns whether a time is outside of the nanosecond range."""
    try:
        time.as_unit("ns")
    except pd.errors.OutOfBoundsDatetime:
        return True
    return False


def are_never(times: pd.Series[Any] | Dates) -> Mask:
    """Returns which typed cells are sentinel dates; none if the column has no dates. Shape: (n,).

    For units other than nanoseconds, these are the times outside of the nanosecond range.
    """
    cells = np.asarray(times) if isinstance(times, np.ndarray) else times.to_numpy()
    if cells.dtype.kind != "M":
        return np.zeros(len(cells), dtype=bool)
    near = cells.astype("datetime64[ns]")
    if cells.dtype == near.dtype:
        return np.isin(cells, _STAND_INS)
    return np.asarray(~np.isnat(cells) & (near.astype(cells.dtype) != cells))


def without_never(series: pd.Series[Any]) -> pd.Series[Any]:
    """Returns the typed cells with sentinel dates as missing. Shape: (n,)."""
    never = are_never(series)
    return series.mask(never) if never.any() else series


def stand_ins(never: Sequence[str], date_format: str) -> Dates:
    """Returns the times that represent sentinel dates of the format. Shape: (k,)."""
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
    """Returns the date of a text that is valid in the format."""
    date = date_of(text, date_format)
    assert date is not None, "a schema's dates for never are of its format"
    return date


def read_times(texts: pa.Array, date_format: str, never: Sequence[str]) -> Dates:
    """Returns the time of each text, NaT if invalid, and representatives for sentinel dates.

    A typed column with far dates is text in ISO 8601, so this format is accepted as well. Shape:
    (n,).
    """
    times = read_dates(texts, date_format)
    if not never:
        return times
    times = np.where(are_never(times), np.datetime64("NaT"), times)
    for form in _ISO_FORMATS:
        unread = np.isnat(times)
        if not unread.any():
            return times
        times[unread] = _read_either(texts.filter(pa.array(unread)), date_format, never, form)
    return times


def _read_either(texts: pa.Array, date_format: str, never: Sequence[str], form: str) -> Dates:
    """Returns the times of texts in the column's or another format."""
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
    """Returns the text of each time, without NaT; sentinel dates get the column's text."""
    texts = write_dates(times, date_format, digits)
    for text, stand_in in zip(never, stand_ins(never, date_format), strict=True):
        texts = pc.if_else(pa.array(times == stand_in), text, texts)
    return texts


def far_times(series: pd.Series[Any], date_format: str, never: Sequence[str]) -> pd.Series[Any]:
    """Returns typed cells in microseconds, with sentinel dates restored. Shape: (n,)."""
    times = series.to_numpy(dtype="datetime64[ns]")
    found = times.astype("datetime64[us]")
    for text, stand_in in zip(never, stand_ins(never, date_format), strict=True):
        found[times == stand_in] = np.datetime64(far_date(text, date_format), "us")
    return pd.Series(found, series.index, name=series.name)


def near_times(
    series: pd.Series[Any], date_format: str, never: Sequence[str]
) -> pd.Series[Any] | None:
    """Converts microseconds from `far_times` back to nanoseconds, with sentinel dates represented.

    None if a date other than a sentinel date is outside of the nanosecond range. Shape: (n,).
    """
    far = series.to_numpy(dtype="datetime64[us]")
    times = far.astype("datetime64[ns]")
    is_read = np.isnat(far) | ((times.astype("datetime64[us]") == far) & ~are_never(times))
    for text, stand_in in zip(never, stand_ins(never, date_format), strict=True):
        said = far == np.datetime64(far_date(text, date_format), "us")
        times[said], is_read[said] = stand_in, True
    return pd.Series(times, series.index, name=series.name) if is_read.all() else None
