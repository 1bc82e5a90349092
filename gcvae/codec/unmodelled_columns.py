"""Columns that are not modelled: identifiers, personal columns, constants, and copies of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gcvae.cells.values import placed_values
from gcvae.codec.column_codec import ColumnPart
from gcvae.codec.entities import Entities, group_sizes, mean_sizes
from gcvae.codec.identifiers import IdentifierCodec
from gcvae.codec.key_parts import KeyPart, learn_parts, without_parts
from gcvae.codec.people import People
from gcvae.codec.personal import PersonalCodec, fit_personal, has_personal_codec
from gcvae.files.typed_columns import TypedTable, row_chunks, rows_at, value_codes
from gcvae.numerics.permutations import Numbers
from gcvae.schema.columns import Column, Missing, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.personal import PersonalKind
from gcvae.spelling.date_text import read_dates

LEAST_ROWS_OF_COPIES = 10
"""Minimum number of rows with a value other than the most frequent one for two equal columns to
count as copies; in fewer rows they may agree by chance."""
_UNIQUE_SHARE, _LEAST_KEYS = 0.9, 20
"""Minimum number of distinct keys per row for repeated keys to be taken for errors of the table;
minimum number of keys for group sizes to be learned."""


@dataclass(frozen=True)
class ConstantCodec(ColumnPart):
    """Codec of a column that contains the same value in every row, or only missing cells."""

    def decode(self, rows: Numbers, seed: int = 0) -> pd.Series[Any]:
        """Returns the column's constant (or missing, if it has none) for each of n rows; `seed` has
        no effect. Shape: (n,)."""
        levels: npt.NDArray[Any] | list[Any] = list(self.column.levels or ())
        if self.column.datetime_format is not None and len(levels):
            levels = read_dates(pa.array([str(levels[0])]), self.column.datetime_format)
        places = np.full(len(rows), 0 if len(levels) else -1)
        return placed_values(levels, places, self.column.missing.allowed)


def find_copies(table: TypedTable, columns: Sequence[Column]) -> dict[str, str]:
    """Returns a dictionary from each column that is a copy to the earlier column that it equals in
    every row. Only columns with the same kind, limits and levels can be copies."""
    copies: dict[str, str] = {}
    seen: dict[Column, list[str]] = {}
    for column in columns:
        missing = Missing(column.missing.allowed)
        possible = replace(column, name="", missing=missing, parquet_type=None, dtype=None)
        alike = seen.setdefault(possible, [])
        source = next((name for name in alike if _are_equal(table, column.name, name)), None)
        if source is None:
            alike.append(column.name)
            continue
        counts = table[source].value_counts(dropna=False)
        if counts.sum() - counts.max() >= LEAST_ROWS_OF_COPIES:
            copies[column.name] = source
    return copies


def _are_equal(table: TypedTable, one: str, other: str) -> bool:
    chunks = zip(row_chunks(table, [one]), row_chunks(table, [other]), strict=True)
    return all(a[one].equals(b[other]) for a, b in chunks)


Unmodelled = IdentifierCodec | ConstantCodec | PersonalCodec


@dataclass(frozen=True)
class _CellChunks:
    """Cells of one column in chunks of rows, which can be iterated several times."""

    table: TypedTable
    name: str
    parts: tuple[KeyPart, ...] = ()

    def __iter__(self) -> Iterator[pd.Series[Any]]:
        for chunk in row_chunks(self.table, [self.name]):
            cells = chunk[self.name]
            if self.parts:
                cells = cells.map(lambda key: without_parts(key, self.parts), na_action="ignore")
            yield cells


def fit_unmodelled(
    table: TypedTable,
    columns: Sequence[Column],
    schema: TableSchema,
    entities: Entities | None = None,
    whole: TypedTable | None = None,
) -> tuple[Unmodelled, ...]:
    """Returns the fitted codecs of those `columns` that the model does not learn.

    Args:
        schema: Schema of the table, whose columns may determine parts of identifiers.
        entities: Recurring key, such as a customer number. Only columns that the key determines may
            provide parts of it. None without a recurring key.
        whole: Table with all rows, also those that are not used in training; no identifier or
            personal cell in it is generated. None if `table` has all rows.
    """
    whole = table if whole is None else whole
    people = People.of(table, columns, whole) if any(map(has_personal_codec, columns)) else None

    def fitted(column: Column) -> Unmodelled:
        if people is not None and has_personal_codec(column):
            return fit_personal(table, column, people, columns, whole)
        if column.kind.outcomes is Outcomes.KEYS:
            others = [other for other in schema if other.is_modelled]
            if entities is not None and column.name == entities.key:
                others = [other for other in others if other.name in entities.determined]
            may_have_parts = column.personal in (None, False, PersonalKind.PHONE)
            is_text = may_have_parts and not _are_whole(table, column.name)
            parts = learn_parts(table, column, others) if is_text else ()
            of_entity = () if entities is None else (entities.key, *entities.determined)
            sizes = (1,) if column.name in of_entity else _sizes(table, column)
            cells, used = (_CellChunks(rows, column.name, parts) for rows in (table, whole))
            return IdentifierCodec.fit(cells, column, parts, sizes, used)
        return ConstantCodec(column)

    return tuple(fitted(column) for column in columns if not column.is_modelled)


def _sizes(table: TypedTable, column: Column) -> tuple[int, ...]:
    """Returns group sizes (numbers of rows with the same key), each for an equal share of the keys.
    Returns (1,) if there are few keys, if few keys recur, or if the column's values do not identify
    an entity."""
    sizes = group_sizes(value_codes(table, column.name)) if column.is_key else np.ones(1, int)
    recurs = _LEAST_KEYS <= len(sizes) < _UNIQUE_SHARE * sizes.sum()
    return mean_sizes(sizes) if recurs else (1,)


def _are_whole(table: TypedTable, name: str) -> bool:
    return pd.api.types.is_numeric_dtype(rows_at(table, slice(0, 1), [name])[name].dtype)


def people_document(codecs: Iterable[Unmodelled]) -> dict[str, Any]:
    """Returns {"people": JSON document of the generator of names}, or {} if no codec uses one."""
    people = next((codec.people for codec in codecs if isinstance(codec, PersonalCodec)), None)
    return {} if people is None else {"people": people.to_json()}


def unmodelled_of_json(
    columns: Iterable[Column], documents: Mapping[str, Any], people: Mapping[str, Any] | None
) -> tuple[Unmodelled, ...]:
    """Restores the codecs of the columns that the model does not learn.

    Args:
        columns: Columns of the table; those that the model learns are skipped.
        documents: JSON document of each codec, by name of the column.
        people: JSON document of the generator of names; None if no column needs it.

    Raises:
        KeyError: A document is absent.
    """
    of_rows = None if people is None else People.from_json(people)

    def read(column: Column) -> Unmodelled:
        document = documents[column.name]
        if not has_personal_codec(column):
            is_key = column.kind.outcomes is Outcomes.KEYS
            return (IdentifierCodec if is_key else ConstantCodec).from_json(column, document)
        if of_rows is None:
            raise KeyError("people")
        return PersonalCodec.of_document(column, document, of_rows)

    return tuple(read(column) for column in columns if not column.is_modelled)
