"""Identifiers: fresh keys that look like the table's, each row its own, none of them an original.

A row's key follows from a seed of the model's own and the row's number alone, so that chunks,
shards and chunks agree. Of the originals nothing is kept that belongs to few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.cells.distinct_cells import MARKERS, WEAK_MARKERS
from gcvae.cells.values import placed_values
from gcvae.codec.keys.addresses import AddressPattern
from gcvae.codec.keys.learning import learn_patterns
from gcvae.codec.keys.parts import KeyParts
from gcvae.codec.keys.patterns import KeyPattern, numbered_pattern
from gcvae.numerics.permutations import Numbers, shuffled
from gcvae.numerics.seeds import derived_seed
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.parquet_types import parquet_type
from gcvae.spelling.number_text import LARGEST_WHOLE

CYCLE_ROWS = 1000
"""Of so many rows in a row each pattern has its share."""
_PREFIX = "synthetic"
_DIGITS = 8  # after the prefix
_DIGITS_TO_GROW = 4  # by which whole numbers in parts may get wider


class WiderIdentifiersWarning(UserWarning):
    """Identifiers of a sample are wider than the table's."""


class Pattern(Protocol):
    """A kind of keys."""

    @property
    def room(self) -> int:
        """How many keys there are before they grow."""
        ...

    def keys(self, index: Numbers, rows: Numbers, origin: str) -> npt.NDArray[Any]:
        """The keys of these numbers; see `KeyPattern.keys`."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What the class's `from_json` needs."""
        ...


_KINDS: dict[str, type[KeyPattern] | type[AddressPattern]] = {
    "characters": KeyPattern,
    "addresses": AddressPattern,
}


