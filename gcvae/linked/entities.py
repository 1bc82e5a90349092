"""Finds entities within one table: repeated keys that determine other columns.

    orders(order_no, customer_id, country, email, ...)
        -> orders by customer_id (customer_id, country, email),  orders(order_no, customer_id, ...)
    sales(store, department, week, amount)
        -> sales by store, department (store, department),  sales(store, department, week, amount)

An entity is a repeated key that determines other columns, such as a customer; or a series: a parent
row and a level that together have at most one row per date, such as a department of a store. The
table is modelled as a table of entities and a table of their rows, which are joined after
generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from gcvae.arrays import Mask
from gcvae.cells.data_frames import with_columns
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey, LinkedTable
from gcvae.linked.infer_links import ends_in_key_word
from gcvae.schema.columns import Column, TableSchema

_LEAST_ENTITIES = 20
_LEAST_ROWS_EACH = 2.0
_LEAST_DETERMINED = 2
_LEAST_STEPS = 3.0
_MOST_SERIES_LEVELS = 500


@dataclass(frozen=True)
class Split:
    """Describes how a table is divided into a table of entities and a table of their rows.

    Attributes:
        table: Name of the divided table, which is also the name of the table of rows.
        key: Columns that identify an entity.
        determined: Columns whose values the key determines; they are moved to the table of
            entities.
        columns: All columns of the original table, in order.
        levels: Distinct values of the key's last column if the entity is a series, such as the
            departments of stores. The models learn the indices of these values instead of the
            values. Empty if the values are integers, or if the entity is not a series.
    """

    table: str
    key: tuple[str, ...]
    determined: tuple[str, ...]
    columns: tuple[str, ...]
    levels: tuple[Any, ...] = ()

    @property
    def parent(self) -> str:
        """Name of the table of entities."""
        return f"{self.table} by {', '.join(self.key)}"

    def joined(self, rows: pd.DataFrame, parents: pd.DataFrame) -> pd.DataFrame:
        """Adds to each row the columns of its entity in `parents`. Returns rows with the columns of
        the original table."""
        of_parents = parents[[*self.key, *self.determined]]
        found = rows.merge(of_parents, on=list(self.key), how="left")[list(self.columns)]
        if self.levels:
            at = found[self.key[-1]].to_numpy(dtype=np.int64)
            levels = pd.Series(list(self.levels))
            found[self.key[-1]] = levels.iloc[at.clip(0, len(levels) - 1)].to_numpy()
        return found

    def divided(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Mask]]:
        """Divides a table into rows and entities.

        Returns (rows, entities, differing). `differing` contains, by determined column, a mask of
        the entities whose rows contradict each other: they have several values, although the key
        should determine one.
        """
        if self.levels:
            codes = pd.Index(self.levels).astype(str).get_indexer(frame[self.key[-1]].astype(str))
            frame = with_columns(frame, {self.key[-1]: codes.astype(np.int64)})
        of_parent = [c for c in frame.columns if c in self.key or c in self.determined]
        rest = [c for c in frame.columns if c not in self.determined]
        groups = frame.groupby(list(self.key), sort=False, dropna=False).ngroup().to_numpy()
        parents = frame[of_parent].groupby(groups).first().reset_index(drop=True)  # skips missing
        differing = {}
        for column in self.determined:
            codes = pd.Series(pd.factorize(frame[column])[0]).where(lambda code: code >= 0)
            n_values = codes.groupby(groups).nunique()  # missing cells do not count
            differing[column] = n_values.to_numpy() > 1
        return frame[rest], parents, differing

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Reads the split from the JSON document of its attributes."""
        parts = (tuple(document[name]) for name in ("key", "determined", "columns", "levels"))
        return cls(document["table"], *parts)


def divided_tables(
    tables: Mapping[str, pd.DataFrame], splits: tuple[Split, ...]
) -> tuple[dict[str, pd.DataFrame], dict[str, dict[str, Mask]]]:
    """Divides tables into rows and entities (recurring things, such as customers), as `splits`
    describes. Returns (all tables, including those of entities; `differing`).

    `differing` contains, by table of entities and determined column, a mask of the entities whose
    rows contradict each other: they have several values, although the key should determine one. The
    index of every returned frame counts from 0.
    """
    found = {name: frame.reset_index(drop=True) for name, frame in tables.items()}
    differing: dict[str, dict[str, Mask]] = {}
    for split in splits:
        rows, parents, of_columns = split.divided(found[split.table])
        found[split.table], found[split.parent] = rows, parents
        differing[split.parent] = of_columns
    return found, differing


Parts = tuple[dict[str, pd.DataFrame], dict[str, TableSchema], DatabaseSchema]


def split_entities(
    typed: Mapping[str, pd.DataFrame], schemas: Mapping[str, TableSchema], links: DatabaseSchema
) -> tuple[Parts, tuple[Split, ...]]:
    """Divides each table in which a repeated key, such as a customer number, determines other
    columns. Returns ((tables, column schemas, database schema) after the division, splits).

    Such a table becomes a table of entities, with one row for each key, and a table of their rows.
    The member `entity` of a table in `links` names the key, or forbids the division.
    """
    parts: Parts = dict(typed), dict(schemas), links
    splits = []
    for name in list(links.tables):
        for find in (_find_entity_split, _find_series_split):
            split = find(name, parts[0], parts[2])
            if split is not None and split.parent not in parts[0]:
                parts = _apply_split(split, *parts)
                splits.append(split)
    return parts, tuple(splits)


