"""Plans how each table of a database is generated: its parent table, the columns that it copies
from referenced rows, and the column that orders its rows.

A table has at most one parent table, and each row is generated given its parent row. The parent
table is chosen among the tables that the foreign keys reference. It is the table whose rows explain
most of the variance of their child rows: the largest share of the variance lies between the
children of different parents. A parent table needs at least 20 rows with children, and no reference
to it may be missing. A catalogue (a table that is copied unchanged) is a parent table only if the
user declared it a catalogue with `keep`, not if it was inferred to be one. References to other
tables are chosen after the rows are generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes
from gcvae.errors import Problem, SchemaError, json_pointer
from gcvae.linked.database_schema import DatabaseSchema
from gcvae.linked.random_effect import share_between
from gcvae.linked.references import NO_ROW, all_referenced_rows
from gcvae.linked.totals import is_number
from gcvae.schema.columns import TableSchema

_LEAST_PARENTS = 20
"""Minimum number of rows of a parent table that have children."""
_LEAST_DISTINCT = 0.9
"""Minimum share of cells with words in a column of labels, and of rows whose date is new among the
rows of their parent in a column that orders rows."""
_LONGEST_LABEL = 60
_WORD = r"[^\W\d_]{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""Matches three letters, or a character of a script whose words have one or two characters."""
LEAST_EQUAL = 0.999  # minimum share of rows in which a copied column equals its source


@dataclass(frozen=True)
class TablePlan:
    """Plan of how one table is modelled and generated.

    Attributes:
        parent: Index of the foreign key to the parent table, on whose rows the table's rows depend;
            None without a parent.
        is_catalogue: Whether the table is copied unchanged.
        copied: Columns that repeat a column of a referenced row: {column: (index of the foreign
            key, column of the referenced table)}.
        order: Column that orders the rows of a parent; None if they are unordered.
    """

    parent: int | None = None
    is_catalogue: bool = False
    copied: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    order: str | None = None


def plan_database(
    tables: Mapping[str, pd.DataFrame],
    schemas: Mapping[str, TableSchema],
    schema: DatabaseSchema,
) -> tuple[dict[str, TablePlan], dict[str, dict[int, Codes]]]:
    """Chooses for each table its parent table (each row is generated given its parent row), the
    column that orders its rows, and the columns that it copies from referenced rows.

    Returns (plans by table, parents before their children; for each table and foreign key, the row
    index that each row references).

    Args:
        tables: Tables by name, with cells of the columns' dtypes.
        schemas: Column schemas by table name.
        schema: Keys of the tables.

    Raises:
        SchemaError: The column that the user specified to order the rows of a table is a key, or is
            not a complete column of dates or numbers.
    """
    rows = all_referenced_rows(tables, schema)
    catalogues = _catalogues(tables, schemas, schema)
    # An inferred catalogue is never a parent, even if `with_plans` has written it to the schema.
    without_stated = {
        name: replace(table, keep=None if table.keep else table.keep)
        for name, table in schema.tables.items()
    }
    inferred_catalogues = _catalogues(tables, schemas, DatabaseSchema(without_stated))
    parents: dict[str, int | None] = {}
    for name, table in schema.tables.items():
        candidates = [
            i
            for i, key in enumerate(table.foreign_keys)
            if key.table != name
            and name not in catalogues
            and key.table
            not in (catalogues if schema[key.table].keep is None else inferred_catalogues)
            and not (rows[name][i] == NO_ROW).any()
            and len(np.unique(rows[name][i])) >= _LEAST_PARENTS
        ]
        own = tables[name].drop(columns=key_columns(name, schema), errors="ignore")
        ranked = sorted(candidates, key=lambda i: -share_between(own, rows[name][i]))
        parents[name] = ranked[0] if ranked else None
    _break_circles(parents, schema)
    plans = {}
    for name in _parents_first(parents, schema):
        table = schema[name]
        copied = {} if name in catalogues else _copied_columns(name, tables, rows[name], schema)
        order = table.order
        _check_order(name, tables[name], schema)
        if parents[name] is None:
            order = None
        elif order is None:
            order = _find_order_column(name, tables[name], rows[name][parents[name] or 0], schema)
        plans[name] = TablePlan(parents[name], name in catalogues, copied, order)
    return plans, rows


