"""Dates in text: infers their format, reads them, and writes them back unchanged.

A format is like that of strptime, with `%-d`, `%-m`, `%-H`, `%-I` for numbers without leading
zeros. Fractions of a second (`%f`) are written with the column's number of decimals. A format may
end in an offset from UTC, such as `%Y-%m-%d %H:%M:%S+02:00`: it reads times with any offset, stores
them in UTC, and writes all of them with its own offset.

Years of two digits (`%y`) are read as years from 1969 to 2068; `%1940y` reads them as years from
1940 to 2039.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import FIRST_TIME, LAST_TIME, TIMES, Mask
from gcvae.spelling.number_text import chunks

_TOKEN = re.compile(r"%(?:-|[0-9]{4}(?=y))?[a-zA-Z%]")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PADDED = [f"{n:02d}" for n in range(100)]
_BARE = [str(n) for n in range(100)]


class _Token(NamedTuple):
    """A token of date formats, such as %d.

    Attributes:
        pattern: Regular expression of the texts that are read.
        shape: Regular expression of the texts that are written, with leading zeros.
        number: Function from times to the integers that the token stands for, such as days of the
            month.
        words: Text that is written for each integer from 0 on; empty if the integers themselves are
            written.
    """

    pattern: str
    shape: str
    number: Callable[[pd.DatetimeIndex], Any]
    words: Sequence[str] = _PADDED


_TWO = r"\d\d"
_TOKENS = {
    "Y": _Token("[0-9]{4}", r"\d{4}", lambda times: times.year, ()),
    "y": _Token("[0-9]{2}", _TWO, lambda times: times.year % 100),
    "m": _Token("1[0-2]|0?[1-9]", _TWO, lambda times: times.month),
    "b": _Token(
        "|".join(name[:3] for name in _MONTHS),
        "[A-Za-z]{3}",
        lambda times: times.month - 1,
        [name[:3] for name in _MONTHS],
    ),
    "B": _Token("|".join(_MONTHS), "[A-Za-z]{3,9}", lambda times: times.month - 1, _MONTHS),
    "d": _Token("3[01]|[12][0-9]|0?[1-9]", _TWO, lambda times: times.day),
    "a": _Token(
        "|".join(name[:3] for name in WEEKDAYS),
        "[A-Za-z]{3}",
        lambda times: times.dayofweek,
        [name[:3] for name in WEEKDAYS],
    ),
    "A": _Token("|".join(WEEKDAYS), "[A-Za-z]{6,9}", lambda times: times.dayofweek, WEEKDAYS),
    "H": _Token("2[0-3]|[01]?[0-9]", _TWO, lambda times: times.hour),
    "I": _Token("1[0-2]|0?[1-9]", _TWO, lambda times: (times.hour - 1) % 12 + 1),
    "p": _Token("AM|PM", "[AP]M", lambda times: times.hour // 12, ("AM", "PM")),
    "M": _Token("[0-5]?[0-9]", _TWO, lambda times: times.minute),
    "S": _Token("[0-5]?[0-9]", _TWO, lambda times: times.second),
    "f": _Token("[0-9]{1,9}", r"\d{1,9}", lambda times: times.microsecond, ()),
}
"""Tokens of formats by letter."""
_KNOWN_TOKENS = {*(f"%{letter}" for letter in _TOKENS), "%-m", "%-d", "%-H", "%-I"}

# The order is the preference where several formats fit every cell.
_DAYS_IN_DIGITS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%-d.%-m.%Y", "%m/%d/%Y", "%-m/%-d/%Y",
    "%d/%m/%Y", "%-d/%-m/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%m/%d/%y", "%-m/%-d/%y",
    "%d/%m/%y", "%-d/%-m/%y", "%Y-%-m-%-d", "%Y/%-m/%-d", "%Y-%d-%m", "%Y/%d/%m", "%Y.%d.%m",
)  # fmt: skip
_DAYS_IN_WORDS = [
    pattern.replace("{d}", day).replace("{m}", month).replace("{y}", year)
    for pattern in (
        "{d} {m} {y}", "{d}-{m}-{y}", "{d}/{m}/{y}", "{d}. {m} {y}", "{d} {m}, {y}", "{m} {d}, {y}",
        "{m} {d} {y}", "{m}-{d}-{y}", "{m}/{d}/{y}", "{y} {m} {d}", "{y}-{m}-{d}", "{y}/{m}/{d}",
    )
    for month in ("%b", "%B")
    for year in ("%Y", "%y")
    for day in ("%d", "%-d")
]  # fmt: skip
_DAYS = (
    *_DAYS_IN_DIGITS,
    *_DAYS_IN_WORDS,
    *(
        weekday + joint + day
        for weekday in ("%a", "%A")
        for joint in (", ", " ")
        for day in (*_DAYS_IN_DIGITS, *_DAYS_IN_WORDS)
    ),
    *("%b %Y", "%B %Y", "%b-%Y", "%B-%Y", "%b-%y", "%d%b%Y", "%Y%m%d", "%Y-%m"),
)
# Most are never compiled: a text that begins with a digit fits no format that begins with a word.
_DAYS_FROM_WORDS = [day for day in _DAYS if day.startswith(("%a", "%A", "%b", "%B"))]
_DAYS_FROM_NUMBERS = [day for day in _DAYS if day not in _DAYS_FROM_WORDS]
_CLOCKS = [
    joint + clock
    for joint in (" ", "T", ", ")
    for clock in (
        "%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%-H:%M", "%-H:%M:%S", "%I:%M %p", "%-I:%M %p",
        "%I:%M:%S %p", "%-I:%M:%S %p",
    )
]  # fmt: skip
_OFFSET = r"(?: ?[+-](?:0[0-9]|1[0-4])(?::?(?:00|15|30|45))?| ?Z| ?UTC| ?GMT)"
_OFFSET_OF_FORMAT = re.compile(rf"(.*%-?[HMISfp])({_OFFSET})", re.DOTALL)
_OFFSET_OF_TEXT = rf"^(?P<time>.*:[0-9]{{2}}.*?)(?P<offset>{_OFFSET})$"
_CLOCK_ENDS = ("%M", "%S", "%p")
_FRACTION = r"(:[0-9]{2})\.[0-9]{1,9}$"
_AMBIGUOUS = {"%m": "%d", "%d": "%m", "%-m": "%-d", "%-d": "%-m"}
# Times of day are on strptime's default date, 1900-01-01. %-H:%M is absent: 3:04 may be a ratio.
_TIMES = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%-H:%M:%S", "%I:%M %p", "%-I:%M %p", "%I:%M:%S %p",
          "%-I:%M:%S %p")  # fmt: skip
DAY_OF_TIMES = np.datetime64("1900-01-01", "us")
MOST_DIGITS = 6
"""Maximum number of decimals of a second; times are stored in microseconds."""
_FINER = rf"(:[0-9]{{2}}\.[0-9]{{{MOST_DIGITS}}})[0-9]+"
LAST_SHORT_YEAR = 2049
"""Latest year inferred for a two-digit year that may also belong to the previous century."""
FIRST_YEAR, LAST_YEAR = 1900, 2099  # plausible years of eight-digit dates, beside 99991231

Dates = npt.NDArray[np.datetime64]


def candidate_formats(text: str) -> Iterator[str]:
    """Yields the date formats in which a string may be written, judged by its sequence of digits,
    letters and signs; preferred formats come first."""
    if not re.search("[0-9]", text):
        return
    for day in _DAYS_FROM_WORDS if text[0].isalpha() else _DAYS_FROM_NUMBERS:
        match = _shape(day).match(text)
        if match and match.end() == len(text):
            yield day
        elif match and day != "%Y%m%d":
            for clock in _CLOCKS:
                time = _shape(clock).match(text, match.end())
                offset = text[time.end() :] if time else ""
                if time and (not offset or re.fullmatch(_OFFSET, offset)):
                    yield day + clock + offset
    yield from (clock for clock in _TIMES if _shape(clock).fullmatch(text))


def check_format(text: str) -> str:
    """Returns the format unchanged if it is valid.

    Raises:
        ValueError: The format cannot represent a date or time; the message describes a valid one.
    """
    tokens = {re.sub("[0-9]{4}", "", token) for token in _TOKEN.findall(text)} - {"%%"}
    if not {"%Y", "%y"} & tokens and not is_time_of_day(text):
        raise ValueError("a format with a year, such as %Y-%m-%d, or for a time of day, as %H:%M")
    if unknown := tokens - _KNOWN_TOKENS:
        raise ValueError(f"a format without {', '.join(sorted(unknown))}")
    if "%" in _TOKEN.sub("", text):
        raise ValueError("a format with a letter behind each %, and %% for a % of its own")
    parts = Counter(token[-1] for token in _TOKEN.findall(text) if token != "%%")
    if twice := [letter for letter, n in parts.items() if n > 1]:
        raise ValueError(f"a format that has {', '.join(f'%{letter}' for letter in twice)} once")
    return text


def is_time_of_day(date_format: str) -> bool:
    """Returns whether the format contains a time of day but no date."""
    letters = {token[-1] for token in _TOKEN.findall(date_format)}
    return bool(letters & set("HI")) and not letters & set("YymbBdaA")


def typed_format(times: Dates, *, has_zone: bool = False) -> tuple[str, int | None]:
    """Returns (ISO 8601 format that represents times exactly, number of decimals of its seconds or,
    for a format without decimals, None).

    Args:
        times: Times without NaT. If all are on 1900-01-01, but not all at midnight, they are times
            of day, and the format contains no date.
        has_zone: Whether the times are in UTC, and the format is to end in +00:00.
    """
    days = times.astype("datetime64[D]")
    are_whole = bool((times.astype("datetime64[s]") == times).all())
    are_midnights = bool((days == times).all())
    fraction = 3 if (times.astype("datetime64[ms]") == times).all() else MOST_DIGITS
    clock, digits = ("%H:%M:%S", None) if are_whole else ("%H:%M:%S.%f", fraction)
    if has_zone:
        return f"%Y-%m-%d {clock}+00:00", digits
    if are_midnights:
        return "%Y-%m-%d", None
    return (clock if (days == DAY_OF_TIMES).all() else f"%Y-%m-%d {clock}"), digits


def infer_format(texts: pa.Array) -> tuple[str, int] | None:
    """Returns (date format that reads and restores every string, number of decimals of its
    seconds); None if there is no such format.

    If strings differ in their offset from UTC, the format contains the most frequent one; if only
    some have decimals of a second, it contains decimals. Digits beyond microseconds are lost.

    >>> infer_format(pa.array(["2024-02-29", "2023-12-01"]))
    ('%Y-%m-%d', 0)
    """
    fitting = list(candidate_formats(texts[0].as_py()))
    for sample in (texts.slice(0, 1), texts.slice(0, 200), texts):
        fitting = [f for f in fitting if _restores(sample, f)]
    found = fitting[0] if fitting else _format_of_uneven(texts)
    if found is None:
        return None
    return _with_century(texts, found), second_digits(texts, found)


def _with_century(texts: pa.Array, date_format: str) -> str:
    """Returns the format with a first year, such as `%1940y`, in place of `%y`. The format stays
    unchanged if `%y` reads no text as a date after LAST_SHORT_YEAR, or if all 100 two-digit years
    occur.

    The two-digit years are taken as a circle, in which 00 follows 99. The first year, here 1940,
    follows the longest run of years in the circle that do not occur in the texts. Its century is
    the latest one in which no date is after LAST_SHORT_YEAR.
    """
    if "%y" not in date_format:
        return date_format
    years = read_dates(texts, date_format).astype("datetime64[Y]").astype(int) + 1970
    if years.max() <= LAST_SHORT_YEAR:
        return date_format
    used = np.unique(years % 100)
    unused = np.diff(used, prepend=used[-1] - 100)
    start, span = int(used[unused.argmax()]), 100 - int(unused.max())
    century = 2000 if 2000 + start + span <= LAST_SHORT_YEAR else 1900
    return date_format if span == 99 else date_format.replace("%y", f"%{century + start}y")


def _format_of_uneven(texts: pa.Array) -> str | None:
    """Returns the format of times that differ in their offset from UTC or in the presence of
    decimals of a second, or None."""
    if not any(candidate_formats(_clocks(texts.slice(0, 1))[2][0].as_py())):
        return None
    times, offsets, clocks = _clocks(texts)
    if 0 < offsets.null_count < len(texts) or clocks.equals(texts):
        return None
    found = infer_format(clocks)
    if found is None or not found[0].endswith(_CLOCK_ENDS):
        return None
    fraction = "" if clocks.equals(times) else ".%f"
    counts = Counter(offsets.drop_null().to_pylist())
    return found[0] + fraction + max(counts, key=counts.__getitem__, default="")


def _clocks(texts: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Returns (texts without offsets from UTC, the offsets, texts without offsets and decimals)."""
    times, offsets = _without_offsets(texts)
    return times, offsets, pc.replace_substring_regex(times, _FRACTION, r"\1")


