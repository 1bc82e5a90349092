"""Steps and endings of a column in a schema document.

    "steps": [1, 0.01], "endings": [".99"]          "steps": ["1 week", "1 day", "5 minutes"]

Steps are spacings of the column's values, in descending order. Endings are common remainders after
division by a step: .99 by 1. All cells are multiples of the last step, plus an ending if there are
endings. For each other step, the model learns the remainder as a column: cents, weekday, time.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import pairwise

Step = int | float | str
MONTH = "1 month"
"""Step of one month, the only one without a fixed length."""
MONTH_END = "month end"
"""Ending of dates whose days are counted back from the end of the month."""
DURATIONS = {
    "week": 7 * 86_400 * 10**6,
    "day": 86_400 * 10**6,
    "hour": 3_600 * 10**6,
    "minute": 60 * 10**6,
    "second": 10**6,
    "millisecond": 10**3,
    "microsecond": 1,
}
"""Length in microseconds of each unit of time that a step may have."""
_DURATION = re.compile(rf"([1-9]\d{{0,8}}) ({'|'.join(DURATIONS)})s?")


def read_steps(value: object) -> tuple[Step, ...]:
    """Reads a column's schema member `steps`: spacings of its values, such as 0.05 or "1 week".

    Raises:
        ValueError: The value is invalid; the message describes a valid one.
    """
    expected = 'falling steps, such as [100, 1], ["1 hour"] or ["1 month", "1 day"]; [] for none'
    if isinstance(value, list | tuple) and any("nanosecond" in str(step) for step in value):
        raise ValueError("steps of at least a microsecond, the finest unit of times")
    if not isinstance(value, list | tuple) or not all(map(_is_step, value)):
        raise ValueError(expected)
    lengths = [_length(step) for step in value]
    if any(high <= low for high, low in pairwise(lengths)):
        raise ValueError(expected)
    return tuple(value)


def read_endings(value: object) -> tuple[str, ...]:
    """Reads a column's schema member `endings`: common remainders of its values, such as ".99".

    Raises:
        ValueError: The value is invalid; the message describes a valid one.
    """
    if not isinstance(value, list | tuple) or not all(isinstance(x, str) and x for x in value):
        raise ValueError('texts, such as [".99"], ["09:00"], ["Monday"] or ["month end"]')
    return tuple(value)


def duration(step: Step) -> int | None:
    """Returns the length of a spacing of dates in microseconds; None for "1 month" and for numbers.

    >>> duration("5 minutes") == 5 * DURATIONS["minute"]
    True
    """
    found = _DURATION.fullmatch(step) if isinstance(step, str) else None
    return None if found is None else int(found[1]) * DURATIONS[found[2]]


def duration_text(microseconds: int) -> str:
    """Writes a duration as a string, in the largest unit of which it is a multiple.

    >>> duration_text(5 * DURATIONS["minute"])
    '5 minutes'
    """
    unit = next(name for name, length in DURATIONS.items() if microseconds % length == 0)
    count = microseconds // DURATIONS[unit]
    return f"{count} {unit}{'s' if count > 1 else ''}"


def exact(number: float) -> Fraction:
    """Converts a float, read as its shortest decimal, to a fraction: 0.01 becomes 1/100."""
    return Fraction(repr(number))


def _is_step(step: object) -> bool:
    if isinstance(step, str):
        return step == MONTH or duration(step) is not None
    is_number = isinstance(step, int | float) and not isinstance(step, bool)
    return is_number and math.isfinite(step) and step > 0  # type: ignore[arg-type, operator]


def _length(step: Step) -> float:
    """Returns a step's length for comparisons, in microseconds for times; a month has 30 days."""
    if step == MONTH:
        return 30.0 * DURATIONS["day"]
    return float(step if isinstance(step, int | float) else duration(step) or 0)
