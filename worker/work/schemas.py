"""The schema that a model is trained under.

A dataset's schema is inferred from all its rows when it is uploaded, and shown: kinds, and how
cells are written, are what its user has agreed to. Which limits are said, and which are those of
cells, only the dataset knows: a model finds the latter again, and tells no row's. Where rows are
held back for a report its values (levels, limits, decimals, steps, rules) may be of these. Nothing
in training may know them, so values are inferred again from the rows that are left; what a user has
said stays as it is.
"""

from __future__ import annotations

from catalog import Dataset, Document
from gcvae.schema.kinds import ColumnKind, Outcomes

_AGREED = ("name", "kind", "drop", "datetime_format", "never", "number_format",
           "parquet_type", "dtype", "personal")  # fmt: skip


_LIMITS = ("minimum", "maximum")


def schema_as_said(dataset: Dataset) -> Document:
    """The document of a dataset's schema, without limits and names of levels that its user has not
    said: what training takes from cells of a few rows is rounded, or withheld."""
    given = {column["name"]: column for column in dataset.given_schema.get("columns") or ()}
    columns = [
        {
            member: value
            for member, value in column.items()
            if not _is_of_cells(member, column)
            or given.get(column["name"], {}).get(member) is not None
        }
        for column in dataset.schema["columns"]
    ]
    return dataset.schema | {"columns": columns}


def _is_of_cells(member: str, column: Document) -> bool:
    """Whether a member lists what cells are: a limit, or levels without an order."""
    return member in _LIMITS or (member == "levels" and column["kind"] == "categorical")


def schema_without_values(dataset: Dataset) -> Document:
    """The document of a dataset's schema that leaves open what its cells' values decided."""
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
    """What the column is, and how its cells are written."""
    left = {member: column[member] for member in _AGREED if member in column}
    missing = column.get("missing", {})
    open_missing = {name: missing[name] for name in ("markers", "is_value") if name in missing}
    if open_missing:
        left["missing"] = open_missing
    if _levels_are_agreed(column):
        left["levels"] = column["levels"]
    return left


def _levels_are_agreed(column: Document) -> bool:
    """Whether cells can not say what the levels are: two words for truth, or an order of texts."""
    if column.get("drop") or not column.get("levels"):
        return False
    outcomes = next(kind.outcomes for kind in ColumnKind if kind == column["kind"])
    if outcomes is Outcomes.ORDERED_LEVELS:
        return any(isinstance(level, str) for level in column["levels"])
    return outcomes is Outcomes.TRUTH_VALUES


def _said(column: Document) -> Document:
    """What the user has said of a column; null says nothing."""
    return {member: value for member, value in column.items() if value is not None}
