"""Notations of plain numbers in text: infers them, reads numbers, and writes them back unchanged.

For every column with a consistent notation, `write_numbers(read_numbers(t)) = t`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.spelling.forms import Notation

NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
WHOLE = r"^[+-]?(0|[1-9][0-9]{0,18})$"
LONG_WHOLE = r"^[+-]?[0-9]{19,}$"
LARGEST_WHOLE = float(2**63 - 1024)  # the largest float64 that an int64 holds
_CHUNK_TEXTS = 1 << 17
MOST_DECIMALS = 15  # significant digits of a float64
_MOST_DIGITS = 30  # digits of the notations that are tried
_FORMAT = re.compile(r"\.([0-9]|[12][0-9]|30)[eEg]")
_EXPONENT_BELOW, _EXPONENT_FROM = 1e-4, 1e16  # of Python

Texts: TypeAlias = pa.Array  # of strings, without nulls


@dataclass(frozen=True)
class Spelling:
    """How the digits of a column's numbers are written as strings.

    Attributes:
        decimals: Maximum number of decimals; None for no limit.
        padded: Whether every cell has exactly `decimals` decimals.
        notation: Differences from plain decimals, such as exponents, or None.
        exact: Whether reading and then writing restores every cell.
    """

    decimals: int | None = None
    padded: bool = False
    notation: Notation | None = None
    exact: bool = True


def chunks(texts: Texts) -> Iterator[Texts]:
    """Yields slices of an array, at least one, to limit the memory for intermediate results."""
    for first in range(0, max(len(texts), 1), _CHUNK_TEXTS):
        yield texts.slice(first, _CHUNK_TEXTS)


def are_numbers(texts: Texts) -> Mask:
    """Returns whether each of n strings is a finite number without leading zeros or separators of
    thousands. Shape: (n,).

    Whole numbers beyond 64 bits are excluded, because float64 cannot restore their digits.

    >>> are_numbers(pa.array(["1.50", "-3e2", "007", "1,000", "nan"])).tolist()
    [True, True, False, False, False]
    """
    return np.concatenate([_are_numbers(chunk) for chunk in chunks(texts)])


def _are_numbers(texts: Texts) -> Mask:
    numbers, are_long = _matches(texts, NUMBER), _matches(texts, LONG_WHOLE)
    if are_long.any():
        numbers &= ~are_long | _are_whole(texts)
    return _where(numbers, texts, np.isfinite)


def are_whole(texts: Texts) -> Mask:
    """Returns a mask of the n strings that are whole numbers of at most 64 bits. Shape: (n,)."""
    return np.concatenate([_are_whole(chunk) for chunk in chunks(texts)])


def _are_whole(texts: Texts) -> Mask:
    return _where(_matches(texts, WHOLE), texts, lambda values: np.abs(values) <= LARGEST_WHOLE)


def _matches(texts: Texts, pattern: str) -> Mask:
    found = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return np.array(found, dtype=bool)


def _where(chosen: Mask, texts: Texts, check: Callable[[Numbers], Any]) -> Mask:
    """Returns a mask of the chosen texts whose numbers pass the check."""
    if chosen.any():
        chosen[chosen] = check(read_numbers(texts.filter(pa.array(chosen))))
    return chosen


def read_numbers(texts: Texts) -> Numbers:
    """Converts n strings to the nearest float64 numbers. Shape: (n,)."""
    return np.asarray(texts.cast(pa.float64()).to_numpy(zero_copy_only=False))


def read_whole(texts: Texts) -> Codes:
    """Converts n strings to integers. Shape: (n,)."""
    digits = pc.utf8_ltrim(texts, characters="+")  # Arrow accepts it for floats only
    return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False))


def numbers_of(texts: Texts) -> npt.NDArray[Any]:
    """Converts n strings to numbers: int64 if all are whole, else float64. Shape: (n,)."""
    is_whole = all(_are_whole(chunk).all() for chunk in chunks(texts))
    return read_whole(texts) if is_whole else read_numbers(texts)


def write_numbers(values: Numbers, spelling: Spelling) -> Texts:
    """Writes n finite numbers in a notation. Shape: (n,)."""
    notation = spelling.notation or Notation()
    if notation.format is not None:
        return pa.array([format(x, notation.format) for x in values.tolist()], pa.string())
    if spelling.padded and spelling.decimals is not None:
        texts = pa.array([f"{x:.{spelling.decimals}f}" for x in values.tolist()], pa.string())
    else:
        texts = _shortest(values, notation.point)
    return _with_exponents(texts, values, notation.exponents)


def write_whole(values: Codes, spelling: Spelling) -> Texts:
    """Writes n integers in a notation. Shape: (n,)."""
    notation = spelling.notation or Notation()
    if (notation.exponents, notation.format) != (None, None):
        return write_numbers(values.astype(np.float64), spelling)
    decimals = spelling.decimals if spelling.padded and spelling.decimals else int(notation.point)
    texts = pa.array(values).cast(pa.string())
    return pc.binary_join_element_wise(texts, "." + "0" * decimals, "") if decimals else texts


def infer_spelling(texts: Texts, *, whole: bool = False) -> Spelling:
    """Infers how numbers are written: the first notation that restores every string or, if there is
    none, one that preserves the values.

    Args:
        texts: Numbers as strings; repetitions may be left out.
        whole: Whether all numbers are whole; float64 would lose digits of large ones.

    >>> infer_spelling(pa.array(["1.50", "2.25"])) == Spelling(decimals=2, padded=True)
    True
    """
    if whole and all(_is_plain_whole(chunk) for chunk in chunks(texts)):
        return Spelling(0)
    return next(
        spelling
        for spelling in _candidates(texts)
        if not spelling.exact or all(_is_spelled(chunk, spelling) for chunk in chunks(texts))
    )


def _is_plain_whole(texts: Texts) -> bool:
    is_whole = bool(_are_whole(texts).all())
    return is_whole and bool(write_whole(read_whole(texts), Spelling(0)).equals(texts))


def _is_spelled(texts: Texts, spelling: Spelling) -> bool:
    return bool(write_numbers(read_numbers(texts), spelling).equals(texts))


def check_notation(notation: Notation) -> Notation:
    """Returns the notation unchanged if it is valid.

    Raises:
        ValueError: A field is out of range; the message describes a valid one.
    """
    formats = [notation.format, notation.exponents or None]
    if not all(f is None or _FORMAT.fullmatch(str(f)) for f in formats):
        raise ValueError('formats such as ".17g" or ".6e"')
    if type(notation.point) is not bool:
        raise ValueError("a point that is true or false")
    return notation


def _candidates(texts: Texts) -> Iterator[Spelling]:
    """Yields the notations that the positions of points and exponents permit, and at last one that
    only preserves the values."""
    lengths = np.asarray(pc.binary_length(texts))
    point = np.asarray(pc.find_substring(texts, "."))
    exponent = np.asarray(pc.find_substring(texts, "e", ignore_case=True))
    has_point, has_exponent = point >= 0, exponent >= 0
    ends = np.where(has_exponent, exponent, lengths)
    most_digits = int((ends - has_point - _matches(texts, "^[+-]")).max(initial=0))
    decimals = np.where(has_point, ends - point - 1, 0)
    plain, mantissa = decimals[~has_exponent], decimals[has_exponent]
    most_decimals = int(plain.max(initial=0))
    rules: list[Notation | None] = [None]
    formats = [f".{n}g" for n in sorted({most_digits, 15, 16, 17}) if most_digits >= MOST_DECIMALS]
    if has_exponent.any():
        scientific = texts.filter(pa.array(has_exponent)).to_pylist()
        powers = np.array([int(re.split("[eE]", text)[1]) for text in scientific])
        most_decimals = max(most_decimals, int((mantissa - powers).max()))
        exponents = f".{mantissa.max()}{'E' if 'E' in scientific[0] else 'e'}"
        rules = [Notation(exponents=""), Notation(exponents=exponents)]
        formats = [exponents, *formats] if has_exponent.all() else formats
    limited = most_decimals if most_decimals <= MOST_DECIMALS else None
    for rule in rules:
        if rule is None and 0 < plain.min() == most_decimals <= _MOST_DIGITS:
            yield Spelling(most_decimals, padded=True)
        yield Spelling(limited, notation=rule)
        if has_point.any():
            yield Spelling(limited, notation=replace(rule or Notation(), point=True))
    for found in formats:
        if _FORMAT.fullmatch(found):
            yield Spelling(limited, notation=Notation(format=found))
    yield Spelling(limited, exact=False)


def _shortest(values: Numbers, point: bool) -> Texts:
    """Returns the shortest decimal text that restores each number, without exponents."""
    texts = pa.array(values).cast(pa.string())
    with_exponent = pc.match_substring(texts, "e").to_numpy(zero_copy_only=False)
    if with_exponent.any():
        positional = [np.format_float_positional(x, trim="-") for x in values[with_exponent]]
        texts = pc.replace_with_mask(
            texts, pa.array(with_exponent), pa.array(positional, pa.string())
        )
    if point:
        whole = pc.invert(pc.match_substring(texts, "."))
        texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    return texts


def _with_exponents(texts: Texts, values: Numbers, exponents: str | None) -> Texts:
    """Returns texts in which numbers have an exponent if the notation demands it, or if they are
    whole and beyond 64 bits."""
    sizes = np.abs(values)
    chosen = sizes > LARGEST_WHOLE
    if chosen.any():
        chosen &= ~pc.match_substring(texts, ".").to_numpy(zero_copy_only=False).astype(bool)
    if exponents is not None:
        chosen |= ((sizes < _EXPONENT_BELOW) & (sizes > 0)) | (sizes >= _EXPONENT_FROM)
    if not chosen.any():
        return texts
    written = [format(x, exponents or "") for x in values[chosen].tolist()]
    return pc.replace_with_mask(texts, pa.array(chosen), pa.array(written, pa.string()))


def spelling_of(column: Any) -> Spelling:
    """Returns how the numbers of a column are written, according to its schema."""
    return Spelling(column.decimals, column.padded, column.notation)