def with_plans(links: DatabaseSchema, plans: Mapping[str, TablePlan]) -> DatabaseSchema:
    """Returns the database schema after adding what the plans decided: which columns order rows,
    and which tables are copied unchanged."""
    tables = {
        name: replace(
            table,
            order=table.order if table.order is not None else plans[name].order,
            keep=table.keep if table.keep is not None or not plans[name].is_catalogue else True,
        )
        for name, table in links.tables.items()
    }
    return DatabaseSchema(tables)


def key_columns(name: str, schema: DatabaseSchema) -> list[str]:
    """Returns the columns of a table's primary and foreign keys, without repetitions."""
    return list(dict.fromkeys([*schema[name].primary_key, *schema[name].referring]))


def _catalogues(
    tables: Mapping[str, pd.DataFrame],
    schemas: Mapping[str, TableSchema],
    schema: DatabaseSchema,
) -> set[str]:
    """Returns the names of the tables to copy unchanged: those that the user specified, and those
    inferred.

    An inferred table refers only to tables that are copied, too. In addition, either another table
    refers to it and its rows have labels (`_has_label`), or it has no columns except two or more
    foreign keys.
    """
    referred = {
        k.table for name, t in schema.tables.items() for k in t.foreign_keys if k.table != name
    }
    catalogues = {name for name, table in schema.tables.items() if table.keep}
    while True:
        found = {
            name
            for name, table in schema.tables.items()
            if table.keep is None
            and name not in catalogues
            and all(key.table in catalogues for key in table.foreign_keys)
            and (
                (
                    name in referred
                    and _has_label(tables[name], schemas[name], schema[name].primary_key)
                )
                or _is_link(name, tables[name], schema)
            )
        }
        if not found:
            return catalogues
        catalogues |= found


def _has_label(frame: pd.DataFrame, schema: TableSchema, key: tuple[str, ...]) -> bool:
    """Returns whether a column outside the primary key `key` contains labels, such as names of
    genres: short texts with words that seldom repeat. False if any column is personal or contains
    dates."""
    if any(column.personal or column.has_times for column in schema):
        return False
    for column in schema:
        cells = frame[column.name].dropna() if column.name in frame else pd.Series(dtype=object)
        if column.name in key or not len(cells) or not column_is_text(cells):
            continue
        texts = cells.astype(str)
        is_short = texts.str.len().mean() <= _LONGEST_LABEL
        are_words = texts.str.contains(_WORD).mean() >= _LEAST_DISTINCT
        if is_short and are_words and texts.nunique() >= 0.7 * len(texts):
            return True
    return False


def column_is_text(cells: pd.Series[Any]) -> bool:
    """Returns whether a column has a dtype that can hold strings: object or pandas string dtype."""
    return cells.dtype == object or isinstance(cells.dtype, pd.StringDtype)


def _is_link(name: str, frame: pd.DataFrame, schema: DatabaseSchema) -> bool:
    keys = schema[name].foreign_keys
    return len(keys) >= 2 and set(frame.columns) == {c for key in keys for c in key.columns}


def _break_circles(parents: dict[str, int | None], schema: DatabaseSchema) -> None:
    """Sets the parent of a table to None, in place, if its chain of ancestors meets a table
    twice."""
    for name in parents:
        seen, at = {name}, name
        while (number := parents[at]) is not None:
            at = schema[at].foreign_keys[number].table
            if at in seen:
                parents[name] = None
                break
            seen.add(at)


