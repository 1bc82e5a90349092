"""Reads databases from ZIP files of tables, within the limits of the settings; checks their keys.

The functions are called in a separate process (`service/table_process.py`). Each table is checked
against the limits before it is loaded. All tables are in memory together, because foreign keys
refer to other tables.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from os import SEEK_END
from typing import TYPE_CHECKING, Any, BinaryIO

from catalog.records import Document
from gcvae.errors import EmptyTableError, Problem, SchemaError, TableError, json_pointer
from gcvae.schema.columns import TableSchema
from gcvae.schema.suggestions import unknown_name
from service.errors import LimitError, TableLimitError, TooLargeError
from service.ingestion import (
    check_levels,
    checked_columns,
    first_rows_of,
    profile_of,
    table_format,
)
from service.settings import ServiceSettings

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.linked.database_schema import DatabaseSchema

INVALID_REFERENCES = ("refuse", "drop", "null")
"""Treatments of foreign keys that refer to no row: raise an error, drop the rows that contain them,
or set the keys to null."""
_MEMBERS = ("tables", "invalid_references")


def check_database(
    file: BinaryIO, schema: Document | None, encoding: str | None, settings: ServiceSettings
) -> Document:
    """Reads and checks the tables of a ZIP file, and infers what the schema does not specify.

    Args:
        schema: Tables, keys and `invalid_references` that the user specified; None for none.
        encoding: Encoding of text files; None for UTF-8.

    Returns:
        `format`, `rows`, `columns`, `tables`, `schema` and `warnings` of the dataset's record. The
        warnings describe the rows or keys that were removed because of `invalid_references`.

    Raises:
        TableError: The file is not a ZIP file of tables, a table cannot be modelled, keys are not
            unique, or foreign keys refer to no row.
        SchemaError: The schema is malformed, or names an unknown table or column.
        TableLimitError, TooLargeError: The tables together have too many rows, columns, cells or
            bytes, a column has too many levels, or a cell is too long.
    """
    from gcvae.linked.database_fit import typed_table, with_found_plans
    from gcvae.linked.infer_links import infer_database

    stated, treatment = read_schema(schema or {})
    frames, formats = _frames(file, encoding, settings)
    links = infer_database(frames, stated)
    kept, warnings = _with_valid_references(frames, links, treatment)
    tables: list[Document] = []
    schemas, typed = {}, {}
    for name, frame in frames.items():
        schemas[name], typed[name] = typed_table(name, kept[name], links[name])
        found = schemas[name]
        with of_table(name):
            check_levels(found, settings)
        size = {"rows": len(frame), "columns": len(frame.columns)}
        described = {"name": name, "format": formats[name], **size, "schema": found.to_json()}
        tables.append(described)
    links = with_found_plans(typed, schemas, links)
    complete = links.to_json() | (
        {} if treatment == INVALID_REFERENCES[0] else {"invalid_references": treatment}
    )
    return {
        "format": "zip",
        "rows": sum(table["rows"] for table in tables),
        "columns": sum(table["columns"] for table in tables),
        "tables": tables,
        "schema": complete,
        "warnings": warnings,
    }


def read_schema(document: Mapping[str, Any]) -> tuple[Document, str]:
    """Checks the members of a database's JSON schema, as a user has specified it.

    Returns:
        (schema, treatment). The schema has only the member `tables`. The treatment is the value of
        `invalid_references`: refuse, drop or null. It says what happens to rows whose foreign key
        refers to no row.

    Raises:
        SchemaError: A member or the value of `invalid_references` is unknown.
    """
    problems = [
        unknown_name(f"unknown member {name!r}", name, _MEMBERS, pointer=json_pointer(name))
        for name in document
        if name not in _MEMBERS
    ]
    treatment = document.get("invalid_references", INVALID_REFERENCES[0])
    if treatment not in INVALID_REFERENCES:
        expected = (
            "one of the texts refuse, drop (removes these rows) or null (sets their keys to "
            "missing)"
        )
        problems.append(
            Problem(
                f"invalid_references is {treatment!r}",
                "/invalid_references",
                expected=expected,
            )
        )
    if problems:
        raise SchemaError(*problems)
    return {"tables": document.get("tables", {})}, str(treatment)


def profile_of_table(
    file: BinaryIO,
    name: str,
    schema: TableSchema,
    encoding: str | None,
    settings: ServiceSettings,
) -> dict[str, Any]:
    """Returns the JSON profile of table `name` in a ZIP file that `check_database` accepted."""
    from gcvae.cells.values import parse_table
    from gcvae.files.tables import read_table
    from gcvae.rules.search import find_rules

    with _unpacked(file, name, settings) as table:
        text = None if table_format(table) == "parquet" else encoding
        frame = read_table(table, encoding=text, may_be_empty=True)
        if schema.rules is None and len(frame):
            findings = find_rules(parse_table(frame.replace({"": None}), schema), schema)
            schema = replace(schema, rules=tuple(finding.rule for finding in findings))
        table.seek(0)
        return profile_of(table, schema, text, settings)


def first_rows_of_table(
    file: BinaryIO, name: str, n_rows: int, encoding: str | None, settings: ServiceSettings
) -> tuple[list[str], list[list[str | None]]]:
    """Returns (column names, first `n_rows` rows as text) of table `name` of a ZIP file."""
    with _unpacked(file, name, settings) as table:
        text = None if table_format(table) == "parquet" else encoding
        return first_rows_of(table, n_rows, text)


def check_tables_of_model(
    file: BinaryIO,
    tables: Mapping[str, Document],
    schema: Document,
    encoding: str | None,
    settings: ServiceSettings,
) -> int:
    """Checks that tables in a ZIP file fit a model of a database. Returns their number of rows.

    Args:
        tables: Training records of the model's tables by name. Only tables that the model copies
            unchanged may be missing from the file. If a record was made by an earlier version of
            the library, it lacks the `names` of the columns. They are then checked by the job that
            scores or imputes the rows, and not here.
        schema: JSON schema of the model's database.

    Raises:
        TableError: The file is not a ZIP file of the model's tables, or a column is missing.
        UnknownColumnError: A table has a column that the model does not know.
        TableLimitError, TooLargeError: The tables together exceed a limit on their size.
    """
    from gcvae.linked.database_archive import refuse_other_tables
    from gcvae.linked.database_schema import DatabaseSchema

    if table_format(file) != "zip":
        message = f"the body is one table; the model's database has {', '.join(tables)}"
        expected = (
            "all of them: a ZIP file, or several files in a form; for the Python client a "
            'dictionary of tables by name, such as {"users": frame}'
        )
        raise TableError(Problem(message, expected=expected))
    frames, _ = _frames(file, encoding, settings)
    passed = {name: [*map(str, frame.columns)] for name, frame in frames.items()}
    columns = {name: table.get("names", passed.get(name, ())) for name, table in tables.items()}
    copied = [name for name, table in tables.items() if table["is_copied"]]
    refuse_other_tables(passed, columns, DatabaseSchema.from_json(schema), copied)
    return sum(map(len, frames.values()))


@contextmanager
def of_table(name: str) -> Iterator[None]:
    """Context manager that adds the table's name and JSON pointer to errors raised in its block."""
    from gcvae.linked.database_part import of_table as input_errors_of

    try:
        with input_errors_of(name):
            yield
    except LimitError as error:
        error.args = (f"table {name!r}: {error}",)
        raise


