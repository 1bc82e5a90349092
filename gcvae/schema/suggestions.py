"""Errors about unknown names, each with the most similar known name.

>>> print(unknown_name("there is no such column", "Agee", ["age", "sex"], column="Agee"))
column 'Agee': there is no such column; did you mean 'age'?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from gcvae.errors import Problem

NO_SUCH_COLUMN = "there is no such column"
MOST_LISTED = 12
_MOST_COMPARED = 5_000
_LEAST_LIKENESS = 0.6  # minimum similarity; that of aeg and age is 2/3
_MOST_CHARACTERS = 100
_MOST_SUGGESTIONS = 5
"""Maximum number of names in one error that get a suggestion, since each name is compared with all
known names."""


def unknown_name(message: str, name: str, known: Iterable[str], **place: Any) -> Problem:
    """Returns a Problem about an unknown name, with the most similar known name and the first few
    known names.

    Args:
        message: What is wrong, as a clause.
        name: The unknown name.
        known: Known names, in the order in which they are listed.
        **place: `pointer`, `line` and `column` of the Problem.
    """
    known = list(known)
    return Problem(message, suggestion=nearest(name, known), expected=listed(known), **place)


def unknown_names(
    message: str, places: Iterable[tuple[str, dict[str, Any]]], known: Collection[str]
) -> list[Problem]:
    """Returns a Problem for each name that is not in `known`; only the first ones suggest a similar
    name.

    Args:
        message: What is wrong, as a clause.
        places: Pairs of a name and its location, as keyword arguments of Problem.
    """
    problems = []
    for number, (name, place) in enumerate(places):
        if number < _MOST_SUGGESTIONS:
            problems.append(unknown_name(message, name, known, **place))
        else:
            problems.append(Problem(message, expected=listed(known), **place))
    return problems


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that is most similar, ignoring case; None if none is similar enough.

    >>> nearest("max-step", ["max_steps", "max_passes"])
    'max_steps'
    """
    by_spelling: dict[str, str] = {}
    for candidate in known:
        by_spelling.setdefault(_plain(candidate), str(candidate))
    plain = _plain(name)
    if plain in by_spelling:
        return by_spelling[plain]
    if len(by_spelling) > _MOST_COMPARED:
        return None
    found = get_close_matches(plain, by_spelling, n=1, cutoff=_LEAST_LIKENESS)
    return by_spelling[found[0]] if found else None


def listed(known: Iterable[str]) -> str:
    """Returns "one of a, b, ..." with the first 12 known names, for errors."""
    names = [str(name) for name in known]
    return "one of " + ", ".join([*names[:MOST_LISTED], *(["..."] * (len(names) > MOST_LISTED))])


def _plain(name: str) -> str:
    return str(name)[:_MOST_CHARACTERS].strip().casefold().replace("-", "_").replace(" ", "_")
