"""Reads the schema members that describe how a column's numbers are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gcvae.errors import Problem
from gcvae.spelling.forms import Notation


def read_notation(value: object) -> Notation:
    """Reads a column's schema member `notation`, a JSON object that describes how digits are
    written.

    Raises:
        ValueError: The value is invalid; the message describes a valid one.
    """
    from gcvae.spelling.number_text import check_notation

    if not isinstance(value, Mapping) or set(value) - {f.name for f in fields(Notation)}:
        raise ValueError("an object of " + ", ".join(f.name for f in fields(Notation)))
    return check_notation(Notation(**value))


def read_number_format(value: object) -> Mapping[str, Any]:
    """Checks a column's schema member `number_format` and returns its fields; absent ones are
    inferred later from the cells.

    Raises:
        ValueError: A field is invalid; the message describes a valid one.
    """
    from gcvae.spelling.number_formats import read_members

    return read_members(value)


def complete_numbers(draft: dict[str, Any], pointer: str) -> list[Problem]:
    """Fills in the number format of a column, and converts limits that are strings to numbers, in
    place.

    Args:
        draft: Members of the column in the user's schema document.
        pointer: JSON pointer of the column.

    Returns:
        Problems: a contradictory number format, or limits that are not numbers.
    """
    name = draft.get("name")
    if "number_format" in draft:
        from gcvae.spelling.number_formats import completed_format

        try:
            draft["number_format"] = completed_format(draft["number_format"])
        except ValueError as error:
            message = "number_format contradicts itself"
            return [Problem(message, f"{pointer}/number_format", column=name, expected=str(error))]
    if "kind" not in draft or not draft["kind"].is_number:
        return []
    problems = []
    for key in ("minimum", "maximum"):
        if isinstance(text := draft.get(key), str):
            from gcvae.spelling.number_formats import read_number

            draft[key] = read_number(text, draft.get("number_format"))
            if draft[key] is None:
                message = f"{key} is the text {text!r}"
                place = f"{pointer}/{key}"
                problems.append(Problem(message, place, column=name, expected="a number"))
    return problems
