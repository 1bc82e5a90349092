"""Columns that are not modelled: fresh identifiers that are never an original, and constants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.dates import read_dates
from gcvae.notation import LARGEST_WHOLE
from gcvae.schema import Column
from gcvae.tables import placed_values

MOST_SURROGATES = 10**15  # more rows than anyone draws
_PREFIX = "synthetic"
_LARGEST = int(LARGEST_WHOLE)  # what is read back as a whole number


@dataclass(frozen=True)
class IdentifierCodec:
    """Identifiers numbered by row; nothing of an original is kept but what they stay clear of.

    Attributes:
        start: The first surrogate of whole numbers, beyond every original.
        prefix: Of textual surrogates; no original begins with it. None for whole numbers.
    """

    column: Column
    start: int
    prefix: str | None

    @classmethod
    def fit(cls, blocks: Iterable[pd.Series[Any]], column: Column) -> Self:
        """The codec that stays clear of these originals, which come a block of rows at a time."""
        numbers, texts = [np.array([], dtype=np.int64)], set[str]()
        are_numbers = False
        for block in blocks:
            present = block.dropna()
            are_numbers = pd.api.types.is_integer_dtype(block.dtype)
            if are_numbers:
                numbers.append(present.to_numpy(dtype=np.int64))
            else:
                folded = present.astype(str).str.casefold()
                texts.update(folded[folded.str.startswith(_PREFIX)])
        if are_numbers:
            return cls(column, _first_beyond(np.concatenate(numbers)), None)
        return cls(column, 1, _unused_prefix(texts))

    @property
    def name(self) -> str:
        """Of the column."""
        return self.column.name

    def decode(self, n_rows: int, first_row: int) -> pd.Series[Any]:
        """The surrogates of rows from `first_row` on; a row's own does not depend on the others."""
        numbers = self.start + first_row + np.arange(n_rows, dtype=np.int64)
        places = np.arange(n_rows)
        if self.prefix is None:
            return placed_values(numbers, places, self.column.missing.allowed)
        return placed_values([f"{self.prefix}{n}" for n in numbers.tolist()], places, False)

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs beside the schema's column."""
        return {"start": self.start, "prefix": self.prefix}

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """The codec of a document that `to_json` wrote."""
        return cls(column, document["start"], document["prefix"])


@dataclass(frozen=True)
class ConstantCodec:
    """One value in every row; missing in every row where the column has no value."""

    column: Column

    @classmethod
    def fit(cls, blocks: Iterable[pd.Series[Any]], column: Column) -> Self:
        """The codec of the schema's constant, whatever the cells are."""
        return cls(column)

    @property
    def name(self) -> str:
        """Of the column."""
        return self.column.name

    def decode(self, n_rows: int, first_row: int) -> pd.Series[Any]:
        """The constant, in as many rows."""
        levels: npt.NDArray[Any] | list[Any] = list(self.column.levels or ())
        if self.column.datetime_format is not None and len(levels):
            levels = read_dates(pa.array([str(levels[0])]), self.column.datetime_format)
        places = np.full(n_rows, 0 if len(levels) else -1)
        return placed_values(levels, places, self.column.missing.allowed)

    def to_json(self) -> dict[str, Any]:
        """Nothing beside the schema's column."""
        return {}

    @classmethod
    def from_json(cls, column: Column, document: Mapping[str, Any]) -> Self:
        """The codec of the schema's column."""
        return cls(column)


def _first_beyond(originals: npt.NDArray[np.int64]) -> int:
    """The power of ten beyond every original, or the next number; where int64 ends before, the
    widest gap's start."""
    if not len(originals):
        return 1
    largest = max(int(originals.max()), 0)
    for start in (10 ** len(str(largest)), largest + 1):
        if start + MOST_SURROGATES <= _LARGEST:
            return start
    known = np.unique(originals).astype(object)
    edges = [-_LARGEST, *known.tolist(), _LARGEST]
    gaps = [high - low for low, high in pairwise(edges)]
    return int(edges[int(np.argmax(np.array(gaps, dtype=object)))]) + 1


def _unused_prefix(originals: Collection[str]) -> str:
    """A prefix that no original begins with, in whatever case.

    Args:
        originals: Those that begin with _PREFIX, in lower case.
    """
    candidates = (f"{_PREFIX}{n if n > 1 else ''}-" for n in count(1))
    return next(x for x in candidates if not any(text.startswith(x) for text in originals))
