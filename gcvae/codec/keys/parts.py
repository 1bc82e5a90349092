"""Parts of an identifier that other columns say: the country and the year of FR-2021-00017.

A key is a run of letters, digits and signs in turns. Where nearly all keys have as many of these
tokens, each token of those is one of

    the same in nearly every key   INV
    said by another column         what goes with its cell, or a part of its date
    the row's own                  of which the identifier's codec makes fresh ones

A token may be cut: where all keys are of one pattern, the day in 201912150547 is a token of its own
(`cuts`). Drawn keys are put together anew, once the other columns of their rows are drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.cells.values import format_table
from gcvae.codec.keys.cuts import DATE_FORMATS, Speakers, cut_widths, needed_share
from gcvae.files.typed_columns import TypedTable, row_chunks, rows_at
from gcvae.schema.columns import Column, TableSchema

Texts = npt.NDArray[np.object_]

_TOKENS = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
_JOIN = "-"
"""Between the own tokens of a row, none of which has it."""
_LEAST_ROWS = 100
_LEAST_SHARE = 0.98
"""Of the keys that have as many tokens, and of the rows whose token is the one that goes with the
other column's cell."""
_FIXED_SHARE = 0.99
_MOST_CELLS = 500
"""Distinct cells of a column whose tokens are listed."""
_JUDGED_ROWS = 5_000
_MOST_TOKENS = 16


@dataclass(frozen=True)
class SaidToken:
    """A token that another column says.

    Attributes:
        place: Which token of the key it is.
        column: The written column that says it.
        tokens: By the column's cells, as written; empty for dates.
        date_format: What it has of the column's date; None for other columns.
        usual: The most frequent one, for a cell of which nothing is known.
    """

    place: int
    column: str
    tokens: Mapping[str, str]
    date_format: str | None
    usual: str

    def of(self, cells: pd.Series[Any], texts: Sequence[str]) -> Texts:
        """The token of each row, of the column's typed cells and of these as they are written."""
        if self.date_format is None:
            found = [self.tokens.get(text, self.usual) for text in texts]
        else:
            written = cells.dt.strftime(self.date_format)
            found = written.where(cells.notna(), self.usual).tolist()
        return np.array(found, dtype=object)


