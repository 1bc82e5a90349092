"""Time spans that are compared with dates: "2022", "2022-Q2", "2022-05", "2022-05-17"."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gcvae.expressions.functions import zone_of
from gcvae.schema.columns import Column
from gcvae.spelling.date_text import resolution, write_dates
from gcvae.spelling.never_dates import read_times

_SPAN = re.compile(r"\d{4}(-?Q[1-4]|-\d\d(-\d\d)?)?")
"""A year, a quarter, a month or a day."""


def span_of(wanted: Any, column: Column) -> tuple[pd.Timestamp, pd.Timestamp] | None:
    """Returns the first and the last moment of a time span, at the column's resolution.

    None if it is not a time span, or is a date in the column's own format.
    """
    step = resolution(column.date_format, column.decimals)
    if isinstance(wanted, str) and _SPAN.fullmatch(wanted):
        if not np.isnat(read_times(pa.array([wanted]), column.date_format, column.never)[0]):
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
        first, behind = (in_utc(each.start_time, column) for each in (span, span + 1))
        last = behind - pd.Timedelta(step)
    except pd.errors.OutOfBoundsDatetime:  # out of the column's range: refused elsewhere
        return None
    text = write_dates(np.array([last], "M8[ns]"), column.date_format, column.decimals)
    written = pd.Timestamp(read_times(text, column.date_format, column.never)[0])
    return first, written if first <= written else last  # a format of months writes no days


def in_utc(time: pd.Timestamp, column: Column) -> pd.Timestamp:
    """Converts a naive time of the column's time zone to UTC; unchanged for naive columns."""
    local = time.tz_localize(zone_of(column), ambiguous=True, nonexistent="shift_forward")
    return local.tz_convert("UTC").tz_localize(None)
