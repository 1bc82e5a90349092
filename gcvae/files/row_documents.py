"""Rows given in JSON as a CSV table, so that every row goes the same way into the library.

with pointing("/rows"):
    parse_table(numbered(frame), schema)  # says /rows/1/age, and not line 3, column 'age'
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from gcvae.errors import InputError, Problem, UnknownColumnError, json_pointer
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.suggestions import NO_SUCH_COLUMN, unknown_names

if TYPE_CHECKING:
    import pandas as pd

Cell = str | int | float | bool | None


def rows_to_csv(
    rows: Sequence[Mapping[str, Cell]], schema: TableSchema, place: str = "/rows"
) -> bytes:
    """A CSV table with the schema's columns; a cell that is null or not given is blank.

    Raises:
        UnknownColumnError: a row names a column that the schema does not have.
    """
    _refuse_unknown({f"{place}/{i}": row for i, row in enumerate(rows)}, schema)
    return _csv(rows, schema)


def row_to_frame(row: Mapping[str, Cell], schema: TableSchema) -> pd.DataFrame:
    """A table of one line, its cells as text; a cell that is null or not given is blank.

    Raises:
        UnknownColumnError: the row names a column that the schema does not have.
    """
    from gcvae.files.tables import read_table  # costs pandas

    _refuse_unknown({"/row": row}, schema)
    return read_table(_csv([row], schema), format="csv")


def numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows, which problems name by their number among the documents, from 0."""
    rows = frame.copy(deep=False)
    rows.attrs = {"lines": range(len(rows))}
    return rows


@contextmanager
def pointing(place: str) -> Iterator[None]:
    """Problems of `numbered` rows by their pointers, below that of the list of documents."""
    try:
        yield
    except InputError as error:
        if all(problem.line is None for problem in error.problems):
            raise
        problems = (_pointed(problem, f"{place}/{problem.line}") for problem in error.problems)
        raise type(error)(*problems) from None


@contextmanager
def pointing_at_row() -> Iterator[None]:
    """Problems of the one row of `row_to_frame` by their pointers."""
    try:
        yield
    except InputError as error:
        raise type(error)(*(_pointed(problem, "/row") for problem in error.problems)) from None


def _pointed(problem: Problem, place: str) -> Problem:
    """The problem with a pointer instead of its line, where it has one."""
    if problem.line is None:
        return problem
    name = problem.column
    pointer = place if name is None else place + json_pointer(name)
    return replace(problem, pointer=pointer, line=None)


def _csv(rows: Sequence[Mapping[str, Cell]], schema: TableSchema) -> bytes:
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=schema.separator, lineterminator="\n", quoting=csv.QUOTE_ALL
    )
    writer.writerow(schema.names)
    columns = [_texts([row.get(column.name) for row in rows], column) for column in schema]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def _refuse_unknown(rows: Mapping[str, Mapping[str, Cell]], schema: TableSchema) -> None:
    """Takes the rows by their pointers."""
    known = set(schema.names)
    places = [
        (name, {"pointer": pointer + json_pointer(name), "column": name})
        for pointer, row in rows.items()
        for name in row
        if name not in known
    ]
    if places:
        raise UnknownColumnError(*unknown_names(NO_SUCH_COLUMN, places[:20], schema.names))


def _texts(cells: Sequence[Cell], column: Column) -> list[str]:
    """The cells as the table writes them."""
    texts = [_text(cell, column) for cell in cells]
    if column.number_format is None:
        return texts
    from gcvae.spelling.number_formats import number_texts  # costs Arrow

    numbers = {i: x for i, x in enumerate(cells) if type(x) in (int, float)}
    for i, written in zip(
        numbers, number_texts(numbers.values(), column.number_format), strict=True
    ):
        texts[i] = written
    return texts


def _text(cell: Cell, column: Column) -> str:
    if cell is None:
        return column.missing.markers[0] if column.missing.markers else ""
    if isinstance(cell, bool):
        return column.word(cell)
    return cell if isinstance(cell, str) else repr(cell)
