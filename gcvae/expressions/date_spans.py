"""Time spans in comparisons with dates: "2022", "2022-Q2", "2022-05", "2022-05-17"."""

from __future__ import annotations

import re
from datetime import UTC, date
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gcvae.arrays import TIMES
from gcvae.schema.columns import Column
from gcvae.spelling.date_text import read_dates, resolution, write_dates

_SPAN = re.compile(r"\d{4}(-?Q[1-4]|-\d\d(-\d\d)?)?")
"""A year, a quarter, a month or a day."""


def span_of(wanted: Any, column: Column) -> tuple[pd.Timestamp, pd.Timestamp] | None:
    """Returns the first and the last moment, at the resolution of a date column, of a time span
    such as a year or a quarter.

    Returns None if `wanted` is not a time span, or is a date in the column's own format.

    Args:
        wanted: Text such as "2022-Q2", a pandas Period, a date, or any other value.
        column: Column of dates with which the span is compared.
    """
    step = resolution(column.date_format, column.decimals)
    if isinstance(wanted, str) and _SPAN.fullmatch(wanted):
        if not np.isnat(read_dates(pa.array([wanted]), column.date_format)[0]):
            return None
        try:
            span = pd.Period(wanted)
        except ValueError:  # month or day out of range
            return None
    elif isinstance(wanted, pd.Period):
        span = wanted
    elif type(wanted) is date and step < np.timedelta64(1, "D"):
        span = pd.Period(wanted, freq="D")
    else:
        return None
    try:
        moments = (span.asfreq("us", "start"), span.asfreq("us", "end"))
        first, end = (in_utc(_time_of(moment), column) for moment in moments)
        last = end - pd.Timedelta(step - np.timedelta64(1, "us"))
    except pd.errors.OutOfBoundsDatetime:  # beyond the range of dates: the caller refuses it
        return None
    text = write_dates(np.array([last], TIMES), column.date_format, column.decimals)
    written = pd.Timestamp(read_dates(text, column.date_format)[0])
    return first, written if first <= written else last  # a format such as %Y-%m has no days


def _time_of(moment: pd.Period) -> pd.Timestamp:
    """Converts a period of one microsecond to a time; `Period.start_time` would count in
    nanoseconds."""
    return pd.Timestamp(np.int64(moment.ordinal).astype(TIMES))


def in_utc(time: pd.Timestamp, column: Column) -> pd.Timestamp:
    """Converts a local time in the time zone of a date column to UTC, without a zone attached;
    unchanged if the column has no zone."""
    local = time.tz_localize(column.zone or UTC, ambiguous=True, nonexistent="shift_forward")
    return local.tz_convert("UTC").tz_localize(None)
