"""Where a run of letters or digits of keys is cut: 20191215 0547 beside a day.

The runs are of one width, and what another column says stands at the same places in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

DATE_FORMATS = ("%Y%m%d", "%d%m%Y", "%Y%m", "%y%m%d", "%d%m%y", "%Y", "%y%m", "%m%d", "%d%m",
                "%y", "%m", "%d")  # fmt: skip
"""What keys have of dates, the longest first."""
_DIGITS_OF = {"%Y": range(4), "%y": range(2, 4), "%m": range(4, 6), "%d": range(6, 8)}
"""Where they stand in a date that is written as %Y%m%d."""
_MOST_WIDTH = 40
_MOST_OF_LEVEL = 4  # characters that a level says
_FIRST_ROWS = 64  # that are looked at before all are

Texts = npt.NDArray[np.object_]
Letters = npt.NDArray[Any]
Span = tuple[int, int]


@dataclass(frozen=True)
class Speakers:
    """What other columns may say of keys, by column.

    Shape: days (n, 8) each, levels (n,) each.

    Attributes:
        days: The characters of dates as %Y%m%d has them, empty where there is none.
        levels: Which level each row has.
        least_share: Of the rows in which a part has to be what the column says.
    """

    days: Sequence[Letters]
    levels: Sequence[npt.NDArray[np.int64]]
    least_share: float

    @classmethod
    def of(cls, dates: Sequence[Any], levels: Sequence[list[str]], least_share: float) -> Speakers:
        """Those of columns of dates, and of levels as they are written. Shape: (n,) each."""
        days = [column.dt.strftime("%Y%m%d").fillna("").tolist() for column in dates]
        codes = [pd.factorize(np.array(column, dtype=object))[0] for column in levels]
        return cls([_letters(column, 8) for column in days], codes, least_share)


def cut_widths(tokens: Texts, speakers: Speakers) -> tuple[int, ...]:
    """The widths of the parts that tokens are cut into; () where they stay whole.

    Args:
        tokens: Of one place of the keys. Shape: (n,).
        speakers: Of the same rows.
    """
    width = len(tokens[0])
    if not 2 <= width <= _MOST_WIDTH or any(len(token) != width for token in tokens):
        return ()
    spans = _said_spans(_letters(tokens.tolist(), width), (0, width), speakers)
    edges = sorted({0, width, *(edge for span in spans for edge in span)})
    return tuple(np.diff(edges).tolist()) if len(edges) > 2 else ()


def _letters(texts: list[str], width: int) -> Letters:
    """Single characters of texts. Shape: (n,) -> (n, width)."""
    return np.array(texts, dtype=f"U{width}").view("U1").reshape(len(texts), width)


def _said_spans(letters: Letters, span: Span, speakers: Speakers) -> Iterator[Span]:
    """The places within a span that other columns say: one, and what is left and right of it."""
    first, end = span
    found = _date_span(letters, span, speakers) or _level_span(letters, span, speakers)
    if found is None:
        return
    yield found
    for rest in ((first, found[0]), (found[1], end)):
        if rest[0] < rest[1]:
            yield from _said_spans(letters, rest, speakers)


def _date_span(letters: Letters, span: Span, speakers: Speakers) -> Span | None:
    for date_format in DATE_FORMATS:
        pieces = (date_format[i : i + 2] for i in range(0, len(date_format), 2))
        digits = [digit for piece in pieces for digit in _DIGITS_OF[piece]]
        for first in range(span[0], span[1] - len(digits) + 1):
            part = letters[:, first : first + len(digits)]
            if any(_are_alike(part, days[:, digits], speakers) for days in speakers.days):
                return first, first + len(digits)
    return None


def _are_alike(part: Letters, said: Letters, speakers: Speakers) -> bool:
    """Whether a part is what is said in nearly every row, and more often than by chance."""
    start = (part[:_FIRST_ROWS] == said[:_FIRST_ROWS]).all(axis=1)
    if start.mean() < speakers.least_share / 2:
        return False
    share = float((part == said).all(axis=1).mean())
    return share >= _needed(_codes(part), speakers)


def _level_span(letters: Letters, span: Span, speakers: Speakers) -> Span | None:
    """The characters at the start or the end of a span that go with a level."""
    first, end = span
    for width in range(min(_MOST_OF_LEVEL, end - first), 0, -1):
        for found in ((first, first + width), (end - width, end)):
            part = _codes(letters[:, slice(*found)])
            if any(_goes_with(part, levels, speakers) for levels in speakers.levels):
                return found
    return None


def _goes_with(
    part: npt.NDArray[np.int64], levels: npt.NDArray[np.int64], speakers: Speakers
) -> bool:
    """Whether each level has one text that nearly all its rows have. Shape: (n,), (n,)."""
    n_texts, n_levels = int(part.max()) + 1, int(levels.max()) + 1
    if n_texts < 2 or n_texts > n_levels + (1 - speakers.least_share) * len(part):
        return False
    pairs = np.bincount(levels * n_texts + part, minlength=n_levels * n_texts)
    share = pairs.reshape(n_levels, n_texts).max(axis=1).sum() / len(part)
    return bool(share >= _needed(part, speakers))


def _codes(part: Letters) -> npt.NDArray[np.int64]:
    """Which text each row has. Shape: (n, width) -> (n,)."""
    width = part.shape[1]
    return pd.factorize(np.ascontiguousarray(part).view(f"U{width}").reshape(-1))[0]


def _needed(part: npt.NDArray[np.int64], speakers: Speakers) -> float:
    """The share of the rows in which a part is what is said; more than one for a text alone."""
    chance = float(np.bincount(part).max() / len(part))
    return 2.0 if chance == 1.0 else needed_share(chance, speakers.least_share)


def needed_share(chance: float, least_share: float) -> float:
    """The share of the rows that says something, where the most frequent text has `chance`."""
    return max(least_share, 1.0 - 0.5 * (1.0 - chance))
