"""Reads and writes databases with SQLAlchemy: tables and keys by reflection, copies with the same
DDL."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from gcvae_cli.errors import OutputError, WrongUsageError

_BATCH_ROWS = 5_000


def read_database(url: str) -> tuple[dict[str, pd.DataFrame], dict[str, Any], sa.MetaData]:
    """Returns (rows of each table, document of keys, reflected tables).

    All tables are read in one transaction. Columns of bytes and other unsupported types are left
    out.

    Raises:
        WrongUsageError: The database does not exist or has no tables.
    """
    try:
        engine = _engine(url)
    except SQLAlchemyError as error:
        raise WrongUsageError(f"{_shown(url)}: {_reason(error)}") from error
    metadata = sa.MetaData()
    try:
        with engine.connect() as connection:
            if engine.dialect.name not in ("sqlite",):
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            metadata.reflect(connection)
            if not metadata.tables:
                raise WrongUsageError(f"{_shown(url)}: the database has no tables")
            frames = {name: _rows(connection, t) for name, t in metadata.tables.items()}
    except SQLAlchemyError as error:
        raise WrongUsageError(f"{_shown(url)}: {_reason(error)}") from error
    finally:
        engine.dispose()
    return frames, {"tables": {n: _keys(t) for n, t in metadata.tables.items()}}, metadata


def write_database(url: str, tables: Mapping[str, pd.DataFrame], metadata: sa.MetaData) -> None:
    """Creates the reflected tables in another database and fills them, all or nothing.

    Raises:
        OutputError: The database has one of the tables, or refuses them.
    """
    try:
        parsed = sa.make_url(url)
        path = Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None
        if path is None:
            _write(url, tables, metadata)
            return
        if path.exists():
            raise OutputError(f"{path}: there is such a file (expected: a new one)")
        partial = path.with_name(path.name + ".partial")
        partial.unlink(missing_ok=True)
        try:
            _write(parsed.set(database=str(partial)), tables, metadata)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
    except (SQLAlchemyError, OSError) as error:
        raise OutputError(f"{_shown(url)}: {_reason(error)}") from error


def _engine(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise WrongUsageError(f"{parsed.database}: there is no such file")
    return sa.create_engine(parsed)


def _shown(url: str) -> str:
    """Returns the URL without its password."""
    with suppress(SQLAlchemyError):
        return sa.make_url(url).render_as_string(hide_password=True)
    return "the URL"


def _reason(error: Exception) -> str:
    """Returns the first line of an error, of the driver's error if there is one."""
    return str(getattr(error, "orig", None) or error).strip().split("\n")[0]


def _is_plain(column: sa.Column[Any]) -> bool:
    """Returns whether a column has numbers, texts, booleans or times."""
    kinds = (
        sa.Numeric,
        sa.Float,
        sa.Integer,
        sa.String,
        sa.Boolean,
        sa.DateTime,
        sa.Date,
        sa.Uuid,
        sa.Enum,
    )
    return isinstance(column.type, kinds)


def _rows(connection: sa.Connection, table: sa.Table) -> pd.DataFrame:
    columns = [column for column in table.columns if _is_plain(column)]
    rows = connection.execute(sa.select(*columns)).all()
    frame = pd.DataFrame(rows, columns=[column.name for column in columns])
    for column in columns:
        cells = frame[column.name]
        if isinstance(column.type, sa.Numeric | sa.Float):
            frame[column.name] = cells.astype("float64")
        elif isinstance(column.type, sa.DateTime | sa.Date):
            frame[column.name] = pd.to_datetime(cells, errors="coerce")
        elif isinstance(column.type, sa.Uuid):
            frame[column.name] = cells.astype("string").astype(object)
    return frame


def _keys(table: sa.Table) -> dict[str, Any]:
    """Returns the keys of a reflected table."""
    return {
        "primary_key": [column.name for column in table.primary_key.columns],
        "foreign_keys": [
            {
                "columns": [element.parent.name for element in key.elements],
                "table": key.referred_table.name,
                "references": [element.column.name for element in key.elements],
            }
            for key in sorted(table.foreign_key_constraints, key=lambda key: list(key.column_keys))
        ],
    }