def has_offset(date_format: str) -> bool:
    """Returns whether the date format ends in an offset from UTC, such as +02:00."""
    return bool(_offset_of(date_format)[1])


def offset_of(date_format: str) -> timedelta:
    """Returns the offset from UTC with which the format writes times; zero if it has none."""
    ahead = _offset_of(date_format)[1]
    return pd.Timedelta(_distance(ahead)).to_pytimedelta() if ahead else timedelta(0)


def are_uniform(texts: pa.Array, date_format: str) -> bool:
    """Returns whether all strings have the format's offset from UTC, and equally many decimals of a
    second, so that the format restores them."""
    has_ends = "%f" in date_format or has_offset(date_format)
    return not has_ends or _restores(texts, date_format)


def other_order(texts: pa.Array, date_format: str) -> str | None:
    """Returns the format with day and month exchanged if it also fits every string; else None."""
    if "%b" in date_format.lower() or date_format.startswith("%Y"):
        return None
    other = _TOKEN.sub(lambda m: _AMBIGUOUS.get(m[0], m[0]), date_format)
    return other if other != date_format and are_read(texts, other).all() else None


def read_dates(texts: pa.Array, date_format: str) -> Dates:
    """Returns the time of each of n strings; NaT if the string is not in the format. Decimals of a
    second beyond microseconds are cut off. Shape: (n,)."""
    return np.concatenate([_read_dates(chunk, date_format) for chunk in chunks(texts)])


