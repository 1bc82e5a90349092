"""The schema with which a model is trained.

A dataset's schema is inferred from all rows when the table is uploaded, and shown to the user, who
can correct it. Training keeps what the user specified (`given_schema` in the dataset's record).

Training infers again the limits and level names that the user did not specify. It rounds limits and
suppresses rare levels, because they would reveal single rows. If rows are set aside for a report,
inferred values (levels, limits, decimals, steps, rules) may come from these rows. Training then
infers all of these values again, from the remaining rows.
"""

from __future__ import annotations

from catalog import Dataset, Document
from gcvae.schema.kinds import ColumnKind, Outcomes

_AGREED = ("name", "kind", "drop", "datetime_format", "number_format",
           "parquet_type", "dtype", "personal")  # fmt: skip


_LIMITS = ("minimum", "maximum")


def schema_as_said(dataset: Dataset) -> Document:
    """Returns a dataset's schema without limits and level names that the user did not specify.

    Levels are the categories of a column. Training infers limits and levels again, and rounds or
    suppresses those that would reveal single rows.
    """
    given = {column["name"]: column for column in dataset.given_schema.get("columns") or ()}
    columns = [
        {
            member: value
            for member, value in column.items()
            # Limits and levels of categorical columns are values of cells.
            if not (member in _LIMITS or (member == "levels" and column["kind"] == "categorical"))
            or given.get(column["name"], {}).get(member) is not None
        }
        for column in dataset.schema["columns"]
    ]
    return dataset.schema | {"columns": columns}


def schema_without_values(dataset: Dataset) -> Document:
    """Returns a dataset's schema without inferred limits, levels, decimals, steps and rules.

    Training infers these anew from its own rows. What the user specified is kept. The names, kinds
    and formats of all columns are kept, too, and so are inferred levels that are words for true and
    false, or ordered strings (`_levels_are_agreed`).
    """
    given = {column["name"]: column for column in dataset.given_schema.get("columns") or ()}
    columns = [
        _without_values(column) | _said(given.get(column["name"], {}))
        for column in dataset.schema["columns"]
    ]
    kept = {name: dataset.schema[name] for name in ("version", "separator")
            if name in dataset.schema}  # fmt: skip
    given = {name: dataset.given_schema.get(name) for name in ("rules", "find_rules")}
    said = {name: value for name, value in given.items() if value is not None}
    return kept | {"columns": columns} | said


def _without_values(column: Document) -> Document:
    """Returns the name, kind and formats of a column, and how missing cells are marked.

    Levels are included only if they cannot be inferred (`_levels_are_agreed`).
    """
    left = {member: column[member] for member in _AGREED if member in column}
    missing = column.get("missing", {})
    open_missing = {name: missing[name] for name in ("markers", "is_value") if name in missing}
    if open_missing:
        left["missing"] = open_missing
    if _levels_are_agreed(column):
        left["levels"] = column["levels"]
    return left


def _levels_are_agreed(column: Document) -> bool:
    """Returns whether training keeps a column's levels as the user has seen them.

    This holds for words that mean true and false, and for ordered strings. Cells show neither which
    word means true nor the order of the strings, so these levels cannot be inferred again.
    """
    if column.get("drop") or not column.get("levels"):
        return False
    outcomes = next(kind.outcomes for kind in ColumnKind if kind == column["kind"])
    if outcomes is Outcomes.ORDERED_LEVELS:
        return any(isinstance(level, str) for level in column["levels"])
    return outcomes is Outcomes.TRUTH_VALUES


def _said(column: Document) -> Document:
    """Null in a schema means that the user specified nothing."""
    return {member: value for member, value in column.items() if value is not None}
