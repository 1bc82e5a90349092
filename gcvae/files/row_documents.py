"""Converts rows in JSON to CSV, so that rows from JSON and from files are read by the same code.

with pointing("/rows"):
    parse_table(numbered(frame), schema)  # errors name /rows/1/age instead of line 3, column 'age'
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
    """Converts rows from JSON to a CSV table with the schema's columns; null and absent cells are
    missing.

    Args:
        rows: Cells of each row, by column name.
        place: JSON pointer to the list of rows, for errors.

    Raises:
        UnknownColumnError: A row contains a column that is not in the schema.
    """
    _refuse_unknown({f"{place}/{i}": row for i, row in enumerate(rows)}, schema)
    return _csv(rows, schema)


def row_to_frame(row: Mapping[str, Cell], schema: TableSchema) -> pd.DataFrame:
    """Converts one row from JSON to a data frame of strings; null and absent cells are missing.

    Raises:
        UnknownColumnError: The row contains a column that is not in the schema.
    """
    from gcvae.files.tables import read_table  # imports pandas

    _refuse_unknown({"/row": row}, schema)
    return read_table(_csv([row], schema))


def numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a shallow copy of a frame for which errors give the index of a row, from 0, instead
    of a line; `pointing` replaces the index by a JSON pointer."""
    rows = frame.copy(deep=False)
    rows.attrs = {"lines": range(len(rows))}
    return rows


@contextmanager
def pointing(place: str, *, is_list: bool = True) -> Iterator[None]:
    """Context manager that replaces line and row numbers in errors about rows by JSON pointers such
    as /rows/1.

    Args:
        place: JSON pointer to a list of rows that `numbered` returned or, unless `is_list`, to the
            row that `row_to_frame` returned.
    """
    try:
        yield
    except InputError as error:
        if all(problem.line is None for problem in error.problems):
            raise
        rows = (f"{place}/{problem.line}" if is_list else place for problem in error.problems)
        problems = map(_with_pointer, error.problems, rows)
        raise type(error)(*problems) from None


def _with_pointer(problem: Problem, place: str) -> Problem:
    """Replaces the line number of a problem, if it has one, by a JSON pointer: to the cell if the
    problem names a column, else to the row (`place`, such as /rows/1)."""
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
    columns = [cell_texts([row.get(column.name) for row in rows], column) for column in schema]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def _refuse_unknown(rows: Mapping[str, Mapping[str, Cell]], schema: TableSchema) -> None:
    """Raises an UnknownColumnError if a row, given by its JSON pointer such as /rows/1, has a
    column that is not in the schema."""
    known = set(schema.names)
    places = [
        (name, {"pointer": pointer + json_pointer(name), "column": name})
        for pointer, row in rows.items()
        for name in row
        if name not in known
    ]
    if places:
        raise UnknownColumnError(*unknown_names(NO_SUCH_COLUMN, places[:20], schema.names))


def cell_texts(cells: Sequence[Cell], column: Column) -> list[str]:
    """Returns JSON values as texts in the column's format; null becomes the column's marker of
    missing cells."""
    texts = [_text(cell, column) for cell in cells]
    if column.number_format is None:
        return texts
    from gcvae.spelling.number_formats import number_texts  # imports Arrow

    numbers = {i: x for i, x in enumerate(cells) if type(x) in (int, float)}
    written = number_texts(numbers.values(), column.number_format)
    for i, text in zip(numbers, written, strict=True):
        texts[i] = text
    return texts


def _text(cell: Cell, column: Column) -> str:
    if cell is None:
        return column.missing.markers[0] if column.missing.markers else ""
    if isinstance(cell, bool):
        return column.word(cell)
    return cell if isinstance(cell, str) else repr(cell)
