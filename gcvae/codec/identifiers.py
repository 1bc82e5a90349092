"""Synthetic identifiers: unique keys in the formats of the table's keys, none of which equals an
original.

Row i gets key number k of template t (a key format). Both are functions of the seed and of i, so
they do not depend on how a sample is divided into blocks for generation. If keys recur in the
table, the rows of a block are divided at random into groups of sizes as in the table, and all rows
of a group use the i of one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Texts
from gcvae.cells.distinct_cells import MARKERS, WEAK_MARKERS
from gcvae.cells.values import placed_values
from gcvae.codec.check_digits import CHECKED, forms_of, with_check_digits, without_check_digits
from gcvae.codec.column_codec import ColumnPart
from gcvae.codec.entities import random_groups
from gcvae.codec.key_learning import learn_templates
from gcvae.codec.key_parts import KeyPart, with_parts
from gcvae.codec.key_template import KeyTemplate
from gcvae.numerics.permutations import Numbers, shuffled
from gcvae.numerics.seeds import derived_seed
from gcvae.schema.columns import Column
from gcvae.schema.parquet_types import parquet_type
from gcvae.spelling.number_text import LARGEST_WHOLE

CYCLE_ROWS = 1000
"""Number of consecutive rows in which each template occurs exactly in proportion to its share."""


class WiderIdentifiersWarning(UserWarning):
    """Warning that some synthetic identifiers have more characters than those of the table."""


@dataclass(frozen=True)
class IdentifierCodec(ColumnPart):
    """Codec of an identifier column, which generates synthetic keys.

    Attributes:
        are_numbers: Whether the keys are whole numbers.
        templates: Key formats. The attribute `rows` of each is the number of rows with this format
            among 1,000 consecutive rows (CYCLE_ROWS). Rows without a format have no key.
        parts: Parts of the keys that other columns determine; the templates do not contain them.
        sizes: Group sizes (numbers of rows with the same key); each stands for an equal share of
            the keys. (1,) if keys do not recur, or if `Entities` groups the rows.
    """

    are_numbers: bool
    templates: tuple[KeyTemplate, ...]
    parts: tuple[KeyPart, ...] = ()
    sizes: tuple[int, ...] = (1,)

    @classmethod
    def fit(
        cls,
        chunks: Iterable[pd.Series[Any]],
        column: Column,
        parts: tuple[KeyPart, ...] = (),
        sizes: tuple[int, ...] = (1,),
        used: Iterable[pd.Series[Any]] | None = None,
    ) -> Self:
        """Learns the key formats of a column.

        Args:
            chunks: Keys in chunks of rows, without the text of `parts`. They are iterated several
                times, so that a generator does not suffice.
            parts: Parts of the keys that other columns determine, such as the year of a date.
            sizes: Group sizes (numbers of rows with the same key); each stands for an equal share
                of the keys.
            used: Keys that must not be generated, like `chunks`; None if these are the keys of
                `chunks`.
        """
        are_numbers = any(pd.api.types.is_integer_dtype(chunk.dtype) for chunk in chunks)
        found = _learned(chunks, chunks if used is None else used, column, are_numbers)
        n_blank = sum(int(chunk.isna().sum()) for chunk in chunks) if column.missing.allowed else 0
        n_rows = max(sum(map(len, chunks)), 1)
        with_keys = CYCLE_ROWS - min(CYCLE_ROWS * n_blank // n_rows, CYCLE_ROWS - 1)
        total = sum(template.rows for template in found)
        shares = [with_keys * template.rows // total for template in found]
        shares[0] += with_keys - sum(shares)
        templates = (replace(t, rows=rows) for t, rows in zip(found, shares, strict=True) if rows)
        return cls(column, are_numbers, tuple(templates), parts, sizes)

    def completed(self, keys: pd.Series[Any], rows: pd.DataFrame) -> pd.Series[Any]:
        """Inserts the parts that other columns determine, such as the year of a date, and returns n
        complete keys. Shape: (n,) -> (n,).

        Args:
            keys: Keys without these parts, from `decode`.
            rows: Cells of the other columns in the rows of the keys.
        """
        if not self.parts:
            return keys
        texts = with_parts(keys.to_numpy(dtype=object), self.parts, rows)
        return pd.Series(texts, keys.index, dtype=keys.dtype)

    def decode(self, rows: Numbers, seed: int) -> pd.Series[Any]:
        """Generates the keys of n synthetic rows, given the rows' numbers. Texts that other columns
        determine, such as a year, are still absent from the keys; `completed` inserts them. If no
        two rows share a key, the key of a row does not depend on the other rows. Shape: (n,)."""
        if self.sizes != (1,) and len(rows):
            first = str(rows[0])
            rows = rows[random_groups(self.sizes, len(rows), self._origin(seed, -2), first)]
        cycles, at = np.divmod(rows, np.uint64(CYCLE_ROWS))
        cycle = np.arange(CYCLE_ROWS, dtype=np.uint64)
        places = shuffled(cycle, CYCLE_ROWS, derived_seed(self._origin(seed, -1)))
        texts = np.full(len(rows), None, dtype=object)
        start = 0
        for number, template in enumerate(self.templates):
            are_own = (places >= start) & (places < start + template.rows)
            before: npt.NDArray[np.uint64] = (np.cumsum(are_own) - are_own).astype(np.uint64)
            own = np.flatnonzero(are_own[at])
            index = cycles[own] * np.uint64(template.rows) + before[at[own]]
            texts[own] = template.keys(index, rows[own], self._origin(seed, number))
            start += template.rows
        if self.column.personal in CHECKED:
            texts[:] = [text and with_check_digits(text, self.column.personal) for text in texts]
        return self._typed(texts)

    def width_warning(self, rows: int) -> str | None:
        """Returns a warning if a sample of this many rows (for the key of entities: this many
        entities) needs keys with more characters than the table's; else None."""
        rows = math.ceil(rows / np.mean(self.sizes))
        fresh = min(template.room * CYCLE_ROWS // template.rows for template in self.templates)
        if rows <= fresh:
            return None
        room = f"room for {fresh:,} rows with" if fresh else "no room for"
        return (
            f"column {self.name!r}: the table's identifiers leave {room} fresh ones of their "
            f"width; of {rows:,} rows some have wider ones"
        )

    def _origin(self, seed: int, number: int) -> str:
        return f"{seed}\x1f{self.name}\x1f{number}"

    def _typed(self, texts: npt.NDArray[Any]) -> pd.Series[Any]:
        blank = texts == None  # noqa: E711 - cell by cell
        places = np.where(blank, -1, np.arange(len(texts)))
        if not self.are_numbers:
            return placed_values(pa.array(texts, pa.string()), places, False)
        values = np.zeros(len(texts), dtype=np.int64)
        values[~blank] = texts[~blank].astype("U20").astype(np.int64)
        return placed_values(values, places, self.column.missing.allowed)


def _learned(
    chunks: Iterable[pd.Series[Any]],
    used: Iterable[pd.Series[Any]],
    column: Column,
    are_numbers: bool,
) -> list[KeyTemplate]:
    def texts(cells: Iterable[pd.Series[Any]]) -> Iterator[Texts]:
        for chunk in cells:
            present = chunk.dropna()
            if pd.api.types.is_integer_dtype(present.dtype):
                present = present.astype(np.int64)
            found = present.astype(str).to_numpy(dtype=object)
            if personal in CHECKED:
                found[:] = [without_check_digits(text, personal) for text in found]
            yield found

    personal = column.personal
    excluded = sorted(MARKERS | WEAK_MARKERS | set(column.missing.markers))
    largest = _largest(column) if are_numbers else None
    return learn_templates(
        partial(texts, chunks), partial(texts, used), excluded, largest, forms_of(personal)
    )


def _largest(column: Column) -> int:
    """Returns the largest whole number that the column can hold, both in its Parquet type and as
    text."""
    kind = None if column.parquet_type is None else parquet_type(column.parquet_type)
    if kind is None or not pa.types.is_integer(kind):
        return int(LARGEST_WHOLE)
    bits = kind.bit_width - pa.types.is_signed_integer(kind)
    return int(min(2**bits - 1, LARGEST_WHOLE))
