"""Notations of plain numbers in text: infers them, reads numbers, and writes them back unchanged.

A notation determines the text of each number: shortest decimals, fixed decimals, or exponents by
magnitude. For every column with a consistent notation, `write_numbers(read_numbers(t)) = t`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Mask, Numbers
from gcvae.spelling.forms import Notation
from gcvae.spelling.plain_numbers import PlainNumbers, plain_numbers
from gcvae.spelling.text_bytes import may_be_numbers

NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
WHOLE = r"^[+-]?(0|[1-9][0-9]{0,18})$"
LONG_WHOLE = r"^[+-]?[0-9]{19,}$"
LARGEST_WHOLE = float(2**63 - 1024)  # the largest float64 that an int64 holds
_CHUNK_TEXTS = 1 << 17
MOST_DECIMALS = 15  # significant digits of a float64
_EXPONENT = re.compile(r"([eE])(\+?)(0*1)$")

FloatArray = Numbers
Texts: TypeAlias = pa.Array  # of strings, without nulls


@dataclass(frozen=True)
class Spelling:
    """How the digits of a column's numbers are written as strings.

    Attributes:
        decimals: Maximum number of decimals; None for no limit.
        padded: Whether every cell has exactly `decimals` decimals.
        notation: Differences from plain decimals, such as exponents; None if there are none.
        exact: Whether reading and then writing restores every cell.
    """

    decimals: int | None = None
    padded: bool = False
    notation: Notation | None = None
    exact: bool = True


def chunks(texts: Texts) -> Iterator[Texts]:
    """Yields slices of an array of strings, at least one, to limit the memory for intermediate
    results."""
    for first in range(0, max(len(texts), 1), _CHUNK_TEXTS):
        yield texts.slice(first, _CHUNK_TEXTS)


def read_plain(texts: Texts) -> PlainNumbers | None:
    """Returns the numbers that the strings represent if all are plain (digits with at most a sign
    and a point); else None."""
    return plain_numbers(list(chunks(texts)))


def are_numbers(texts: Texts) -> Mask:
    """Returns a mask of those of n strings that are finite numbers without leading zeros or
    separators of thousands. Shape: (n,).

    Whole numbers beyond 64 bits are excluded, because float64 cannot restore their digits.

    >>> are_numbers(pa.array(["1.50", "-3e2", "007", "1,000", "nan"])).tolist()
    [True, True, False, False, False]
    """
    return np.concatenate([_are_numbers(chunk) for chunk in chunks(texts)])


def _are_numbers(texts: Texts) -> Mask:
    if plain_numbers([texts]) is not None:
        return np.ones(len(texts), dtype=bool)
    found = may_be_numbers(texts)
    if not found.all():
        if found.any():
            found[found] = _are_numbers(texts.filter(pa.array(found)))
        return found
    numbers = _where(_matches(texts, NUMBER), texts, np.isfinite)
    return numbers & (~_matches(texts, LONG_WHOLE) | _are_whole(texts))


def are_whole(texts: Texts) -> Mask:
    """Returns a mask of those of n strings that are whole numbers of at most 64 bits. Shape:
    (n,)."""
    return np.concatenate([_are_whole(chunk) for chunk in chunks(texts)])


def _are_whole(texts: Texts) -> Mask:
    plain = plain_numbers([texts])
    if plain is not None and not plain.some_points:
        return np.ones(len(texts), dtype=bool)
    return _where(_matches(texts, WHOLE), texts, lambda values: np.abs(values) <= LARGEST_WHOLE)


def _matches(texts: Texts, pattern: str) -> Mask:
    found = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return np.array(found, dtype=bool)


def _where(chosen: Mask, texts: Texts, check: Callable[[FloatArray], Any]) -> Mask:
    """Returns a mask of those chosen texts whose number passes the check."""
    if chosen.any():
        chosen[chosen] = check(read_numbers(texts.filter(pa.array(chosen))))
    return chosen


def read_numbers(texts: Texts) -> FloatArray:
    """Converts n strings to the nearest float64 numbers. Shape: (n,)."""
    return np.asarray(texts.cast(pa.float64()).to_numpy(zero_copy_only=False))


def read_whole(texts: Texts) -> npt.NDArray[np.int64]:
    """Converts n strings to integers. Shape: (n,)."""
    digits = pc.utf8_ltrim(texts, characters="+")  # Arrow accepts it for floats only
    return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False))


def numbers_of(texts: Texts) -> npt.NDArray[Any]:
    """Converts n strings to numbers: int64 if all are whole, else float64. Shape: (n,)."""
    plain = read_plain(texts)
    if plain is not None:
        return plain.values
    is_whole = all(_are_whole(chunk).all() for chunk in chunks(texts))
    return read_whole(texts) if is_whole else read_numbers(texts)


def write_numbers(values: FloatArray, spelling: Spelling) -> Texts:
    """Writes n finite numbers as strings, in a notation with decimals or exponents. Shape: (n,)."""
    notation = spelling.notation or Notation()
    if notation.significant is not None:
        return pa.array([f"{x:.{notation.significant}g}" for x in values.tolist()], pa.string())
    if spelling.padded and spelling.decimals is not None:
        texts = pa.array([f"{x:.{spelling.decimals}f}" for x in values.tolist()], pa.string())
    else:
        texts = _shortest(values, notation.point)
    return _with_exponents(texts, values, notation)


def write_whole(values: npt.NDArray[np.int64], spelling: Spelling) -> Texts:
    """Writes n integers as strings, with zeros as decimals if the notation has decimals. Shape:
    (n,)."""
    notation = spelling.notation or Notation()
    if notation.exponent_from is not None or notation.significant is not None:
        return write_numbers(values.astype(np.float64), spelling)
    decimals = spelling.decimals if spelling.padded and spelling.decimals else int(notation.point)
    texts = pa.array(values).cast(pa.string())
    return pc.binary_join_element_wise(texts, "." + "0" * decimals, "") if decimals else texts


def infer_spelling(
    texts: Texts, *, whole: bool = False, plain: PlainNumbers | None = None
) -> Spelling:
    """Infers how numbers are written: the first notation that restores every string or, if there is
    none, one that preserves the values.

    Args:
        texts: Numbers as strings, each distinct one at least once.
        whole: Whether all numbers are whole. They are then not converted to float64, which would
            lose digits.
        plain: Result of `read_plain` for the strings; None if it is not known.

    >>> infer_spelling(pa.array(["1.50", "2.25"])) == Spelling(decimals=2, padded=True)
    True
    """
    plain = read_plain(texts) if plain is None else plain
    if plain is not None:
        return _spelling_of_plain(plain, texts, whole=whole)
    if whole and all(_is_plain_whole(chunk) for chunk in chunks(texts)):
        return Spelling(0)
    values = read_numbers(texts)
    parts = _Parts.joined([_parts(chunk) for chunk in chunks(texts)])
    for spelling in _candidates(parts, values):
        if all(_is_spelled(chunk, spelling) for chunk in chunks(texts)):
            return spelling
    return Spelling(decimals=_limited(parts.most_decimals), exact=False)


def _is_plain_whole(texts: Texts) -> bool:
    is_whole = bool(_are_whole(texts).all())
    return is_whole and bool(write_whole(read_whole(texts), Spelling(0)).equals(texts))


def _is_spelled(texts: Texts, spelling: Spelling) -> bool:
    """Returns whether reading and then writing the numbers in a notation restores every text."""
    return bool(write_numbers(read_numbers(texts), spelling).equals(texts))


def _spelling_of_plain(plain: PlainNumbers, texts: Texts, *, whole: bool) -> Spelling:
    """Returns the notation of plain numbers, which mostly follows from statistics without writing
    them."""
    if whole and not plain.some_points:
        return Spelling(0)
    fewest, most = plain.decimals
    candidates = _plain_candidates(fewest, most, plain.most_digits, some_points=plain.some_points)
    for spelling in candidates:
        is_exact = _is_known_exact(plain, spelling)
        if is_exact is None:
            is_exact = all(_is_spelled(chunk, spelling) for chunk in chunks(texts))
        if is_exact:
            return spelling
    return Spelling(decimals=_limited(most), exact=False)


def _plain_candidates(
    fewest: int, most: int, most_digits: int, *, some_points: bool
) -> list[Spelling]:
    """Returns the possible notations without exponents, given the least and the most decimals of a
    number."""
    limited = _limited(most)
    found = [Spelling(most, padded=True)] if 0 < fewest == most <= 30 else []
    found.append(Spelling(limited))
    if some_points:
        found.append(Spelling(limited, notation=Notation(point=True)))
    return found + _significant(limited, most_digits)


def _significant(decimals: int | None, most_digits: int) -> list[Spelling]:
    """Returns the possible notations with a fixed number of significant digits."""
    if most_digits < MOST_DECIMALS:
        return []
    counts = sorted({most_digits, 15, 16, 17})
    return [Spelling(decimals, notation=Notation(significant=n)) for n in counts if n <= 30]


def _is_known_exact(plain: PlainNumbers, spelling: Spelling) -> bool | None:
    """Returns whether a notation restores every text; None if only writing the numbers can tell."""
    if spelling.padded:
        return plain.are_padded()
    if spelling.notation is None:
        return plain.are_shortest(with_point=False)
    return plain.are_shortest(with_point=True) if spelling.notation.point else None


def check_notation(notation: Notation) -> Notation:
    """Returns the notation unchanged if it is valid.

    Raises:
        ValueError: A field is out of range; the message describes a valid one.
    """
    if _EXPONENT.fullmatch(str(notation.exponent)) is None:
        raise ValueError('an exponent such as "e+01", "E01" or "e1"')
    counts = (notation.significant, notation.mantissa_decimals)
    if not all(n is None or (type(n) is int and 0 <= n <= 30) for n in counts):
        raise ValueError("counts of digits from 0 to 30")
    limits = (notation.exponent_below, notation.exponent_from)
    are_numbers = all(x is None or type(x) in (int, float) for x in limits)
    if not are_numbers or type(notation.point) is not bool:
        raise ValueError("magnitudes that are numbers, and a point that is true or false")
    return notation


@dataclass(frozen=True)
class _Parts:
    """Parts of number texts: presence of a point, number of decimals, exponent."""

    has_point: Mask
    decimals: npt.NDArray[np.int64]
    has_exponent: Mask
    exponents: list[str]  # "E-05" of each text that has one
    most_decimals: int
    most_digits: int

    @classmethod
    def joined(cls, parts: Sequence[_Parts]) -> _Parts:
        """Concatenates the parts (such as digits and exponents) of the numbers in several
        chunks."""
        return cls(
            has_point=np.concatenate([part.has_point for part in parts]),
            decimals=np.concatenate([part.decimals for part in parts]),
            has_exponent=np.concatenate([part.has_exponent for part in parts]),
            exponents=[exponent for part in parts for exponent in part.exponents],
            most_decimals=max(part.most_decimals for part in parts),
            most_digits=max(part.most_digits for part in parts),
        )


def _parts(texts: Texts) -> _Parts:
    fields = pc.extract_regex(
        texts,
        r"^[+-]?(?P<whole>[0-9]*)(?P<point>\.?)(?P<fraction>[0-9]*)(?P<exponent>(?:[eE].*)?)$",
    )
    whole, point, fraction, exponent = (
        fields.field(i) for i in (fields.type.get_field_index(n) for n in _PART_NAMES)
    )
    decimals = _lengths(fraction)
    has_exponent = _lengths(exponent) > 0
    exponents = exponent.filter(pa.array(has_exponent)).to_pylist()
    real_decimals = decimals.copy()
    real_decimals[has_exponent] -= np.array([int(e[1:]) for e in exponents], dtype=np.int64)
    digits = decimals + _lengths(whole)
    return _Parts(
        has_point=_lengths(point) > 0,
        decimals=decimals,
        has_exponent=has_exponent,
        exponents=exponents,
        most_decimals=max(int(real_decimals.max(initial=0)), 0),
        most_digits=int(digits.max(initial=0)),
    )


_PART_NAMES = ("whole", "point", "fraction", "exponent")


def _lengths(texts: Texts) -> npt.NDArray[np.int64]:
    return np.asarray(pc.binary_length(texts).to_numpy(zero_copy_only=False), dtype=np.int64)


def _candidates(parts: _Parts, values: FloatArray) -> list[Spelling]:
    most = _limited(parts.most_decimals)
    found = []
    for exponents in _exponent_rules(parts, values):
        found += _fixed(parts, exponents)
        found.append(Spelling(most, notation=exponents))
        if parts.has_point.any():
            found.append(Spelling(most, notation=replace(exponents or Notation(), point=True)))
    return found + _significant(most, parts.most_digits)


def _fixed(parts: _Parts, exponents: Notation | None) -> list[Spelling]:
    """Returns the notation with a fixed number of decimals, or an empty list if numbers have more
    decimals."""
    plain = parts.decimals[~parts.has_exponent]
    if not plain.size or not 0 < plain.min() == plain.max() == max(
        parts.most_decimals, plain.max()
    ):
        return []
    return [Spelling(int(plain[0]), padded=True, notation=exponents)] if plain[0] <= 30 else []


def _exponent_rules(parts: _Parts, values: FloatArray) -> list[Notation | None]:
    """Returns the possible rules for the magnitudes at which numbers have an exponent; [None]
    without exponents."""
    if not parts.exponents:
        return [None]
    rule = replace(_exponent_limits(parts, values), exponent=_exponent_spelling(parts.exponents))
    decimals = int(parts.decimals[parts.has_exponent].max())
    return [rule, replace(rule, mantissa_decimals=decimals)] if decimals <= 30 else [rule]


def _exponent_limits(parts: _Parts, values: FloatArray) -> Notation:
    if parts.has_exponent.all():
        return Notation(exponent_from=0.0)
    sizes = np.abs(values[parts.has_exponent])
    small, large = sizes[sizes < 1], sizes[sizes >= 1]
    return Notation(
        exponent_below=_power_above(small.max()) if small.size else None,
        exponent_from=_power_upto(large.min()) if large.size else None,
    )


def _exponent_spelling(exponents: list[str]) -> str:
    positive = [e for e in exponents if e[1] != "-"]
    plus = "+" if not positive or positive[0][1] == "+" else ""
    digits = min(len(e.lstrip("eE+-")) for e in exponents)
    return exponents[0][0] + plus + "1".zfill(digits)


def _power_above(size: float) -> float:
    """Returns the smallest power of ten above a number below 1: 1e-04 for 9.8e-05."""
    return float(f"1e{int(f'{size:e}'.split('e')[1]) + 1}")


def _power_upto(size: float) -> float:
    return float(f"1e{int(f'{size:e}'.split('e')[1])}")


def _shortest(values: FloatArray, point: bool) -> Texts:
    """Returns the shortest decimal text that restores each number, without exponents."""
    texts = pa.array(values).cast(pa.string())
    with_exponent = pc.match_substring(texts, "e").to_numpy(zero_copy_only=False)
    if with_exponent.any():
        positional = [format(Decimal(repr(x)), "f") for x in values[with_exponent].tolist()]
        positional = [t.removesuffix(".0") for t in positional]
        texts = pc.replace_with_mask(
            texts, pa.array(with_exponent), pa.array(positional, pa.string())
        )
    if point:
        whole = pc.invert(pc.match_substring(texts, "."))
        texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    return texts


def _with_exponents(texts: Texts, values: FloatArray, notation: Notation) -> Texts:
    """Rewrites numbers with an exponent if their magnitude requires it, or if they are whole and
    exceed 64 bits."""
    sizes = np.abs(values)
    chosen = sizes > LARGEST_WHOLE
    if chosen.any():
        chosen &= ~pc.match_substring(texts, ".").to_numpy(zero_copy_only=False).astype(bool)
    if notation.exponent_below is not None:
        chosen |= (sizes < notation.exponent_below) & (sizes > 0)
    if notation.exponent_from is not None:
        chosen |= sizes >= notation.exponent_from
    if not chosen.any():
        return texts
    written = [_scientific(x, notation) for x in values[chosen].tolist()]
    return pc.replace_with_mask(texts, pa.array(chosen), pa.array(written, pa.string()))


def _scientific(value: float, notation: Notation) -> str:
    match = _EXPONENT.fullmatch(notation.exponent)
    assert match is not None
    letter, plus, digits = match.groups()
    if notation.mantissa_decimals is not None:
        text = f"{value:.{notation.mantissa_decimals}e}"
    else:
        text = _shortest_scientific(value)
    mantissa, power = text.split("e")
    sign = "-" if int(power) < 0 else plus
    return f"{mantissa}{letter}{sign}{abs(int(power)):0{len(digits)}d}"


def _shortest_scientific(value: float) -> str:
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int)
    fraction = "".join(map(str, digits[1:]))
    mantissa = f"{digits[0]}.{fraction}" if fraction else f"{digits[0]}"
    return f"{'-' if sign else ''}{mantissa}e{power + len(digits) - 1}"


def _limited(decimals: int) -> int | None:
    return decimals if decimals <= MOST_DECIMALS else None


def spelling_of(column: Any) -> Spelling:
    """Returns how the numbers of a column are written, according to its schema."""
    return Spelling(column.decimals, column.padded, column.notation)
