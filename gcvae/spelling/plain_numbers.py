"""Plain numbers: digits with at most a sign and a decimal point.

float64 restores up to fifteen digits. Therefore properties of a column's notation follow from the
positions of points and trailing zeros, without regular expressions and without writing numbers
back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gcvae.spelling.text_bytes import TextBytes

_SIGN, _POINT, _SLASH, _ZERO, _NINE = b"-./09"
MOST_SURE_CHARACTERS = 15  # digits that a float64 always restores
_MOST_WHOLE_DIGITS = 18  # digits that always fit an int64
_MOST_CHARACTERS = 300  # characters of numbers that are always finite


@dataclass(frozen=True)
class PlainNumbers:
    """Values of U plain numbers (digits with at most a sign and a decimal point), and properties of
    the strings that represent them.

    Attributes:
        values: Values: int64 if no string has a point, else float64. Shape: (U,).
        decimals: Minimum and maximum number of decimals.
        most_digits: Maximum number of digits.
        longest: Maximum number of characters.
        some_points: Whether at least one string has a point.
        all_points: Whether every string has a point.
        has_bare_point: Whether a string begins or ends with its point: .5, 5.
        has_last_zero: Whether the decimals of a string end with a zero: 1.50, 1.0.
        has_late_zero: Whether such a zero follows another decimal: 1.50.
        has_negative_zero: Whether a string is a negative zero, such as -0.0.
    """

    values: npt.NDArray[Any]
    decimals: tuple[int, int]
    most_digits: int
    longest: int
    some_points: bool
    all_points: bool
    has_bare_point: bool
    has_last_zero: bool
    has_late_zero: bool
    has_negative_zero: bool

    @property
    def are_exact(self) -> bool:
        """Whether every string has at most 15 characters, so that float64 restores its digits."""
        return self.longest <= MOST_SURE_CHARACTERS

    def are_shortest(self, *, with_point: bool) -> bool | None:
        """Returns whether each string is the shortest that represents its number; None if this
        cannot be decided.

        Args:
            with_point: Whether whole numbers are to end in ".0".
        """
        if not self.are_exact or self.has_negative_zero:
            return None
        if with_point:
            return self.all_points and not (self.has_bare_point or self.has_late_zero)
        return not (self.has_bare_point or self.has_last_zero)

    def are_padded(self) -> bool | None:
        """Returns whether all numbers are written with equally many decimals; None if float64 may
        not restore their digits."""
        if not self.are_exact:
            return None
        return self.decimals[0] == self.decimals[1] and not self.has_bare_point


def plain_numbers(chunks: list[pa.Array]) -> PlainNumbers | None:
    """Returns the values and notation of the strings in several chunks; None if any is not a plain
    number."""
    found = []
    for chunk in chunks:
        numbers = _plain_numbers(chunk)
        if numbers is None:
            return None
        found.append(numbers)
    if len(found) == 1:
        return found[0]
    return PlainNumbers(
        values=np.concatenate([one.values for one in found]),
        decimals=(min(one.decimals[0] for one in found), max(one.decimals[1] for one in found)),
        most_digits=max(one.most_digits for one in found),
        longest=max(one.longest for one in found),
        some_points=any(one.some_points for one in found),
        all_points=all(one.all_points for one in found),
        has_bare_point=any(one.has_bare_point for one in found),
        has_last_zero=any(one.has_last_zero for one in found),
        has_late_zero=any(one.has_late_zero for one in found),
        has_negative_zero=any(one.has_negative_zero for one in found),
    )


def _plain_numbers(texts: pa.Array) -> PlainNumbers | None:
    if not len(texts) or texts.type != pa.string():
        return None
    held = TextBytes.of(texts)
    if not _are_plain(held):
        return None
    lengths, is_point = held.lengths, held.data == _POINT
    decimals = _decimals(held, np.flatnonzero(is_point))
    if decimals is None:
        return None
    has_point = decimals >= 0
    is_signed = held.firsts == _SIGN
    digits = lengths - has_point - is_signed
    if ((digits > _MOST_WHOLE_DIGITS) & ~has_point).any():
        return None
    values = _values(texts, whole=not has_point.any())
    if values is None:
        return None
    is_negative_zero = is_signed & (values == 0)
    if is_negative_zero.any() and values.dtype == np.int64:
        return None  # only a float64 keeps its sign
    ends_in_zero = (decimals > 0) & (held.lasts == _ZERO)
    begins = held.data.take(held.starts + is_signed, mode="clip")
    is_bare = (begins == _POINT) | (decimals == 0)
    decimals = np.maximum(decimals, 0)
    return PlainNumbers(
        values=values,
        decimals=(int(decimals.min()), int(decimals.max())),
        most_digits=int(digits.max()),
        longest=int(lengths.max()),
        some_points=bool(has_point.any()),
        all_points=bool(has_point.all()),
        has_bare_point=bool(is_bare.any()),
        has_last_zero=bool(ends_in_zero.any()),
        has_late_zero=bool((ends_in_zero & (decimals > 1)).any()),
        has_negative_zero=bool(is_negative_zero.any()),
    )


def _are_plain(held: TextBytes) -> bool:
    """Returns whether all texts consist of digits, signs and points, without leading zeros."""
    lengths = held.lengths
    if not 0 < lengths.min() <= lengths.max() <= _MOST_CHARACTERS:
        return False
    data = held.data
    if ((data - _SIGN) > _NINE - _SIGN).any() or (data == _SLASH).any():
        return False
    begins = held.starts + (held.firsts == _SIGN)
    is_zero = data.take(begins, mode="clip") == _ZERO
    is_followed = data.take(begins + 1, mode="clip") != _POINT
    return not (is_zero & is_followed & (begins + 1 < held.ends)).any()


def _decimals(held: TextBytes, points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Returns the number of decimals of each text, -1 for a text without a point; None if a text
    has two points."""
    decimals = np.full(len(held.starts), -1, dtype=np.int64)
    if not len(points):
        return decimals
    if len(points) == len(decimals):
        is_one_each = ((held.starts <= points) & (points < held.ends)).all()
        return held.ends - points - 1 if is_one_each else None
    owners = np.searchsorted(held.ends, points, side="right")
    if (owners[1:] == owners[:-1]).any():
        return None
    decimals[owners] = held.ends[owners] - points - 1
    return decimals


def _values(texts: pa.Array, *, whole: bool) -> npt.NDArray[Any] | None:
    """Returns the value of each text; None if a sign or point is misplaced."""
    try:
        read = texts.cast(pa.int64() if whole else pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.asarray(read.to_numpy(zero_copy_only=False))
