"""Infers keys of tables from column names, uniqueness and inclusion of values.

    primary key    a unique column without missing cells that is named like a key, or whose values
                   are repeated by a column of the same name in another table;
                   else a foreign key and a column that numbers, consecutively, the rows with the
                   same foreign key, such as order number and line number;
                   else all foreign keys together
    foreign key    a column whose values are all among those of another table's primary key,
                   and whose name is similar to that key, to that table, or to both

Keys that the user specifies are not inferred.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from gcvae.errors import Problem, SchemaError
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey, LinkedTable
from gcvae.linked.references import comparable, without_blanks

_RUN_TOGETHER = re.compile(r"(?!paid|valid|bid|grid|said|void|fluid|solid|mid|kid|aid)\w+id")
"""Matches key names without a separator, such as `userid` and `pid`."""
_KEY_WORDS = frozenset({"id", "key", "no", "nr", "num", "number", "code", "uuid", "guid", "pk"})


def infer_database(
    tables: Mapping[str, pd.DataFrame], given: Mapping[str, Any] | None = None
) -> DatabaseSchema:
    """Infers the primary and foreign keys of tables, except the keys that the user specified.

    Args:
        tables: Tables by name.
        given: JSON document of the schema, with all members optional; None infers everything.

    Raises:
        SchemaError: The document is malformed, or names an unknown table or column.
    """
    tables = without_blanks(tables)
    document = {"tables": {}} if given is None else given
    if not isinstance(document, Mapping):
        message = f"the schema of a database is {document!r}"
        raise SchemaError(Problem(message, "", expected='an object: {"tables": {...}}'))
    draft = DatabaseSchema.from_json(
        {**document, "tables": _with_unlisted_tables(document, tables)}
    )
    draft.check({name: list(frame.columns) for name, frame in tables.items()})
    stated = document.get("tables", {})
    keyed = {
        name: table
        if "primary_key" in stated.get(name, {})
        else replace(table, primary_key=_primary_key(name, tables))
        for name, table in draft.tables.items()
    }
    keyed = dict(DatabaseSchema(keyed).with_references().tables)
    linked = {
        name: table
        if "foreign_keys" in stated.get(name, {})
        else replace(table, foreign_keys=_foreign_keys(name, tables, keyed))
        for name, table in keyed.items()
    }
    return DatabaseSchema(
        {
            name: table
            if table.primary_key or "primary_key" in stated.get(name, {})
            else replace(
                table,
                primary_key=_numbered_key(tables[name], table)
                or _key_of_references(tables[name], table),
            )
            for name, table in linked.items()
        }
    )


def _key_of_references(frame: pd.DataFrame, table: LinkedTable) -> tuple[str, ...]:
    """Returns the columns of all foreign keys if there are at least two and together they identify
    a row, as in a link table; else an empty tuple."""
    columns = list(dict.fromkeys(table.referring))
    if len(table.foreign_keys) < 2 or not len(frame) or frame[columns].isna().any(axis=None):
        return ()
    return () if frame.duplicated(columns).any() else tuple(columns)


def _numbered_key(frame: pd.DataFrame, table: LinkedTable) -> tuple[str, ...]:
    """Returns a primary key of two columns, such as order number and line number: a foreign key,
    and a column that numbers the rows with the same foreign key consecutively. Empty if there are
    none, or if the user specified other unique columns."""
    if table.unique:
        return ()
    for [key] in (key.columns for key in table.foreign_keys if len(key.columns) == 1):
        for column in (c for c in frame.columns if c not in table.referring):
            cells = frame[[key, column]]
            if cells.isna().any(axis=None) or cells.duplicated().any() or len(cells) < 2:
                continue
            numbers = pd.to_numeric(cells[column].astype(str), errors="coerce")
            ranks = numbers.groupby(cells[key]).rank()
            if (numbers - ranks).nunique(dropna=False) == 1 and numbers.nunique() > 1:
                return key, str(column)
    return ()


_SAME_NAME = 3
"""Result of `_likeness` for a column that has the name of another table's key."""
_SUPERIORS = frozenset({"parent", "manager", "boss", "supervisor", "superior", "to", "lead"})
"""Words in the names of columns that reference another row of the same table."""
_LEAST_INCLUDED = 0.9
"""Minimum share of values that exist as keys, for a column with the name of the primary key. The
other values are then invalid references, which a fit refuses by default."""