def _read_dates(texts: pa.Array, date_format: str) -> Dates:
    if (times := _iso_times(texts, date_format)) is not None:
        return times
    clock, offset = _offset_of(date_format)
    if offset:
        texts, offsets = _without_offsets(texts)
        return _read_dates(texts, clock) - _distances(offsets)
    return _times_of(pc.extract_regex(texts, _pattern(date_format)))


@cache
def _pattern(date_format: str) -> str:
    """Returns a regular expression with a named group for each token; decimals of a second at the
    end of a text are optional."""
    words = [re.sub(r"\\? +", r"\\s+", re.escape(text)) for text in _TOKEN.split(date_format)]
    tokens = [_group(token) for token in _TOKEN.findall(date_format)]
    if date_format.endswith("%S.%f"):
        words[-2], tokens[-1] = "", rf"(?:\.{tokens[-1]})?"
    both = zip(words, [*tokens, ""], strict=True)
    return "(?i)^" + "".join(part for pair in both for part in pair) + "$"


def _group(token: str) -> str:
    """Returns a token as a group of a regular expression, named by its letter, or y1940 for
    %1940y."""
    letter = token[-1]
    name = letter + re.sub("[^0-9]", "", token)
    return f"(?P<{name}>{_TOKENS[letter].pattern})" if letter in _TOKENS else "%"


