"""A fitted table of a database: its schema, its model, and the columns added for related tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.cells.values import in_column_zones, parse_table
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.key_parts import KeyPart
from gcvae.errors import InputError, json_pointer
from gcvae.linked.database_schema import ForeignKey
from gcvae.linked.plan import TablePlan
from gcvae.linked.references import NO_ROW
from gcvae.linked.table_model import TableModel
from gcvae.linked.totals import Total
from gcvae.rules.reduction import Reduction
from gcvae.schema.columns import TableSchema


@dataclass(frozen=True)
class DatabasePart:
    """One fitted table of a database: its schema, its model, and how its references are generated.

    Foreign keys are identified by their index in `LinkedTable.foreign_keys`.

    Attributes:
        schema: Schema of the table's columns.
        plan: Parent, order and copied columns of the table.
        n_rows: Number of rows of the real table.
        model: Model of the rows; None for a catalogue, a table that is copied unchanged.
        child_columns: By name of a child table, the columns that summarise a row's children: their
            number, random effect (a vector that they share), and time of the first child.
        context: Names of the columns on which the model of the rows depends.
        borrowed: For each reference that is chosen after the rows are generated: (columns of the
            referenced row that the model learns together with the row, their codec).
        degrees: For each reference in `borrowed` that leads to a catalogue: by row of the
            catalogue, the share of the table's rows that refer to it.
        catalogue: Rows of a catalogue with their additional columns; None for other tables.
        totals: Columns that are sums over rows of child tables.
        column_names: Names of the table's columns, in order.
        reduction: Rules that determine columns from the parent row, the time column, copied columns
            or totals. Instead of such a column y, the model learns its residual y - f(x).
        parent_columns: Columns of the parent row that rules may use: {name in the rules: name in
            the parent table}.
        key_dtypes: Names of the dtypes of the key columns.
        disjoint: For each foreign key, the foreign keys that lead to the same table, but never to
            the same row, such as home team and away team of a match.
        grids: For each key column of dates or fractions, (start, step): the generated values are
            start, start + step, start + 2 step, ….
        key_parts: By key column, the parts of its keys that other columns of the row determine,
            such as the year of a date. The model learns the keys without these parts.
        household_tails: Sorted anomaly statistics of the held-out households, from which p-values
            are computed. A household is a row of a root table (a table without a parent) with all
            rows below it. Empty for other tables.
    """

    schema: TableSchema
    plan: TablePlan
    n_rows: int
    model: TableModel | None
    child_columns: Mapping[str, tuple[str, ...]]
    context: tuple[str, ...]
    borrowed: Mapping[int, tuple[tuple[str, ...], ContextCodec]]
    degrees: Mapping[int, Numbers]
    catalogue: pd.DataFrame | None
    totals: tuple[Total, ...]
    column_names: tuple[str, ...]
    reduction: Reduction
    parent_columns: Mapping[str, str]
    key_dtypes: Mapping[str, str]
    disjoint: Mapping[int, tuple[int, ...]]
    grids: Mapping[str, tuple[float, float]]
    key_parts: Mapping[str, tuple[KeyPart, ...]]
    household_tails: tuple[float, ...] = ()

    def typed(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Converts rows of the table, whose cells may be strings, to the dtypes of their columns.
        Errors contain the table's `name`.

        Raises:
            TableError: A cell cannot be parsed.
        """
        with of_table(name):
            rows = in_column_zones(frame[list(self.column_names)], self.schema)
            return parse_table(rows, self.schema)


@contextmanager
def of_table(name: str) -> Iterator[None]:
    """Context manager that adds a table's name and its JSON pointer to input errors that are raised
    in the block."""
    try:
        yield
    except InputError as error:
        found = [
            replace(
                problem,
                message=f"table {name!r}: {problem.message}",
                pointer=json_pointer("tables", name) + (problem.pointer or ""),
            )
            for problem in error.problems
        ]
        raise type(error)(*found) from error


def degree_name(name: str, key: ForeignKey) -> str:
    """Returns the name of the column that counts how many rows of table `name` refer to a row by
    `key`."""
    return f"{name} {', '.join(key.columns)} count"


def taken_cells(cells: pd.Series[Any], rows: Codes) -> Any:
    """Returns the cells at given row indices; a missing value for the index `NO_ROW` (-1)."""
    if not len(cells):
        return pd.Series([None] * len(rows), dtype=cells.dtype if cells.dtype == object else None)
    found = cells.take(np.maximum(rows, 0)).reset_index(drop=True)
    return found.mask(rows == NO_ROW) if (rows == NO_ROW).any() else found
