"""Reads and writes formatted numbers: `1.234,50 €`, `$2,521.79`, `12 %`, `(474)`.

A numeral is the text of a plain number with a decimal point, such as `1234.50`. A number format f
maps numerals n to texts t and back:

    numerals(written_in(n, f), f) = n        written_in(numerals(t, f), f) = t

The first equation holds for every numeral, the second for every text that is written as f would.
Units do not change values: 12 % is 12.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gcvae.spelling.durations import DURATIONS, duration_numerals, duration_texts
from gcvae.spelling.forms import NumberFormat
from gcvae.spelling.number_text import Texts, are_numbers, chunks, numbers_of
from gcvae.spelling.written_numbers import (
    APOSTROPHES,
    DECIMALS,
    SIGNS,
    SPACES,
    Split,
    side_of,
    symbol_of,
)

_THOUSANDS = (",", ".", *SPACES, *APOSTROPHES)
GROUPINGS = ("thousands", "indian")


def read_members(given: object) -> dict[str, Any]:
    """Checks and returns the fields of a number format that the user specified.

    Args:
        given: A NumberFormat, or a JSON object with some of its fields.

    Raises:
        ValueError: A field is unknown or invalid; the message describes a valid one.
    """
    names = [f.name for f in fields(NumberFormat)]
    if isinstance(given, NumberFormat):
        return {name: getattr(given, name) for name in names}
    if not isinstance(given, Mapping) or set(given) - set(names):
        raise ValueError("an object of " + ", ".join(names))
    members = {name: value for name, value in given.items() if value is not None}
    _check_members(members)
    return members


def completed_format(members: Mapping[str, Any]) -> NumberFormat:
    """Returns the number format with the given fields, and defaults for the absent ones.

    Raises:
        ValueError: The fields contradict each other.
    """
    decimal = members.get("decimal", "," if members.get("thousands") == "." else ".")
    found = NumberFormat(**{**members, "decimal": decimal})
    if found.negative is not None and not _negative_unit(found.negative) <= _unit(found):
        raise ValueError('for "negative" only the unit of the prefix or the suffix')
    return found


def _negative_unit(negative: str) -> frozenset[str]:
    """Returns the unit in a text for minus one, such as "-$1".

    Raises:
        ValueError: The text does not represent minus one.
    """
    left, one, right = negative.partition("1")
    side = side_of(left, right)
    if not one or side is None or not side.is_negative or "1" in right:
        raise ValueError(
            'for "negative" how minus one is written, with its unit, such as "-$1", "(1)" or "1- €"'
        )
    return side.unit


def _check_members(members: Mapping[str, Any]) -> None:
    digits = members.get("grouped_from_digits", 4)
    if type(digits) is not int or not 4 <= digits <= 400:
        raise ValueError('for "grouped_from_digits" a whole number from 4')
    if not all(type(x) is str for name, x in members.items() if name != "grouped_from_digits"):
        raise ValueError("an object of texts")
    if members.get("decimal", ".") not in DECIMALS:
        raise ValueError('for "decimal" a point or a comma')
    if members.get("thousands", "") not in ("", *_THOUSANDS):
        raise ValueError('for "thousands" a comma, a point, a space, an apostrophe or nothing')
    if members.get("grouping", GROUPINGS[0]) not in GROUPINGS:
        raise ValueError('for "grouping" one of ' + ", ".join(GROUPINGS))
    for name in ("prefix", "suffix"):
        if re.search(rf"[0-9\r\n{re.escape(SIGNS)}]", members.get(name, "")):
            raise ValueError(f'for "{name}" a text without digits, signs and brackets')
    if re.search(r"(?<![^\W_])[.,]$|,$", members.get("prefix", "")):
        raise ValueError('for "prefix" a text that does not end in a decimal sign')
    if members.get("suffix", "").startswith(DECIMALS):
        raise ValueError('for "suffix" a text that does not begin with a decimal sign')
    if members.get("decimal", "") == members.get("thousands", "-"):
        raise ValueError("another sign between thousands than before the decimals")
    duration = members.get("duration", "")
    if duration not in ("", *DURATIONS):
        raise ValueError('for "duration" one of zero: ' + ", ".join(DURATIONS))
    if duration and NumberFormat(**members) != NumberFormat(duration=duration):
        raise ValueError('nothing beside "duration"')
    if "negative" in members:
        _negative_unit(members["negative"])


def _unit(number_format: NumberFormat) -> frozenset[str]:
    return frozenset(map(symbol_of, (number_format.prefix, number_format.suffix))) - {""}


# Reading


def numerals(texts: Texts, number_format: NumberFormat) -> Texts:
    """Converts formatted numbers without surrounding spaces to plain decimals; "" for a string that
    is not in the format.

    Units and separators of thousands may be absent.

    >>> numerals(pa.array(["1.234,50 €", "-3", "2.5"]), NumberFormat(",", ".", suffix=" €")).to_pylist()
    ['1234.50', '-3', '']
    """  # noqa: E501
    if number_format.duration:
        return pa.concat_arrays([duration_numerals(chunk) for chunk in chunks(texts)])
    read = [numerals_of(Split.of(chunk), number_format) for chunk in chunks(texts)]
    return pa.concat_arrays(read)


def read_number(text: str, number_format: NumberFormat | None) -> int | float | None:
    """Returns the number that a string represents, apart from spaces around it, in a number format
    (None for plain numbers); None if it is not a number."""
    texts = pa.array([text.strip()], pa.string())
    plain = texts if number_format is None else numerals(texts, number_format)
    return numbers_of(plain)[0].item() if are_numbers(plain)[0] else None


def numerals_of(split: Split, number_format: NumberFormat) -> Texts:
    """Returns each string's number as a plain decimal such as "1234.50"; "" if the string does not
    have the format.

    Args:
        split: The strings, split into digits and the texts before and after them.
    """
    unit = _unit(number_format)
    sides = [side_of(*side) for side in split.sides]
    signs = split.signs(side is not None and side.unit <= unit for side in sides)
    none = pa.scalar(None, split.bodies.type)
    bodies = pc.if_else(are_bodies(split.bodies, number_format), split.bodies, none)
    digits = pc.binary_join_element_wise(signs, digits_of(bodies, number_format), "")
    return digits.cast(pa.string()).fill_null("")


def digits_of(bodies: Texts, number_format: NumberFormat) -> Texts:
    """Rewrites numbers without sign and unit as plain decimals, such as "1.234,5" as "1234.5"."""
    if number_format.thousands:
        for sign in equivalent_signs(number_format.thousands):
            bodies = pc.replace_substring(bodies, sign, "")
    if number_format.decimal == ".":
        return bodies
    return pc.replace_substring(bodies, number_format.decimal, ".")


def are_bodies(bodies: Texts, number_format: NumberFormat) -> Texts:
    """Returns an Arrow array of truth values: whether each string has the format of a number, apart
    from its sign and unit."""
    return pc.match_substring_regex(bodies, _body_pattern(number_format))


def _body_pattern(number_format: NumberFormat) -> str:
    decimal = re.escape(number_format.decimal)
    whole = "(?:0|[1-9][0-9]*)"
    if number_format.thousands:
        sign = f"[{''.join(equivalent_signs(number_format.thousands))}]"
        grouped = (
            f"[1-9][0-9]{{0,2}}(?:{sign}[0-9]{{3}})+"
            if number_format.grouping == "thousands"
            else f"[1-9][0-9]?(?:{sign}[0-9]{{2}})*{sign}[0-9]{{3}}|[1-9][0-9]{{2}}{sign}[0-9]{{3}}"
        )
        whole = f"(?:{grouped}|{whole})"
    exponent = "(?:[eE][+-]?[0-9]{1,3})?"
    return f"^(?:{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+){exponent}$"


def equivalent_signs(thousands: str) -> str:
    """Returns all separators that are read like `thousands`, such as all kinds of space."""
    return next((signs for signs in (SPACES, APOSTROPHES) if thousands in signs), thousands)


# Writing


def written_in(texts: Texts, number_format: NumberFormat) -> Texts:
    """Writes plain decimals in the number format.

    >>> written_in(pa.array(["-1234567.5"]), NumberFormat(thousands=",", prefix="$")).to_pylist()
    ['-$1,234,567.5']
    """
    return pa.concat_arrays([_written(chunk, number_format) for chunk in chunks(texts)])


def number_texts(numbers: Iterable[Any], number_format: NumberFormat) -> list[str]:
    """Writes each number in the format, with the fewest digits that restore it; infinity and NaN as
    in Python."""
    listed = list(numbers)
    texts = pa.array([repr(number) for number in listed], pa.string())
    written = written_in(texts, number_format).to_pylist()
    return [
        text if math.isfinite(number) else repr(number)
        for number, text in zip(listed, written, strict=True)
    ]


def number_text(number: float, number_format: NumberFormat) -> str:
    """Writes one number in the format, with the fewest digits that restore it."""
    return number_texts([number], number_format)[0]


def example(number_format: NumberFormat) -> str:
    """Returns the number 1234.5 in the format, in quotes."""
    return repr(number_text(1234.5, number_format))


def _written(texts: Texts, number_format: NumberFormat) -> Texts:
    if number_format.duration:
        return duration_texts(texts, number_format.duration)
    parts = pc.extract_regex(texts, r"^(?P<sign>-?)(?P<whole>[0-9]*)(?P<point>\.?)(?P<rest>[^.]*)$")
    sign, whole, point, rest = (
        pc.struct_field(parts, name) for name in ("sign", "whole", "point", "rest")
    )
    if number_format.thousands:
        whole = _grouped(whole, number_format)
    if number_format.decimal != ".":
        point = pc.replace_substring(point, ".", number_format.decimal)
    body = pc.binary_join_element_wise(whole, point, rest, "")
    left, right = negative_sides(number_format)
    return pc.if_else(
        pc.equal(sign, "-"),
        pc.binary_join_element_wise(left, body, right, ""),
        pc.binary_join_element_wise(number_format.prefix, body, number_format.suffix, ""),
    )


def negative_sides(number_format: NumberFormat) -> tuple[str, str]:
    """Returns what the format writes before and after the digits of a negative number."""
    if number_format.negative is None:
        return f"-{number_format.prefix}", number_format.suffix
    left, _, right = number_format.negative.partition("1")
    return left, right


def _grouped(whole: Texts, number_format: NumberFormat) -> Texts:
    are_long = pc.greater_equal(pc.utf8_length(whole), number_format.grouped_from_digits)
    backwards = pc.utf8_reverse(whole)
    group = "([0-9]{1,3})" if number_format.grouping == "thousands" else "([0-9]{1,2})"
    rest = pc.replace_substring_regex(
        pc.utf8_slice_codeunits(backwards, 3), group, rf"{number_format.thousands}\1"
    )
    last = pc.utf8_slice_codeunits(backwards, 0, 3)
    grouped = pc.utf8_reverse(pc.binary_join_element_wise(last, rest, ""))
    return pc.if_else(are_long, grouped, whole)