def _times_of(found: Any) -> Dates:
    """Returns the time for each text, given the groups that Arrow's `extract_regex` found in it;
    NaT where the text does not match or the date does not exist."""
    fields = {field.name: pc.struct_field(found, field.name) for field in found.type}

    def number(letter: str, default: int = 0) -> npt.NDArray[np.int64]:
        if letter not in fields:
            return np.full(len(found), default)
        return np.asarray(fields[letter].fill_null("0").cast(pa.int64()))

    year, month = number("Y", 1900), number("m", 1)
    for name in (name for name in fields if name.startswith("y")):
        first = int(name[1:] or _FIRST_SHORT_YEAR)
        year = first + (number(name) - first) % 100
    for name in {"b", "B"} & fields.keys():
        start = pc.utf8_slice_codeunits(pc.utf8_title(fields[name]), 0, 3)
        month = np.asarray(pc.index_in(start, pa.array(_TOKENS["b"].words)).fill_null(0)) + 1
    hour = number("H")
    if "I" in fields:
        hour = number("I") % 12
    if "p" in fields:
        is_late = pc.equal(pc.utf8_upper(fields["p"]), "PM").fill_null(False)
        hour = hour + 12 * np.asarray(is_late).astype(np.int64)
    if "f" in fields:
        digits = pc.utf8_slice_codeunits(fields["f"], 0, MOST_DIGITS)
        fields["f"] = pc.utf8_rpad(digits, MOST_DIGITS, "0")
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (number("d", 1) - 1)
    seconds = (hour * 60 + number("M")) * 60 + number("S")
    times = days.astype(TIMES) + (seconds * 1_000_000 + number("f")).astype("timedelta64[us]")
    exists = np.asarray(found.is_valid()) & (days.astype("datetime64[M]") == months) & (year > 0)
    return np.where(exists, times, np.datetime64("NaT", "us"))