def _parents_first(parents: Mapping[str, int | None], schema: DatabaseSchema) -> list[str]:
    found: list[str] = []

    def visit(name: str) -> None:
        number = parents[name]
        if number is not None:
            visit(schema[name].foreign_keys[number].table)
        if name not in found:
            found.append(name)

    for name in parents:
        visit(name)
    return found


def _copied_columns(
    name: str,
    tables: Mapping[str, pd.DataFrame],
    rows: Mapping[int, Codes],
    schema: DatabaseSchema,
) -> dict[str, tuple[int, str]]:
    """Returns the columns that repeat a column of a referenced row: {column: (index of the foreign
    key, column of the referenced table)}."""
    found: dict[str, tuple[int, str]] = {}
    keys = set(key_columns(name, schema))
    for i, key in enumerate(schema[name].foreign_keys):
        at = rows[i]
        if key.table == name or (at == NO_ROW).any() or not len(at):
            continue
        parents = tables[key.table]
        for column in tables[name].columns:
            own = tables[name][column]
            if column in keys or column in found or own.nunique() < 2:
                continue
            for other in parents.columns:
                if other in key.references or parents[other].dtype != own.dtype:
                    continue
                theirs = parents[other].to_numpy(dtype=object)[at]
                cells = own.to_numpy(dtype=object)
                are_missing = pd.isna(theirs) & pd.isna(cells)
                if float(((theirs == cells) | are_missing).mean()) >= LEAST_EQUAL:
                    found[column] = i, str(other)
                    break
    return found


def _is_ordered(dtype: Any) -> bool:
    return pd.api.types.is_datetime64_any_dtype(dtype) or is_number(dtype)


def _share_repeated(cells: pd.Series[Any], parents: Codes) -> float:
    return float(pd.DataFrame({"p": parents, "t": cells.to_numpy()}).duplicated().mean())


def _check_order(name: str, frame: pd.DataFrame, schema: DatabaseSchema) -> None:
    """Raises a SchemaError if the user's order column is a key, has missing values, or contains
    neither dates nor numbers."""
    order = schema[name].order
    if order is None or not len(frame):
        return
    pointer, dtype = json_pointer("tables", name, "order"), frame[order].dtype
    is_key = order in schema[name].referring or schema[name].primary_key == (order,)
    message = None
    if is_key:
        message = f"the order of table {name!r} is its key {order!r}"
    elif not _is_ordered(dtype):
        message = f"column {order!r} of table {name!r} has no dates and no numbers"
    elif frame[order].isna().any():
        n_blank = int(frame[order].isna().sum())
        message = f"column {order!r} of table {name!r} is blank in {n_blank} rows"
    if message is not None:
        expected = "a column of dates or numbers beside the keys, without blanks"
        raise SchemaError(Problem(message, pointer, column=order, expected=expected))


def _find_order_column(
    name: str, frame: pd.DataFrame, parents: Codes, schema: DatabaseSchema
) -> str | None:
    """Returns the column that orders the rows of a parent; None if there is none.

    It is a column that together with foreign keys forms a unique key, or the first column of dates
    that hardly repeat among the rows of one parent.
    """
    for columns in (schema[name].primary_key, *schema[name].unique):
        own = [c for c in columns if c not in schema[name].referring]
        if len(own) == 1 and len(columns) > 1:
            cells = frame[own[0]]
            is_whole = _is_ordered(cells.dtype) and not cells.isna().any()
            if is_whole and not _share_repeated(cells, parents):
                return own[0]  # a unique key of reference and time
    n_parents = len(np.unique(parents))
    if len(frame) < 2 * n_parents or not len(frame):
        return None
    keys = set(key_columns(name, schema))
    for column in frame.columns:
        is_date = pd.api.types.is_datetime64_any_dtype(frame[column].dtype)
        if not is_date or frame[column].isna().any() or (column in keys and len(keys) == 1):
            continue
        if _share_repeated(frame[column], parents) <= 1.0 - _LEAST_DISTINCT:
            return str(column)
    return None