@dataclass(frozen=True)
class KeyParts:
    """How the keys of a column are put together.

    Attributes:
        fixed: The tokens that nearly all keys have, by place.
        said: The tokens that other columns say.
        own: The places of the row's own tokens.
        cuts: The widths of the tokens that a run of letters or digits is cut into, by run.
    """

    fixed: Mapping[int, str]
    said: tuple[SaidToken, ...]
    own: tuple[int, ...]
    cuts: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(
        cls, table: TypedTable, schema: TableSchema, column: Column, rare_rows: int
    ) -> Self | None:
        """The parts of a column's keys; None where no other column says one.

        Args:
            table: Typed.
            schema: Of the table.
            column: Its identifier.
            rare_rows: A cell that fewer rows have is not listed.
        """
        names = [c.name for c in schema if _may_say(c)]
        sample = _sample(table, [column.name, *names])
        sample = sample[sample[column.name].notna().to_numpy()].reset_index(drop=True)
        if len(sample) < _LEAST_ROWS:
            return None
        alike = _tokens_of(sample[column.name].astype(str).tolist())
        if alike is None:
            return None
        tokens, rows = alike
        sample = sample.iloc[rows].reset_index(drop=True)
        written = {name: _written(sample[[name]], schema) for name in names}
        cuts = _cuts(tokens, sample, schema, written)
        if cuts and not _are_alike(table, column.name, cuts, tokens.shape[1]):
            cuts = {}
        tokens = np.array([_cut(row, cuts) for row in tokens.tolist()], dtype=object)
        usual = [_most_frequent(tokens[:, i]) for i in range(tokens.shape[1])]
        fixed = {i: text for i, (text, share) in enumerate(usual) if share >= _FIXED_SHARE}
        said: dict[int, SaidToken] = {}
        for place in [i for i in range(tokens.shape[1]) if i not in fixed]:
            found = _said(sample, written, schema, place, tokens[:, place])
            if found is not None:
                said[place] = found
        own = tuple(i for i in range(tokens.shape[1]) if i not in fixed and i not in said)
        if not said or not _may_be_own(tokens[:, own]):
            return None
        if not cuts and not _are_alike(table, column.name, cuts, tokens.shape[1]):
            return None
        kept = tuple(_without_rare(token, table, schema, rare_rows) for token in said.values())
        return cls(fixed, kept, own, cuts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that say a token."""
        return tuple(dict.fromkeys(token.column for token in self.said))

    @property
    def n_tokens(self) -> int:
        """Of a key, each part of a run that is cut among them."""
        return len(self.fixed) + len(self.said) + len(self.own)

    def own_tokens(self, chunk: pd.Series[Any]) -> pd.Series[Any]:
        """The rows' own tokens of keys, without odd keys, and blanks. Shape: (n,) -> (m,)."""
        found = [None if pd.isna(key) else _split(str(key), self.cuts) for key in chunk]
        own = [
            tokens and _JOIN.join(tokens[i] for i in self.own)
            for tokens in found
            if tokens is None or len(tokens) == self.n_tokens
        ]
        return pd.Series(own, dtype=object)

    @property
    def signs(self) -> tuple[str, int]:
        """What tells a row's own tokens apart, and how often it comes."""
        return _JOIN, len(self.own) - 1

    def width(self, own: int) -> int:
        """Characters of keys whose own tokens have so many, joined; what is said as usual."""
        said = sum(len(token.usual) for token in self.said)
        return own - len(self.own) + 1 + said + sum(map(len, self.fixed.values()))

    def joined(
        self, own: pd.Series[Any], rows: Mapping[str, pd.Series[Any]], schema: TableSchema
    ) -> pd.Series[Any]:
        """Whole keys of the rows' own tokens and of their other columns. Shape: (n,)."""
        others = pd.DataFrame({name: rows[name] for name in self.columns})
        written = format_table(others, _part_of(schema, self.columns))
        blank = own.isna().to_numpy()
        keys = np.full(len(own), "", dtype=object)
        said = {token.place: token for token in self.said}
        apart = self._apart(own)
        for place in range(self.n_tokens):
            if place in self.fixed:
                keys = keys + self.fixed[place]
            elif place in self.own:
                keys = keys + apart[place]
            else:
                name = said[place].column
                keys = keys + said[place].of(rows[name], written[name].tolist())
        keys[blank] = None
        return pd.Series(keys, index=own.index, dtype=object)

    def _apart(self, own: pd.Series[Any]) -> dict[int, Texts]:
        """The rows' own tokens by their place; of blanks they have no character. Shape: (n,)."""
        n_own = len(self.own)
        if n_own == 1:
            return {self.own[0]: own.fillna("").to_numpy(dtype=object)}
        found = [text.split(_JOIN) for text in own.fillna(_JOIN * (n_own - 1))]
        columns = np.array(found, dtype=object).reshape(-1, n_own).T
        return dict(zip(self.own, columns, strict=True))

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return {
            "fixed": {str(place): text for place, text in self.fixed.items()},
            "said": [
                {
                    "place": token.place,
                    "column": token.column,
                    "tokens": dict(token.tokens),
                    "date_format": token.date_format,
                    "usual": token.usual,
                }
                for token in self.said
            ],
            "own": list(self.own),
            "cuts": {str(run): list(widths) for run, widths in self.cuts.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The parts of a document that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: It is no such document.
        """
        said = tuple(
            SaidToken(
                int(token["place"]),
                str(token["column"]),
                {str(cell): str(text) for cell, text in token["tokens"].items()},
                token["date_format"],
                str(token["usual"]),
            )
            for token in document["said"]
        )
        fixed = {int(place): str(text) for place, text in document["fixed"].items()}
        found = document["own"]  # one number where none is cut, in models of before
        own = (found,) if isinstance(found, int) else tuple(map(int, found))
        places = sorted([*fixed, *(token.place for token in said), *own])
        if not own or places != list(range(len(places))):
            raise ValueError("tokens of a key are missing, or there twice")
        cuts = {
            int(run): tuple(map(int, widths)) for run, widths in document.get("cuts", {}).items()
        }
        return cls(fixed, said, own, cuts)

    def check(self, schema: TableSchema) -> None:
        """Lets parts pass that columns of the schema can say.

        Raises:
            UnknownColumnError, ValueError: They can not.
        """
        for token in self.said:
            column = schema[token.column]
            is_date = token.date_format in DATE_FORMATS
            if not _may_say(column) or is_date != column.has_times:
                raise ValueError(f"column {token.column!r} does not say a token of a key")


def _may_say(column: Column) -> bool:
    return (
        not column.drop and column.kind.is_modelled and (column.has_times or column.kind.has_levels)
    )


def _part_of(schema: TableSchema, names: Sequence[str]) -> TableSchema:
    return TableSchema(tuple(schema[name] for name in names))


def _sample(table: TypedTable, names: Sequence[str]) -> pd.DataFrame:
    """Some rows, evenly from all of the table."""
    places = np.arange(0, len(table), max(len(table) // _JUDGED_ROWS, 1))
    return rows_at(table, places, names).reset_index(drop=True)


def _tokens_of(keys: Sequence[str]) -> tuple[Texts, npt.NDArray[np.int64]] | None:
    """(tokens, rows) of the keys that have as many as most do; None where these are too few.

    Shape: (n, m), (n,).
    """
    found = [_TOKENS.findall(key) for key in keys]
    counts = np.array([len(tokens) for tokens in found])
    n_tokens = int(np.bincount(counts).argmax())
    rows = np.flatnonzero(counts == n_tokens)
    if not 1 <= n_tokens <= _MOST_TOKENS or len(rows) < _LEAST_SHARE * len(keys):
        return None
    return np.array([found[i] for i in rows], dtype=object), rows


def _split(key: str, cuts: Mapping[int, tuple[int, ...]]) -> list[str]:
    """The tokens of a key."""
    return _cut(_TOKENS.findall(key), cuts)


def _cut(runs: list[str], cuts: Mapping[int, tuple[int, ...]]) -> list[str]:
    """The tokens of a key's runs; none where a run that is cut has another width."""
    if not cuts:
        return runs
    found: list[str] = []
    for number, run in enumerate(runs):
        widths = cuts.get(number, (len(run),))
        if len(run) != sum(widths):
            return []
        ends = list(accumulate(widths))
        found += [run[end - width : end] for end, width in zip(ends, widths, strict=True)]
    return found


def _cuts(
    tokens: Texts, sample: pd.DataFrame, schema: TableSchema, written: Mapping[str, list[str]]
) -> dict[int, tuple[int, ...]]:
    """The cuts of runs in which another column says a part. Shape: tokens (n, m)."""
    half = len(sample) // 2
    speakers = Speakers.of(
        [sample[name] for name in written if schema[name].has_times],
        [
            texts
            for name, texts in written.items()
            if not schema[name].has_times and _is_listed(texts, half)
        ],
        _LEAST_SHARE,
    )
    runs = [i for i in range(tokens.shape[1]) if tokens[0, i].isalnum()]
    found = {i: cut_widths(tokens[:, i], speakers) for i in runs}
    return {i: widths for i, widths in found.items() if widths}


def _may_be_own(tokens: Texts) -> bool:
    """Whether tokens can be told apart once they are joined: one, or none of signs."""
    n_own = tokens.shape[1]
    return n_own == 1 or (n_own > 1 and all(token.isalnum() for token in tokens.ravel().tolist()))


def _most_frequent(tokens: Texts) -> tuple[str, float]:
    """The most frequent token, and its share."""
    values, counts = np.unique(tokens.astype(str), return_counts=True)
    return str(values[counts.argmax()]), float(counts.max() / len(tokens))


def _are_alike(
    table: TypedTable, name: str, cuts: Mapping[int, tuple[int, ...]], n_runs: int
) -> bool:
    """Whether nearly all keys of the table have so many runs; where these are cut, all."""
    n_tokens = n_runs + sum(len(widths) - 1 for widths in cuts.values())
    n_alike = n_keys = 0
    for chunk in row_chunks(table, [name]):
        keys = chunk[name].dropna().astype(str)
        n_alike += sum(len(_split(key, cuts)) == n_tokens for key in keys)
        n_keys += len(keys)
    return n_alike >= (1.0 if cuts else _LEAST_SHARE) * n_keys


def _said(
    sample: pd.DataFrame,
    written: Mapping[str, list[str]],
    schema: TableSchema,
    place: int,
    tokens: Texts,
) -> SaidToken | None:
    """The column that says a token best; None where none does."""
    usual, chance = _most_frequent(tokens)
    best, most = None, needed_share(chance, _LEAST_SHARE)
    for name, texts in written.items():
        for found in _candidates(texts, schema[name], place, tokens, usual):
            share = float((found.of(sample[name], texts) == tokens).mean())
            if share > most or (best is None and share >= most):
                best, most = found, share
    return best


def _candidates(
    texts: list[str], column: Column, place: int, tokens: Texts, usual: str
) -> Iterator[SaidToken]:
    """How a column may say a token."""
    if column.has_times:
        for date_format in DATE_FORMATS:
            yield SaidToken(place, column.name, {}, date_format, usual)
        return
    written = np.array(texts, dtype=object)
    half = len(written) // 2  # the other half judges what goes with a cell
    if not _is_listed(texts, half) or len(set(tokens)) < 2:
        return
    counts = pd.crosstab(written[:half], tokens[:half])
    listed = {str(cell): str(token) for cell, token in counts.idxmax(axis=1).items()}
    yield SaidToken(place, column.name, listed, None, usual)


def _is_listed(texts: list[str], half: int) -> bool:
    """Whether a column's cells are few enough to say what goes with each."""
    return len(set(texts)) <= min(_MOST_CELLS, half // 4)


def _written(rows: pd.DataFrame, schema: TableSchema) -> list[str]:
    """The cells of one column as they are written."""
    [name] = rows.columns
    texts: list[str] = format_table(rows, _part_of(schema, [name]))[name].tolist()
    return texts


def _without_rare(
    token: SaidToken, table: TypedTable, schema: TableSchema, rare_rows: int
) -> SaidToken:
    """The token with what goes with every cell that enough rows have."""
    if token.date_format is not None:
        return token
    counts: dict[str, int] = {}
    for chunk in row_chunks(table, [token.column]):
        for text in _written(chunk, schema):
            counts[text] = counts.get(text, 0) + 1
    kept = {cell: text for cell, text in token.tokens.items() if counts.get(cell, 0) >= rare_rows}
    return SaidToken(token.place, token.column, kept, None, token.usual)