def _apply_split(
    split: Split,
    typed: dict[str, pd.DataFrame],
    schemas: dict[str, TableSchema],
    links: DatabaseSchema,
) -> Parts:
    """Divides one table into rows and entities. Returns the tables, column schemas and database
    schema, in which the two new tables replace it."""
    frame, schema, table = typed[split.table], schemas[split.table], links[split.table]
    rows, parents, _ = split.divided(frame)
    of_parent, rest = list(parents.columns), list(rows.columns)
    moved = [k for k in table.foreign_keys if set(k.columns) <= set(of_parent)]
    kept = tuple(k for k in table.foreign_keys if k not in moved)
    key = ForeignKey(split.key, split.parent, split.key)
    is_series = len(split.key) > 1
    tables = dict(links.tables) | {
        split.parent: LinkedTable(
            split.key,
            tuple(moved),
            order=split.key[-1] if is_series else None,
            keep=False,
            entity=False,
        ),
        split.table: replace(table, foreign_keys=(key, *kept), keep=False, entity=False),
    }
    of_levels = {split.key[-1]} if split.levels else set()

    def only(names: list[str]) -> TableSchema:
        columns = tuple(
            _column_of_kind(c.name, "integer") if c.name in of_levels else c
            for c in schema
            if c.name in names
        )
        return replace(schema, columns=columns, rules=None)

    of_parents = only(of_parent)
    if not is_series:
        of_parents = with_identifiers(of_parents, set(split.key))
    typed[split.parent], schemas[split.parent] = parents, of_parents
    typed[split.table] = rows
    schemas[split.table] = with_identifiers(only(rest), set(split.key) - of_levels)
    return typed, schemas, DatabaseSchema(tables)


def with_identifiers(schema: TableSchema, names: set[str]) -> TableSchema:
    """Returns the schema after making the named columns identifiers, so that it does not contain
    their values."""
    document = schema.to_json()
    kept = ("name", "missing", "dtype", "parquet_type")
    document["columns"] = [
        {k: v for k, v in c.items() if k in kept} | {"kind": "identifier"}
        if c["name"] in names
        else c
        for c in document["columns"]
    ]
    return TableSchema.from_json(document)


def _column_of_kind(name: str, kind: str) -> Column:
    document = {"version": 1, "columns": [{"name": name, "kind": kind}]}
    return TableSchema.from_json(document).columns[0]


def _find_entity_split(
    name: str,
    typed: Mapping[str, pd.DataFrame],
    links: DatabaseSchema,
) -> Split | None:
    """Returns a split by the repeated key that determines the most other columns, or by the column
    that the schema specifies; None if there is no such column."""
    table, frame = links[name], typed[name]
    if table.entity is False or table.keep:
        return None
    of_keys = {*table.primary_key, *table.referring}
    named = [table.entity] if isinstance(table.entity, str) else []
    candidates = named or [
        str(c) for c in frame.columns if c not in of_keys and ends_in_key_word(str(c))
    ]
    found = []
    for column in candidates:
        cells = frame[column]
        n = cells.nunique()
        comes_again = len(cells) >= _LEAST_ROWS_EACH * n and n >= _LEAST_ENTITIES
        if cells.isna().any() or not (named or comes_again):
            continue
        others = [str(c) for c in frame.columns if c not in of_keys and c != column]
        determined = tuple(c for c in others if _determines(cells, frame[c]))
        if named or len(determined) >= _LEAST_DETERMINED:
            found.append((len(determined), column, determined))
    if not found:
        return None
    _, column, determined = max(found, key=lambda each: each[0])
    # Foreign keys that the entity determines move to its table.
    references = [
        c
        for k in table.foreign_keys
        if not set(k.columns) & set(table.primary_key)
        and all(_determines(frame[column], frame[c]) for c in k.columns)
        for c in k.columns
    ]
    return Split(name, (column,), (*determined, *references), tuple(map(str, frame.columns)))


def _determines(keys: pd.Series[Any], cells: pd.Series[Any]) -> bool:
    """Returns whether rows with the same key have the same cell; False if all cells are equal."""
    if cells.nunique(dropna=False) < 2:
        return False
    codes = pd.factorize(cells)[0]
    pairs = pd.DataFrame({"key": keys.to_numpy(), "cell": codes}).drop_duplicates()
    return len(pairs) == keys.nunique()


def _find_series_split(
    name: str,
    typed: Mapping[str, pd.DataFrame],
    links: DatabaseSchema,
) -> Split | None:
    """Returns a split of a table into series and their rows; None if the table has no series.

    A series consists of the rows that refer to one parent row and have one value in another column,
    at most one row for each date: for example, the weekly sales of one department of one store.
    """
    table, frame = links[name], typed[name]
    if not table.foreign_keys or table.entity is False or table.keep:
        return None
    parent = list(table.foreign_keys[0].columns)
    dates = (
        [table.order]
        if table.order
        else [str(c) for c in frame.columns if pd.api.types.is_datetime64_any_dtype(frame[c].dtype)]
    )
    for date in dates:
        if not frame.duplicated([*parent, date]).any() or frame[date].isna().any():
            continue
        for column in map(str, frame.columns):
            cells = frame[column]
            if column in (*parent, *dates) or cells.isna().any():
                continue
            n_levels = cells.nunique()
            is_few = 1 < n_levels <= _MOST_SERIES_LEVELS
            n_series = len(frame.drop_duplicates([*parent, column]))
            if not is_few or len(frame) < _LEAST_STEPS * n_series:
                continue
            if frame.duplicated([*parent, column, date]).any():
                continue
            groups = frame.groupby([*parent, column], sort=False).ngroup()
            others = [str(c) for c in frame.columns if c not in (*parent, column, date)]
            determined = tuple(c for c in others if _determines(groups, frame[c]))
            is_whole = pd.api.types.is_integer_dtype(cells.dtype)
            levels = () if is_whole else tuple(sorted(cells.unique(), key=str))
            columns = tuple(map(str, frame.columns))
            return Split(name, (*parent, column), determined, columns, levels)
    return None
