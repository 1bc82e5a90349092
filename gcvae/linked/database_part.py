"""One table of a fitted database, and what its fit and its draws have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.cells.values import parse_table
from gcvae.codec.context_codec import ContextCodec
from gcvae.errors import InputError, Problem, TableError, json_pointer
from gcvae.linked.database_schema import ForeignKey
from gcvae.linked.plan import TablePlan
from gcvae.linked.references import (
    NO_ROW,
)
from gcvae.linked.table_model import (
    TableModel,
)
from gcvae.linked.totals import Total
from gcvae.rules.reduction import Reduction
from gcvae.schema.columns import TableSchema


@dataclass(frozen=True)
class DatabasePart:
    """What is known of one table of a fitted database.

    Attributes:
        schema: Of its columns.
        plan: How it is modelled.
        n_rows: Of the real table.
        model: None of a catalogue.
        beside: For each table whose parent it is, the columns beside its own: the number of rows,
            the random effect, the time of the first.
        context: Names of the columns of its rows' context.
        borrowed: For each reference that is chosen, its columns and their codec.
        degrees: For each such reference to a catalogue how many rows refer to each of its rows, in
            shares of the rows; elsewhere the number is learned beside the other table's columns.
        kept: Rows of a catalogue, and those columns beside them.
        totals: Columns that add up columns of children.
        order: The table's column names.
        reduction: Of columns that rules give from the order or the parent's row.
        outside: Columns of the parent's row that rules may name, by their names in these.
        key_dtypes: Of the columns of keys.
        unlike: For a reference the others that never lead to the same row.
        grids: Start and step of keys that are dates or fractions: the next ones are counted.
        household_tails: How odd rows that training held out were with all rows below them, sorted
            (`households.Tails.statistic`); of tables without a modelled parent.
    """

    schema: TableSchema
    plan: TablePlan
    n_rows: int
    model: TableModel | None
    beside: Mapping[str, tuple[str, ...]]
    context: tuple[str, ...]
    borrowed: Mapping[int, tuple[tuple[str, ...], ContextCodec]]
    degrees: Mapping[int, Numbers]
    kept: pd.DataFrame | None
    totals: tuple[Total, ...]
    order: tuple[str, ...]
    reduction: Reduction
    outside: Mapping[str, str]
    key_dtypes: Mapping[str, str]
    unlike: Mapping[int, tuple[int, ...]]
    grids: Mapping[str, tuple[float, float]]
    household_tails: tuple[float, ...] = ()

    def typed(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """The values of rows of the table.

        Raises:
            TableError: A column is absent, or a cell can not be read.
        """
        with of_table(name):
            absent = [c for c in self.order if c not in frame]
            if absent:
                message, expected = f"column {absent[0]!r} is absent", ", ".join(self.order)
                raise TableError(Problem(message, column=absent[0], expected=expected))
            return parse_table(frame[list(self.order)], self.schema)

    def is_time(self, column: str) -> bool:
        """Whether a key that is counted on is one of dates."""
        return self.schema[column].has_times


@contextmanager
def of_table(name: str) -> Iterator[None]:
    """Errors of one table name it, and point into its part of the document."""
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
    """What the number of rows that refer to a row is called beside its columns."""
    return f"{name} {', '.join(key.columns)} count"


def taken_cells(cells: pd.Series[Any], rows: Codes) -> Any:
    """Cells of these rows, missing where there is no row."""
    if not len(cells):
        return pd.Series([None] * len(rows), dtype=cells.dtype if cells.dtype == object else None)
    found = cells.take(np.maximum(rows, 0)).reset_index(drop=True)
    return found.mask(rows == NO_ROW) if (rows == NO_ROW).any() else found
