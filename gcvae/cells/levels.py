"""Infers the levels (categories) of a column from its cells, matches cells with levels, and writes
levels as strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gcvae.cells.distinct_cells import Cells
from gcvae.schema.columns import Column, Level
from gcvae.schema.kinds import Outcomes
from gcvae.spelling.number_formats import written_in
from gcvae.spelling.number_text import (
    Spelling,
    are_numbers,
    numbers_of,
    spelling_of,
    write_numbers,
    write_whole,
)

_PAIRS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))
_DIGITS = ("0", "1")
_STYLED_PAIRS = [
    (style(no), style(yes)) for no, yes in _PAIRS for style in (str.lower, str.upper, str.title)
]


def boolean_pair(texts: pa.Array) -> tuple[str, str] | None:
    """Returns (string for false, string for true) for a pair such as No and Yes; None for others.

    >>> boolean_pair(pa.array(["Yes", "No"]))
    ('No', 'Yes')
    """
    found = set(texts.to_pylist()) if len(texts) == 2 else set()
    return next((pair for pair in _STYLED_PAIRS if found == set(pair)), None)


def boolean_partner(text: str) -> tuple[str, str] | None:
    """Returns the pair of words that contains a string, such as ("No", "Yes") for "Yes"; None if
    there is none."""
    return next((pair for pair in _STYLED_PAIRS if text in pair), None)


def are_numeric(levels: tuple[Level, ...]) -> bool:
    """Returns whether every level is a number; booleans do not count as numbers."""
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in levels)


def level_texts(column: Column) -> list[str]:
    """Returns the levels (categories) of a column as strings, written as in its cells."""
    levels = column.levels or ()
    if levels and are_numeric(levels):
        values = np.array(levels)
        write = write_whole if values.dtype == np.int64 else write_numbers
        texts = write(values, spelling_of(column))
        if column.number_format is not None:
            texts = written_in(texts, column.number_format)
        return [str(text) for text in texts.to_pylist()]
    return [str(level) for level in levels]


def listed_levels(column: Column, near: object = None) -> str:
    """Returns "one of A, B, ..." for errors, with at most 20 levels of the column: the first ones,
    or the ones nearest to `near` if levels and `near` are numbers."""
    levels, texts = column.levels or (), level_texts(column)
    shown = texts[:20]
    if len(texts) > 20 and isinstance(near, int | float | np.integer) and are_numeric(levels):
        nearest = sorted(range(len(texts)), key=lambda k: abs(float(levels[k]) - near))[:20]
        shown = [texts[k] for k in sorted(nearest)]
    return "one of " + ", ".join(shown) + (", ..." if len(texts) > 20 else "")


def read_levels(column: Column, cells: Cells) -> list[Level]:
    """Converts each distinct cell to the level of the column that it means.

    Cells are matched as strings, or by value if the levels are numbers. In a boolean column, other
    usual words for a truth value (1, yes, TRUE) are matched too. A cell that means no level of the
    column is returned as a number if it and the levels are numbers, otherwise as a string.
    """
    if cells.source == "boolean":  # whose cells are the strings True and False
        words = [column.word(text == "True") for text in cells.texts.to_pylist()]
        cells = replace(cells, source="text", texts=pa.array(words, pa.string()))
    if column.kind.outcomes is Outcomes.TRUTH_VALUES:
        names = dict(zip(level_texts(column), (False, True), strict=True))
        usual = _usual_truths(names)
        return [
            names.get(text, usual.get(_plain_word(text), text)) for text in cells.texts.to_pylist()
        ]
    if not are_numeric(column.levels or ("",)):
        return [str(text) for text in cells.texts.to_pylist()]
    return _read_numeric(cells, all(isinstance(x, int) for x in column.levels or ()))


def _usual_truths(names: Mapping[str, bool]) -> dict[str, bool]:
    """Returns the truth value of each word that a boolean column may contain: its two levels
    (`names`), and usual pairs such as no and yes that do not contradict them. Words have the form
    that `_plain_word` returns."""
    own = {_plain_word(text): truth for text, truth in names.items()}
    pairs = [dict(zip(pair, (False, True), strict=True)) for pair in (*_PAIRS, _DIGITS)]
    agreeing = (p for p in pairs if all(own.get(word, truth) is truth for word, truth in p.items()))
    return {word: truth for pair in (*agreeing, own) for word, truth in pair.items()}


def _plain_word(text: str) -> str:
    return text.strip().casefold().removesuffix(".0")


def _read_numeric(cells: Cells, whole: bool) -> list[Level]:
    numbers = are_numbers(cells.numerals)
    values: list[Level] = [str(text) for text in cells.texts.to_pylist()]
    found = numbers_of(cells.numerals.filter(pa.array(numbers)))
    for i, value in zip(np.flatnonzero(numbers), found.tolist(), strict=True):
        values[i] = (
            int(value) if whole and value == int(value) else value if whole else float(value)
        )
    return values


def find_levels(texts: pa.Array, spelling: Spelling | None, as_float: bool) -> tuple[Level, ...]:
    """Returns the distinct levels in ascending order.

    Args:
        texts: Strings among which every level occurs at least once.
        spelling: Notation of the numbers; None if the levels are strings.
        as_float: Whether to return whole numbers as floats.
    """
    if spelling is None:
        return tuple(sorted(texts.to_pylist()))
    values: npt.NDArray[Any] = np.unique(numbers_of(texts))
    if not as_float and values.dtype != np.int64 and _zero_decimals(values, spelling):
        values = values.astype(np.int64)
    return tuple((values.astype(np.float64) if as_float else values).tolist())


def _zero_decimals(values: npt.NDArray[Any], spelling: Spelling) -> bool:
    """Returns whether all levels, although read as floats, can be stored as integers: they are
    whole, less than 2^53 in absolute value, and written without exponents."""
    plain = spelling.notation is None or spelling.notation.exponents is None
    return plain and bool((values == np.floor(values)).all() and (np.abs(values) < 2**53).all())