def _write(url: str | sa.URL, tables: Mapping[str, pd.DataFrame], metadata: sa.MetaData) -> None:
    engine = sa.create_engine(url)
    try:
        target = _generic(metadata)
        with engine.begin() as connection:
            there = set(sa.inspect(connection).get_table_names()) & set(target.tables)
            if there:
                message = f"the database has a table {sorted(there)[0]!r}"
                raise OutputError(
                    f"{engine.url.render_as_string()}: {message} (expected: none of them)"
                )
            target.create_all(connection)
            later = []
            for table in target.sorted_tables:
                deferred = _deferred(table, target)
                rows = _values(table, tables[table.name])
                first = [{k: None if k in deferred else v for k, v in row.items()} for row in rows]
                for start in range(0, len(rows), _BATCH_ROWS):
                    connection.execute(table.insert(), first[start : start + _BATCH_ROWS])
                later += [(table, deferred, rows)] if deferred else []
            for table, deferred, rows in later:
                _refer(connection, table, deferred, rows)
            _count_on(connection, target)
    finally:
        engine.dispose()


def _generic(metadata: sa.MetaData) -> sa.MetaData:
    """Returns the tables without features of their own database, such as sequences and types."""
    found = sa.MetaData()
    for table in metadata.sorted_tables:
        copy = table.to_metadata(found)
        for column in copy.columns:
            default = str(getattr(column.server_default, "arg", ""))
            if "nextval" in default:
                column.server_default = None
            with suppress(NotImplementedError):  # a type without a generic form stays as it is
                column.type = column.type.as_generic(allow_nulltype=True)
    return found


def _deferred(table: sa.Table, target: sa.MetaData) -> set[str]:
    """Returns foreign key columns whose rows may come later: self references, or cycles of
    tables."""
    order = {t.name: i for i, t in enumerate(target.sorted_tables)}
    return {
        element.parent.name
        for key in table.foreign_key_constraints
        if order[key.referred_table.name] >= order[table.name]
        for element in key.elements
        if element.parent.nullable
    }


def _refer(
    connection: sa.Connection, table: sa.Table, deferred: set[str], rows: list[dict[str, Any]]
) -> None:
    """Sets the foreign keys that were left out when the rows were inserted."""
    key = [column.name for column in table.primary_key.columns]
    parts = [table.c[name] == sa.bindparam(f"key_{name}") for name in key]
    statement = table.update().where(*parts).values({c: sa.bindparam(f"to_{c}") for c in deferred})
    changes = [
        {f"key_{n}": row[n] for n in key} | {f"to_{c}": row[c] for c in deferred}
        for row in rows
        if any(row[c] is not None for c in deferred)
    ]
    if changes:
        connection.execute(statement, changes)


def _values(table: sa.Table, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns the rows in the driver's types; columns that were not read are NULL, or empty
    bytes."""
    columns = {}
    for column in table.columns:
        if column.computed is not None:  # the database writes it
            continue
        if column.name not in frame:
            columns[column.name] = [None if column.nullable else b""] * len(frame)
            continue
        cells = frame[column.name]
        are_there = cells.notna().tolist()
        columns[column.name] = [
            _value(value, column) if is_there else None
            for value, is_there in zip(cells.tolist(), are_there, strict=True)
        ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _value(value: Any, column: sa.Column[Any]) -> Any:
    """Returns a present cell in the driver's type."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(column.type, sa.DateTime | sa.Date):
        time = pd.Timestamp(value).to_pydatetime()
        return time.date() if isinstance(column.type, sa.Date) else time
    if isinstance(column.type, sa.Integer):
        return int(value)
    if isinstance(column.type, sa.Boolean):
        return bool(value)
    if isinstance(column.type, sa.Uuid):
        return column.type.python_type(str(value))
    if isinstance(column.type, sa.String):
        return str(value)[: column.type.length]
    return value


def _count_on(connection: sa.Connection, target: sa.MetaData) -> None:
    """Advances PostgreSQL's sequences beyond the inserted rows."""
    if connection.dialect.name != "postgresql":
        return
    for table in target.sorted_tables:
        for column in table.primary_key.columns:
            if not isinstance(column.type, sa.Integer):
                continue
            quoted = connection.dialect.identifier_preparer.format_table(table)
            sequence = connection.scalar(
                sa.select(sa.func.pg_get_serial_sequence(quoted, column.name))
            )
            if sequence is not None:
                highest = sa.select(sa.func.max(column)).scalar_subquery()
                connection.execute(sa.select(sa.func.setval(sequence, highest)))