_FIRST_SHORT_YEAR = 1969
"""First of the 100 years that %y stands for."""


def _without_offsets(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Returns (texts without their offsets from UTC, the offsets; null for a text without one)."""
    found = pc.extract_regex(texts, _OFFSET_OF_TEXT)
    times, offsets = (pc.struct_field(found, name) for name in ("time", "offset"))
    return pc.coalesce(times, texts), offsets


@cache
def _offset_of(date_format: str) -> tuple[str, str]:
    """Returns (format without its offset from UTC, the offset; "" if it has none)."""
    found = _OFFSET_OF_FORMAT.fullmatch(date_format)
    return (found[1], found[2]) if found else (date_format, "")


def _distances(offsets: pa.Array) -> npt.NDArray[np.timedelta64]:
    coded = offsets.dictionary_encode()
    distances = [*map(_distance, coded.dictionary.to_pylist()), np.timedelta64("NaT", "us")]
    places = np.asarray(coded.indices.fill_null(len(distances) - 1), dtype=np.int64)
    return np.array(distances, "m8[us]")[places]


@cache
def _distance(offset: str) -> np.timedelta64:
    digits = re.sub("[^0-9]", "", offset).ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return np.timedelta64(-minutes if "-" in offset else minutes, "m")


def _iso_times(texts: pa.Array, date_format: str) -> Dates | None:
    """Returns the times of texts in an ISO 8601 format that Arrow can read; None for other texts.
    Arrow's parser is ten times as fast as the general one. It also accepts texts of other lengths
    and separators; these are excluded, because writing their times would not restore them."""
    if date_format not in _ISO_LENGTHS or not len(texts):
        return None
    length, mark = _ISO_LENGTHS[date_format]
    lengths = pc.binary_length(texts)
    if pc.min(lengths).as_py() != length or pc.max(lengths).as_py() != length:
        return None
    if mark and not pc.all(pc.equal(pc.utf8_slice_codeunits(texts, 10, 11), mark)).as_py():
        return None
    try:
        times = texts.cast(pa.timestamp("s")).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return times.astype(TIMES) if times.min() >= FIRST_TIME and times.max() <= LAST_TIME else None


_ISO_LENGTHS = {
    "%Y-%m-%d": (10, ""),
    "%Y-%m-%d %H:%M": (16, " "),
    "%Y-%m-%dT%H:%M": (16, "T"),
    "%Y-%m-%d %H:%M:%S": (19, " "),
    "%Y-%m-%dT%H:%M:%S": (19, "T"),
}
"""For each ISO 8601 format that Arrow reads: length of its texts, separator of date and time."""


def write_dates(times: Dates, date_format: str, digits: int | None = None) -> pa.Array:
    """Writes each of n times without NaT as a string; `digits` is the number of decimals of a
    second that `%f` writes (None for 6). Shape: (n,)."""
    index = pd.DatetimeIndex(times + _distance(_offset_of(date_format)[1]))
    tokens = [_token_texts(index, token, digits) for token in _TOKEN.findall(date_format)]
    pairs = zip(_TOKEN.split(date_format), [*tokens, ""], strict=True)
    parts = [part for pair in pairs for part in pair]
    return pc.binary_join_element_wise(*[x for x in parts if not isinstance(x, str) or x], "")


def are_read(texts: pa.Array, date_format: str) -> Mask:
    """Returns a mask of the n strings that are dates in the format, even if they lack its leading
    zeros. Shape: (n,)."""
    return ~np.isnat(read_dates(texts, date_format))


def second_digits(texts: pa.Array, date_format: str) -> int:
    """Returns the maximum number of decimals of a second in the strings, at most MOST_DIGITS; 0 if
    the format has no decimals."""
    if "%f" not in date_format:
        return 0
    times = _without_offsets(texts)[0] if has_offset(date_format) else texts
    found = pc.extract_regex(times, r"[0-9:]\.(?P<digits>[0-9]+)[^0-9]*$")
    digits = pc.max(pc.utf8_length(pc.struct_field(found, "digits"))).as_py()
    return min(digits or MOST_DIGITS, MOST_DIGITS)


def have_finer_digits(texts: pa.Array) -> bool:
    """Returns whether any string has decimals of a second beyond microseconds."""
    return bool(pc.any(pc.match_substring_regex(texts, _FINER)).as_py())


def _without_finer_digits(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, _FINER, r"\1")


def resolution(date_format: str, digits: int | None) -> np.timedelta64:
    """Returns the smallest time step of the format; `%f` writes `digits` decimals, or 6 if None."""
    tokens = set(_TOKEN.findall(date_format))
    if "%f" in tokens:
        return np.timedelta64(10 ** max(MOST_DIGITS - (6 if digits is None else digits), 0), "us")
    if "%S" in tokens:
        return np.timedelta64(1, "s")
    if "%M" in tokens:
        return np.timedelta64(1, "m")
    return np.timedelta64(1, "h") if tokens & {"%H", "%I", "%-H", "%-I"} else np.timedelta64(1, "D")


@cache
def _shape(date_format: str) -> re.Pattern[str]:
    """Returns a regular expression for the format's arrangement of digits, letters and signs."""
    tokens = [
        r"[1-9]?\d" if token.startswith("%-") else _TOKENS[token[-1]].shape
        for token in _TOKEN.findall(date_format)
    ]
    literal = [re.escape(text) for text in _TOKEN.split(date_format)]
    return re.compile("".join(x for pair in zip(literal, [*tokens, ""], strict=True) for x in pair))


def _restores(texts: pa.Array, date_format: str) -> bool:
    digits = second_digits(texts, date_format)
    return all(_is_written_so(chunk, date_format, digits) for chunk in chunks(texts))


def _is_written_so(texts: pa.Array, date_format: str, digits: int) -> bool:
    if _iso_times(texts, date_format) is not None:
        return True
    times = _read_dates(texts, date_format)
    if np.isnat(times).any():
        return False
    if date_format == "%Y%m%d" and not _plausible(times):
        return False
    written = write_dates(times, date_format, digits)
    return bool(written.equals(_without_finer_digits(texts) if digits == MOST_DIGITS else texts))


def _plausible(times: Dates) -> bool:
    years = times.astype("datetime64[Y]").astype(int) + 1970
    are_plausible = (years >= FIRST_YEAR) & (years <= LAST_YEAR)
    return bool((are_plausible | (times == LAST_TIME.astype("datetime64[D]"))).all())


def _token_texts(index: pd.DatetimeIndex, token: str, digits: int | None) -> pa.Array | str:
    """Returns the text of one format token for each time, or one text if all are equal."""
    if token == "%%":
        return "%"
    number = np.asarray(_TOKENS[token[-1]].number(index), dtype=np.int64)
    if token == "%f":
        texts = pc.utf8_lpad(pa.array(number).cast(pa.string()), MOST_DIGITS, "0")
        return pc.utf8_slice_codeunits(texts, 0, 6 if digits is None else digits)
    words = _BARE if token.startswith("%-") else _TOKENS[token[-1]].words
    if token == "%Y":
        first, last = int(number.min(initial=9999)), int(number.max(initial=0))
        number, words = number - first, [f"{year:04d}" for year in range(first, last + 1)]
    return pa.array(words, pa.string()).take(pa.array(number))