def _with_unlisted_tables(document: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> Any:
    """Returns member `tables` of a schema document, with an empty entry for each table that it does
    not name. A member that is no JSON object is unchanged; its error is reported later."""
    listed = document.get("tables", {})
    if not isinstance(listed, Mapping):
        return listed
    known = {name: listed.get(name, {}) for name in tables}
    return known | {name: each for name, each in listed.items() if name not in known}


def _words(name: str) -> list[str]:
    """Splits a name into lower-case words: `CustomerId` -> customer, id."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    return [word for word in re.split(r"[^0-9a-zA-Z]+", parts.lower()) if word]


def _singular(word: str) -> str:
    for ending, stem in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + stem
    return word


def _singular_name(name: str) -> str:
    """Returns a table's name as one singular word: `order_lines` -> orderline."""
    words = _words(name)
    return "".join([*words[:-1], _singular(words[-1])]) if words else ""


def ends_in_key_word(column: str) -> bool:
    """Returns whether a column is named like a key, such as `customer_id` or `InvoiceNo`."""
    words = _words(column)
    if not words:
        return False
    return words[-1] in _KEY_WORDS or bool(_RUN_TOGETHER.fullmatch(words[-1]))


def _is_like_a_key(column: str, table: str) -> bool:
    return ends_in_key_word(column) or "".join(_words(column)) == _singular_name(table)


def _is_unique(cells: pd.Series[Any]) -> bool:
    return bool(len(cells)) and bool(cells.notna().all()) and cells.is_unique


def _primary_key(name: str, tables: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """Returns a tuple of one column, the primary key of a table; an empty tuple if there is none.

    The column is unique, and is named like a key or repeated in another table (`_is_used`). Among
    several such columns, one named `id`, or `user_id` in table users, is preferred, then one that
    is repeated in another table.
    """
    frame, own = tables[name], _singular_name(name)
    others = [other for key, other in tables.items() if key != name]
    used = {c for c in frame.columns if any(_is_used(frame[c], other) for other in others)}
    found = [
        c for c in frame.columns if (c in used or _is_like_a_key(c, name)) and _is_code(frame[c])
    ]

    def rank(column: str) -> tuple[bool, bool, bool]:
        words = _words(column)
        is_id = words in (["id"], [own, "id"])
        return not is_id, column not in used, "".join(words[:-1]) not in ("", own)

    return (min(found, key=rank),) if found else ()


def _is_code(cells: pd.Series[Any]) -> bool:
    return _is_unique(cells) and not cells.astype(str).str.contains(r"\s").any()


def _is_used(cells: pd.Series[Any], other: pd.DataFrame) -> bool:
    """Returns whether table `other` refers to the unique column `cells`: it has a column of the
    same name with repeated values, all of which are in `cells`. False for fractions and for
    consecutive numbers from 0 or 1, because many tables contain them."""
    if cells.name not in other or not _is_unique(cells):
        return False
    numbers = pd.to_numeric(cells.astype(str), errors="coerce")
    are_row_numbers = numbers.min() <= 1 and numbers.max() - numbers.min() == len(numbers) - 1
    values = other[cells.name].dropna()
    is_fraction = (numbers % 1 != 0).mean() if numbers.notna().all() else 0.0
    if are_row_numbers or is_fraction or not values.duplicated().any():
        return False
    return _share_included(values, cells) == 1.0


def _foreign_keys(
    name: str, tables: Mapping[str, pd.DataFrame], schema: Mapping[str, LinkedTable]
) -> tuple[ForeignKey, ...]:
    """Infers which columns of table `name` are foreign keys; each key has one column."""
    found = []
    for column in tables[name].columns:
        if (column,) == schema[name].primary_key and len(schema) == 1:
            continue
        values = tables[name][column].dropna()
        if not len(values):
            continue
        candidates = [
            (score, other)
            for other, table in schema.items()
            if len(table.primary_key) == 1
            and (other, table.primary_key[0]) != (name, column)
            and (score := _likeness(name, column, other, table.primary_key[0]))
            and _share_included(values, tables[other][table.primary_key[0]])
            >= (_LEAST_INCLUDED if score >= _SAME_NAME else 1.0)
        ]
        if candidates:
            _, other = max(candidates)
            found.append(ForeignKey((column,), other, schema[other].primary_key))
    return tuple(found)


def _likeness(name: str, column: str, other: str, key: str) -> int:
    """Returns how strongly the name of a column suggests that it refers to `key` of table `other`:
    4 if it joins the names of `other` and `key`, 3 if it equals `key`, 2 if it resembles `other`, 1
    for a name such as `manager` if `other` is the column's own table `name`, else 0."""
    words, key_words, own = _words(column), _words(key), _singular_name(other)
    is_own_key = _singular_name(name) in ("".join(words), "".join(words[:-1]))
    if is_own_key and name != other and column != key:
        return 0
    if words == [*_words(own), *key_words] or "".join(words) == own + "".join(key_words):
        return 4
    if column == key and key_words != ["id"]:
        return _SAME_NAME
    stem = "".join(map(_singular, words[:-1] if words and words[-1] in _KEY_WORDS else words))
    if stem and (stem == own or own.endswith(stem) or stem.endswith(own)):
        return 2
    return int(name == other and column != key and not _SUPERIORS.isdisjoint(words))


def _share_included(values: pd.Series[Any], keys: pd.Series[Any]) -> float:
    """Returns the share of `values` that are among `keys`; a number equals its decimal string."""
    values, keys = comparable(values, keys)
    return float(values.isin(keys).mean())
