"""Types of a dataset's columns.

A schedule trains models on the same source again and again. If a column of the source was added
or removed, or has changed its type, since the first training, the next training is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.records import Dataset, Document
from gcvae.errors import Problem
from gcvae.schema.kinds import ColumnKind, Outcomes

_TYPES = {Outcomes.TRUTH_VALUES: "boolean", Outcomes.KEYS: "identifier"}
_ANY = "any"
_WIDE = {"boolean", "identifier"}
"""Types that a column of numbers or of text may be inferred to have, depending on its rows. They
are therefore not a change from `number` or `text`."""


def column_types(dataset: Dataset) -> dict[str, str]:
    """Returns the type of each column: number, text, date, boolean or identifier; `any` for columns
    that are constant or dropped. In a database, names are `table.column`."""
    tables = {f"{table['name']}.": table["schema"] for table in dataset.tables or ()}
    return {
        f"{table}{column['name']}": _type_of(column)
        for table, schema in (tables or {"": dataset.schema}).items()
        for column in schema["columns"]
    }


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[Problem]:
    """Returns a description of each column that was added or removed or whose type has changed.

    `before` and `after` are types by column name, as `column_types` returns them.

    >>> print(*differences({"a": "number", "b": "text"}, {"b": "date", "c": "text"}), sep="; ")
    column 'a': the column is missing; column 'b': its type is date (expected: text); column 'c': \
the column is new
    """
    found = []
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            found.append(Problem("the column is missing", column=name))
        elif name not in before:
            found.append(Problem("the column is new", column=name))
        elif not _may_be_same(before[name], after[name]):
            message = f"its type is {after[name]}"
            found.append(Problem(message, column=name, expected=before[name]))
    return found


def _type_of(column: Document) -> str:
    if "kind" not in column:
        return _ANY
    kind = ColumnKind[column["kind"].upper()]
    if kind.is_real:
        return "number" if kind.is_number else "date"
    if kind.outcomes in (Outcomes.ORDERED_LEVELS, Outcomes.NOMINAL_LEVELS):
        has_text = any(isinstance(level, str) for level in column.get("levels") or ())
        return "text" if has_text else "number"
    return _TYPES.get(kind.outcomes, _ANY)


def _may_be_same(one: str, other: str) -> bool:
    both = {one, other}
    return len(both) == 1 or _ANY in both or ("date" not in both and not both.isdisjoint(_WIDE))
