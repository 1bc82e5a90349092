"""Parts of identifiers that other columns determine, such as the year in an invoice number.

    invoice           branch    date          parts
    MUC-2024-000017   Munich    2024-03-05    MUC by branch, 2024 the year of date, 000017 a counter
    PAR-2023-000018   Paris     2023-11-30    PAR by branch, 2023 the year of date, 000018 a counter

A key is divided into tokens: runs of letters, of digits, and of other characters. A part is a
whole token, or the first digits of a longer run of digits. Templates of keys are learned without
parts (A-0-000017); after generation, each row's own parts are inserted. Keys stay unique, because
they are unique without parts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gcvae.arrays import Texts
from gcvae.artifact.documents import Document
from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.schema.columns import Column

_TOKENS = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
_FORMS = "%Y%m%d", "%y%m%d", "%d%m%Y", "%d%m%y", "%Y%m", "%y%m", "%Y", "%y"
"""Formats of dates that a key may contain, longest first."""
_LOOKED_AT_ROWS, _LEAST_ROWS = 2_000, 50
_LEAST_SHARE = 0.98
"""Minimum share of rows whose key contains the part; suppressed levels cause exceptions."""
_MOST_LEVELS, _ROWS_PER_LEVEL = 200, 5
_LEAST_ROOM, _LEAST_COUNTERS = 2, 0.05
"""Minimum numbers, per row, of keys without parts that are possible, and that occur. With fewer,
keys would not be unique without their parts."""


@dataclass(frozen=True)
class KeyPart(Document):
    """Part of a key that another column determines.

    Attributes:
        token: Index of the token (run of letters, digits or other characters) that has the part.
        column: Name of the other column.
        form: Format, as for `strftime`, in which a column of dates gives the part; "" for other
            columns.
        texts: Pairs of a level (category) of the other column and its part; empty for a column of
            dates.
        is_whole: Whether the part is the whole token, and not its beginning.
    """

    token: int
    column: str
    form: str
    texts: tuple[tuple[str, str], ...]
    is_whole: bool

    def of(self, cells: pd.Series) -> Texts:
        """Returns the part for each of n cells of the other column, or None. Shape: (n,)."""
        if self.form:
            found = cells.dt.strftime(self.form)
        else:
            found = cells.astype(str).map(dict(self.texts))
        texts: Texts = found.astype(object).where(found.notna(), None).to_numpy(dtype=object)
        return texts


def without_parts(key: str, parts: Sequence[KeyPart]) -> str:
    """Returns a key in which "A" or "0" replaces each part that is a whole token, and other parts
    are cut off. A key with too few tokens is returned unchanged."""
    tokens = _TOKENS.findall(key)
    for part in parts:
        if part.token >= len(tokens):
            return key
        token, length = tokens[part.token], _length(part)
        tokens[part.token] = (
            ("0" if token.isdecimal() else "A") if length is None else token[length:]
        )
    return "".join(tokens)


def with_parts(keys: Texts, parts: Sequence[KeyPart], rows: pd.DataFrame) -> Texts:
    """Inserts each row's parts into its key, and returns the n complete keys. A part is omitted if
    the key has too few tokens. Shape: (n,) -> (n,).

    Args:
        keys: Keys without parts.
        parts: Parts to insert.
        rows: Cells of the columns that determine the parts.
    """
    found = keys.copy()
    inserted = [(part, part.of(rows[part.column])) for part in parts]
    for i, key in enumerate(keys):
        if not isinstance(key, str):
            continue
        tokens = _TOKENS.findall(key)
        for part, texts in inserted:
            if texts[i] is not None and part.token < len(tokens):
                rest = "" if part.is_whole else tokens[part.token]
                tokens[part.token] = texts[i] + rest
        found[i] = "".join(tokens)
    return found


def learn_parts(table: TypedTable, key: Column, others: Sequence[Column]) -> tuple[KeyPart, ...]:
    """Finds the parts of a column's keys that other columns determine.

    Args:
        others: Columns that may determine a part: dates, and columns of levels.
    """
    step = max(len(table) // _LOOKED_AT_ROWS, 1)
    at = np.arange(0, len(table), step)
    dates = [column for column in others if column.has_times and not column.missing.allowed]
    coded = [column for column in others if 2 <= len(column.levels or ()) <= _MOST_LEVELS]
    coded.sort(key=lambda column: len(column.levels or ()))
    rows = rows_at(table, at, [key.name, *(column.name for column in (*dates, *coded))])
    rows = rows[rows[key.name].notna().to_numpy()].reset_index(drop=True)
    split = [_TOKENS.findall(text) for text in rows[key.name].astype(str)]
    kinds = {tuple(map(_kind, tokens)) for tokens in split}
    if len(split) < _LEAST_ROWS or len(kinds) != 1:
        return ()
    tokens, found = pd.DataFrame(split, dtype=object), list[KeyPart]()
    for i, kind in enumerate(next(iter(kinds))):
        if kind != "other" and tokens[i].nunique() > 1:
            found += _part(i, kind, tokens[i], rows, dates, coded)
    counters = {without_parts(text, found) for text in rows[key.name]}
    is_counted = len(counters) >= _LEAST_COUNTERS * len(rows)
    return tuple(found) if is_counted and _room(counters) >= _LEAST_ROOM * len(table) else ()


def _room(counters: Collection[str]) -> int:
    """Returns how many numbers fit in keys without parts: 10^d, if they have at most d digits."""
    most = max(sum(map(str.isdecimal, text)) for text in counters)
    return int(10**most)


def _part(
    i: int,
    kind: str,
    tokens: pd.Series,
    rows: pd.DataFrame,
    dates: Sequence[Column],
    coded: Sequence[Column],
) -> Iterator[KeyPart]:
    """Yields the part that is token i of the keys, or the beginning of this token, if a column
    determines such a part; else nothing. `tokens` has the text of the token in each row; `rows` has
    the cells of the columns `dates` and `coded` (columns of levels)."""
    for form in _FORMS if kind == "digits" else ():
        for date in dates:
            texts = rows[date.name].dt.strftime(form).to_numpy(dtype=object)
            begin = [token.startswith(text) for token, text in zip(tokens, texts, strict=True)]
            if np.mean(begin) >= _LEAST_SHARE and len({*texts}) > 1:
                length = len(texts[0])
                is_whole = bool((tokens.str.len() == length).all())
                if is_whole or (tokens.str.len() > length).all():
                    yield KeyPart(i, date.name, form, (), is_whole)
                    return
    for column in coded:
        levels = [str(level) for level in column.levels or ()]
        if len(rows) < _ROWS_PER_LEVEL * len(levels):
            continue
        cells = rows[column.name].astype(str)
        usual = tokens.groupby(cells).agg(lambda own: own.mode().iloc[0])
        is_kept = (cells.map(usual) == tokens).mean() >= _LEAST_SHARE
        if is_kept and usual.nunique() > 1 and set(levels) <= set(usual.index):
            yield KeyPart(i, column.name, "", tuple((x, usual[x]) for x in levels), True)
            return


def _length(part: KeyPart) -> int | None:
    return None if part.is_whole else len(pd.Timestamp("2024-01-01").strftime(part.form))


def _kind(token: str) -> str:
    if token.isdecimal():
        return "digits"
    return "letters" if token[0].isalpha() else "other"