def _frames(
    file: BinaryIO, encoding: str | None, settings: ServiceSettings
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Reads all tables of a ZIP file. Returns (data frames, file formats), each by table name."""
    from gcvae.files.table_archives import opened_archive
    from gcvae.files.tables import read_table

    frames: dict[str, pd.DataFrame] = {}
    formats: dict[str, str] = {}
    n_bytes = n_rows = n_cells = 0
    with opened_archive(file) as (archive, members):
        _check_total("tables", len(members), "max_tables", settings)
        for name, member in members.items():
            with of_table(name), _unpacked_member(archive, member, n_bytes, settings) as table:
                n_bytes += table.seek(0, SEEK_END)
                formats[name] = table_format(table)
                text = None if formats[name] == "parquet" else encoding
                with (
                    suppress(EmptyTableError),
                    checked_columns(table, settings, text) as source,
                ):
                    n_rows += len(source)
                    n_cells += len(source) * len(source.names)
                _check_total("rows", n_rows, "max_rows", settings)
                _check_total("cells", n_cells, "max_cells", settings)
                table.seek(0)
                frames[name] = read_table(table, encoding=text, may_be_empty=True)
    return frames, formats


@contextmanager
def _unpacked(file: BinaryIO, name: str, settings: ServiceSettings) -> Iterator[BinaryIO]:
    from gcvae.files.table_archives import opened_archive

    with (
        opened_archive(file) as (archive, members),
        _unpacked_member(archive, members[name], 0, settings) as table,
    ):
        yield table


@contextmanager
def _unpacked_member(
    archive: Any, member: Any, n_before: int, settings: ServiceSettings
) -> Iterator[BinaryIO]:
    """Extracts one file of an archive to a temporary file. Raises TooLargeError if its bytes and
    the `n_before` bytes of files extracted before exceed the setting `max_table_bytes`."""
    from gcvae.files.table_archives import unpack

    limit = settings.max_table_bytes

    def check(n_bytes: int) -> None:
        if n_before + n_bytes > limit:
            what = f"the database has more than {limit} bytes after decompression"
            raise TooLargeError(what, limit, "max_table_bytes")

    with tempfile.TemporaryFile(prefix="gcvae-table-") as file:
        unpack(archive, member, file, check)
        yield file


def _check_total(what: str, count: int, field: str, settings: ServiceSettings) -> None:
    """Raises TableLimitError if `count` ("tables", "rows" or "cells" of all tables read so far)
    exceeds the setting `field`."""
    limit = getattr(settings, field)
    if count > limit:
        problem = Problem(f"at least {count} {what} in all", expected=f"at most {limit}")
        raise TableLimitError(f"the database has at least {count} {what}", limit, field, problem)


def _with_valid_references(
    frames: Mapping[str, pd.DataFrame], links: DatabaseSchema, treatment: str
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Treats foreign keys that refer to no row: `treatment` "refuse" raises TableError, "drop"
    removes the rows with these keys, "null" sets the keys to missing.

    Returns (tables by name, warnings about removed rows or keys).
    """
    from gcvae.linked.references import checked_references

    try:
        return checked_references(frames, links), []
    except TableError as error:
        if treatment == INVALID_REFERENCES[0]:
            raise
        found = checked_references(frames, links, treatment)  # raises if keys are not unique
        done = {"drop": "they are removed", "null": "their keys are set to missing"}[treatment]
        return found, [f"{problem.message}; {done}" for problem in error.problems]
