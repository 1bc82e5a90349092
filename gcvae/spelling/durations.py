"""Converts durations in text, such as `1 days 01:30:00` and `25:30:00`, to seconds and back.

Seconds are represented as plain decimal texts, with as many decimals as the duration has.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Mask
from gcvae.spelling.number_text import Texts
from gcvae.spelling.written_numbers import mask_of

DURATIONS = ("0 days 00:00:00", "00:00:00", "0:00:00")
"""Formats of duration columns, each identified by its text for zero: the format of pandas, and
clocks whose hours, which may exceed 24, have at least two digits or at least one."""
_CLOCK = r":[0-5][0-9]:[0-5][0-9](?:\.(?P<digits>[0-9]{1,9}))?"
_SHAPE = rf"^(?:-?[0-9]+ days?,? \+?[0-9]{{1,2}}|-?[0-9]+){_CLOCK}$"
_BEYOND_A_DAY = r"day|^-|^(?:[0-9]{3,}|2[4-9]|[3-9][0-9]):"


def are_durations(texts: Texts) -> Mask:
    """Returns whether each of n strings is a duration. Shape: (n,)."""
    return mask_of(pc.match_substring_regex(texts, _SHAPE))


def find_duration(texts: Texts) -> str | None:
    """Returns the format in which durations are written. A format is represented by its text for a
    duration of zero, such as "0 days 00:00:00". Returns None if all strings may be times of day
    instead, such as 12:30:00."""
    if not pc.any(pc.match_substring_regex(texts, _BEYOND_A_DAY)).as_py():
        return None
    if pc.any(pc.match_substring(texts, " days ")).as_py():
        return DURATIONS[0]
    has_one_digit = pc.any(pc.match_substring_regex(texts, "^-?[0-9]:")).as_py()
    return DURATIONS[2] if has_one_digit else DURATIONS[1]


def duration_numerals(texts: Texts) -> Texts:
    """Converts each duration to its seconds as a decimal string; "" for a string that is no
    duration.

    >>> duration_numerals(pa.array(["1 days 01:30:00", "-1 days +23:59:59.50", "x"])).to_pylist()
    ['91800', '-0.50', '']
    """
    read = pd.to_timedelta(pd.Series(texts.to_pylist(), dtype=object), errors="coerce")
    nanoseconds = read.to_numpy(dtype="m8[ns]").astype(np.int64).tolist()
    digits = pc.struct_field(pc.extract_regex(texts, _SHAPE), "digits").to_pylist()
    is_read = (are_durations(texts) & read.notna().to_numpy()).tolist()
    return pa.array(
        [
            f"{Decimal(n).scaleb(-9):.{len(part or '')}f}" if found else ""
            for n, part, found in zip(nanoseconds, digits, is_read, strict=True)
        ],
        pa.string(),
    )


def duration_texts(numerals: Texts, zero: str) -> Texts:
    """Writes seconds, given as decimal strings, as durations in the format whose text for zero is
    `zero`.

    >>> duration_texts(pa.array(["91800", "-0.5"]), "0 days 00:00:00").to_pylist()
    ['1 days 01:30:00', '-1 days +23:59:59.5']
    """
    return pa.array([_duration_text(Decimal(text), zero) for text in numerals.to_pylist()])


def _duration_text(seconds: Decimal, zero: str) -> str:
    if not seconds.is_finite():
        return str(seconds)
    digits = max(0, -int(seconds.as_tuple().exponent))
    sign, days, size = "", "", abs(seconds)
    if zero == DURATIONS[0]:
        whole = seconds // 86_400 - (seconds % 86_400 < 0)  # Decimal truncates
        days, size = f"{whole} days {'+' if whole < 0 else ''}", seconds - whole * 86_400
    elif seconds < 0:
        sign = "-"
    minutes, rest = divmod(size, 60)
    hours, minutes = divmod(minutes, 60)
    width = 1 if zero == DURATIONS[2] else 2
    second = f"{rest:0{digits + 3 if digits else 2}.{digits}f}"
    return f"{sign}{days}{int(hours):0{width}d}:{int(minutes):02d}:{second}"