@dataclass(frozen=True)
class IdentifierCodec:
    """The patterns of a column's keys.

    Attributes:
        are_numbers: The keys are whole numbers.
        patterns: With the rows that each has out of CYCLE_ROWS; the rest of them is blank.
        parts: Of keys that other columns say in part: then patterns are of the rows' own tokens.
    """

    column: Column
    are_numbers: bool
    patterns: tuple[tuple[Pattern, int], ...]
    parts: KeyParts | None = None

    @classmethod
    def fit(
        cls, chunks: Iterable[pd.Series[Any]], column: Column, parts: KeyParts | None = None
    ) -> Self:
        """The codec of a column whose cells come a chunk of rows at a time, several times over.

        Of keys in parts the cells are the rows' own tokens.
        """
        cells = _Cells(chunks)
        are_numbers = cells.are_numbers()
        found = _learned(cells, column, are_numbers)
        n_blank = cells.n_blank() if column.missing.allowed else 0
        shares = _of_cycle([*(rows for _, rows in found), n_blank])
        kept = zip((pattern for pattern, _ in found), shares[:-1], strict=True)
        return cls(column, are_numbers, tuple((p, n) for p, n in kept if n), parts)

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    def decode(self, n_rows: int, first_row: int, seed: int) -> pd.Series[Any]:
        """The keys of rows from `first_row` on; a row's own does not depend on the others.

        Of keys in parts the rows' own tokens.
        """
        rows = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
        cycles, slots = np.divmod(rows, np.uint64(CYCLE_ROWS))
        which, ranks = self._cycle(seed)
        texts = np.full(n_rows, None, dtype=object)
        for number, (pattern, in_cycle) in enumerate(self.patterns):
            own = np.flatnonzero(which[slots] == number)
            index = cycles[own] * np.uint64(in_cycle) + ranks[slots[own]]
            texts[own] = pattern.keys(index, rows[own], self._origin(seed, number))
        return self._typed(texts, self.are_numbers)

    def joined(
        self, own: pd.Series[Any], rows: Mapping[str, pd.Series[Any]], schema: TableSchema
    ) -> pd.Series[Any]:
        """Whole keys of the rows' own tokens, which `decode` gave. Shape: (n,).

        Args:
            own: All that there is of keys that are not in parts.
            rows: The other columns' cells.
            schema: Of these.
        """
        if self.parts is None:
            return own
        keys = self.parts.joined(own, rows, schema)
        if self.column.decimals is None:
            return keys
        typed = self._typed(keys.to_numpy(dtype=object), True)
        return typed.set_axis(own.index)

    @property
    def can_join(self) -> bool:
        """Whether the rows' own tokens are told apart in keys, and whole numbers stay small."""
        if self.parts is None:
            return True
        sign, times = self.parts.signs
        patterns = [pattern for pattern, _ in self.patterns if isinstance(pattern, KeyPattern)]
        if times and not all(pattern.times(sign) == times for pattern in patterns):
            return False
        if self.column.decimals is None:
            return True
        widest = max((len(pattern.alphabets) for pattern in patterns), default=0)
        digits = self.parts.width(widest) + _DIGITS_TO_GROW
        return digits < len(str(_largest(self.column)))

    def note(self, rows: int) -> str | None:
        """What their user should know of the keys of so many rows: that some are wider."""
        fresh = min(pattern.room * CYCLE_ROWS // n for pattern, n in self.patterns)
        if rows <= fresh:
            return None
        room = f"room for {fresh:,} rows with" if fresh else "no room for"
        return (
            f"column {self.name!r}: the table's identifiers leave {room} fresh ones of their "
            f"width; of {rows:,} rows some have wider ones"
        )

    def _origin(self, seed: int, number: int) -> str:
        return f"{seed}\x1f{self.name}\x1f{number}"

    def _cycle(self, seed: int) -> tuple[npt.NDArray[np.int64], Numbers]:
        """(pattern of each row of a cycle, how many before it have the same), -1 for a blank.

        Shape: (CYCLE_ROWS,), (CYCLE_ROWS,).
        """
        numbers = np.repeat(np.arange(len(self.patterns)), [n for _, n in self.patterns])
        table = np.full(CYCLE_ROWS, -1, dtype=np.int64)
        table[: len(numbers)] = numbers
        slots = np.arange(CYCLE_ROWS, dtype=np.uint64)
        which = table[shuffled(slots, CYCLE_ROWS, derived_seed(self._origin(seed, -1)))]
        ranks = np.zeros(CYCLE_ROWS, dtype=np.uint64)
        for number in range(len(self.patterns)):
            own = which == number
            ranks[own] = np.arange(int(own.sum()), dtype=np.uint64)
        return which, ranks

    def _typed(self, texts: npt.NDArray[Any], are_numbers: bool) -> pd.Series[Any]:
        blank = texts == None  # noqa: E711 - cell by cell
        places = np.where(blank, -1, np.arange(len(texts)))
        if not are_numbers:
            return placed_values(pa.array(texts, pa.string()), places, False)
        values = np.zeros(len(texts), dtype=np.int64)
        values[~blank] = texts[~blank].astype("U20").astype(np.int64)
        return placed_values(values, places, self.column.missing.allowed)

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs beside the schema's column."""
        kinds = {kind: name for name, kind in _KINDS.items()}
        return {
            "are_numbers": self.are_numbers,
            "parts": None if self.parts is None else self.parts.to_json(),
            "patterns": [
                {"kind": kinds[type(pattern)], "rows": n, **pattern.to_json()}  # type: ignore[index]
                for pattern, n in self.patterns
            ],
        }

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """The codec of a document that `to_json` wrote."""
        patterns = tuple(
            (_KINDS[part["kind"]].from_json(part), part["rows"]) for part in document["patterns"]
        )
        written = document.get("parts")  # none in models of version 5 and before
        parts = None if written is None else KeyParts.from_json(written)
        return cls(column, document["are_numbers"], patterns, parts)


class _Cells:
    """A column's cells, chunk by chunk, as texts."""

    def __init__(self, chunks: Iterable[pd.Series[Any]]) -> None:
        self._chunks = chunks

    def texts(self) -> Iterator[npt.NDArray[Any]]:
        """The cells that are not blank. Shape: (n,), for each chunk that has some."""
        for chunk in self._chunks:
            present = chunk.dropna()
            if not len(present):
                continue
            if pd.api.types.is_integer_dtype(present.dtype):
                yield present.to_numpy(dtype=np.int64).astype("U20").astype(object)
            else:
                yield present.astype(str).to_numpy(dtype=object)

    def are_numbers(self) -> bool:
        """Whether the cells are whole numbers."""
        return any(pd.api.types.is_integer_dtype(chunk.dtype) for chunk in self._chunks)

    def n_blank(self) -> int:
        """The number of blank cells."""
        return sum(int(chunk.isna().sum()) for chunk in self._chunks)


def _learned(cells: _Cells, column: Column, are_numbers: bool) -> list[tuple[Pattern, int]]:
    """The patterns with their rows; a prefix and a number where texts have none in common."""
    addresses = None if are_numbers else AddressPattern.learned(cells.texts)
    if addresses is not None:
        n_rows = sum(map(len, cells.texts()))
        return [(addresses, n_rows)]
    shunned = MARKERS | WEAK_MARKERS | set(column.missing.markers)
    found = learn_patterns(cells.texts, shunned, largest=_largest(column) if are_numbers else None)
    if found is not None:
        return list(found)
    n_rows = sum(map(len, cells.texts()))
    return [(numbered_pattern("" if are_numbers else _unused_prefix(cells), _DIGITS), n_rows or 1)]


def _largest(column: Column) -> int:
    """The largest whole number that the column's type and readers of text hold."""
    largest = int(LARGEST_WHOLE)
    if column.parquet_type is None:
        return largest
    kind = parquet_type(column.parquet_type)
    if not pa.types.is_integer(kind):
        return largest
    bits = kind.bit_width - (1 if pa.types.is_signed_integer(kind) else 0)
    return int(min(2**bits - 1, largest))


def _unused_prefix(cells: _Cells) -> str:
    """A prefix that no original begins with, in whatever case."""
    originals = {
        text
        for texts in cells.texts()
        for text in map(str.casefold, texts)
        if text.startswith(_PREFIX)
    }
    candidates = (f"{_PREFIX}{n if n > 1 else ''}-" for n in count(1))
    return next(x for x in candidates if not any(text.startswith(x) for text in originals))


def _of_cycle(counts: list[int]) -> list[int]:
    """Shares of CYCLE_ROWS in these proportions, the last's remainders first given to the first."""
    total = sum(counts)
    shares = [count * CYCLE_ROWS // total for count in counts]
    if not any(shares[:-1]):
        shares[0], shares[-1] = 1, shares[-1] - 1
    shares[0] += CYCLE_ROWS - sum(shares)
    return shares
