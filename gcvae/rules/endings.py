"""Converts the endings of numbers and dates to and from text: .99, 09:00, Monday, 25.

An ending is the remainder that a value leaves when divided by a step, as in prices such as 19.99.
"""

from __future__ import annotations

import re
from fractions import Fraction

from gcvae.schema.steps import DURATIONS, MONTH, Step

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBER = re.compile(r"(\d{0,15})(?:\.(\d{1,15}))?")
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")


def number_ending(text: str, per_unit: int) -> tuple[int, int]:
    """Parses an ending of numbers, such as ".99", to (remainder, divisor): numbers with this ending
    leave this remainder when divided by the divisor. Both are multiples of the resolution 1 /
    `per_unit`.

    For a resolution of 0.01, ".99" gives (99, 100), and "95" gives (9500, 10000).

    Raises:
        ValueError: The ending is not valid, or is finer than the resolution.
    """
    found = _NUMBER.fullmatch(text)
    if found is None or text == "":
        raise ValueError('endings such as ".99" or "95"')
    rest = Fraction(f"0{text}") * per_unit
    if rest.denominator != 1:
        raise ValueError(f"endings of at most {len(str(per_unit)) - 1} decimals")
    return int(rest), int(10 ** len(found[1]) * per_unit)


def number_ending_text(rest: int, digits: int, per_unit: int) -> str:
    """Writes a remainder, `rest`, as an ending such as ".99"; the inverse of `number_ending`.

    The remainder is a multiple of 1 / `per_unit`. The text has `digits` digits before the decimal
    point, with zeros at the beginning if needed.

    >>> number_ending_text(99, 0, 100), number_ending_text(9500, 2, 100)
    ('.99', '95')
    """
    whole, part = divmod(rest, per_unit)
    decimals = len(str(per_unit)) - 1
    fraction = f".{part:0{decimals}d}" if part else ""
    return (f"{whole:0{digits}d}" if digits else "") + fraction


def date_ending(text: str, last: Step, step: int) -> int:
    """Parses an ending of dates, such as "Monday 09:00", to the time since the beginning of a
    period, in multiples of the column's resolution.

    The period is a week if the step `last` is "1 week", a month if it is "1 month", else a day.

    Args:
        text: "Monday" (of weeks), "25" or "25th" (of months), "09:00", "09:00:30", or a day and a
            time such as "Monday 09:00".
        last: Spacing of the dates, such as "1 week" or "1 month".
        step: Resolution of the column, in microseconds.

    Raises:
        ValueError: The ending is not valid, or is finer than the resolution.
    """
    left = 0
    for word in text.split():
        left += _word(word, last)
    if not text.split() or left % step:
        raise ValueError('endings such as "09:00", "Monday", "25" or "25 09:00"')
    return left // step


def _word(word: str, last: Step) -> int:
    """Parses one word of an ending, such as "09:00" or "Monday", to the time since the beginning of
    a day, week or month, in microseconds."""
    if clock := _CLOCK.fullmatch(word):
        hours, minutes, seconds = (int(x or 0) for x in clock.groups()[:3])
        microseconds = int((clock[4] or "0").ljust(6, "0"))
        return (hours * 3_600 + minutes * 60 + seconds) * 10**6 + microseconds
    if word in WEEKDAYS and last == "1 week":
        return WEEKDAYS.index(word) * DURATIONS["day"]
    day = _DAY.fullmatch(word)
    if day and last == MONTH and 1 <= int(day[1]) <= 31:
        return (int(day[1]) - 1) * DURATIONS["day"]
    raise ValueError('endings such as "09:00", "Monday" (of "1 week") or "25" (of "1 month")')


def date_ending_text(left: int, last: Step, step: int) -> str:
    """Writes the time since the beginning of a period as an ending of dates such as "Monday 09:00";
    the inverse of `date_ending`.

    Args:
        left: Time since the beginning of the period, in multiples of the column's resolution.
        last: Spacing of the dates, such as "1 week" or "1 hour", which is also the period.
        step: Resolution of the column, in microseconds.
    """
    days, microseconds = divmod(left * step, DURATIONS["day"])
    words = []
    if last == "1 week":
        words.append(WEEKDAYS[days])
    elif last == MONTH:
        words.append(str(days + 1))
    if microseconds:
        seconds, fraction = divmod(microseconds, 10**6)
        clock = f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        words.append(f"{clock}.{fraction:06d}" if fraction else clock.removesuffix(":00"))
    return " ".join(words)
