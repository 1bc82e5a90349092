"""Reads databases with SQLAlchemy, and creates copies with the same tables, keys and indexes."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from gcvae.arrays import TIMES
from gcvae.errors import Problem
from gcvae_sources.errors import SourceError, TargetError
from gcvae_sources.urls import hidden_password

_BATCH_ROWS = 5_000
_MOST_LISTED = 20


def read_database(url: str) -> tuple[dict[str, pd.DataFrame], dict[str, Any], sa.MetaData]:
    """Returns (rows by table, schema as JSON with the keys, reflected tables) of a database.

    All tables are read in one transaction. Columns of unsupported types, such as bytes, are left
    out of the rows.

    Args:
        url: SQLAlchemy URL of the database.

    Raises:
        SourceError: The database cannot be opened or read, or has no tables.
    """
    try:
        engine = _engine(url)
    except SQLAlchemyError as error:
        raise SourceError(f"{_shown(url)}: {_reason(error)}") from error
    metadata = sa.MetaData()
    try:
        with engine.connect() as connection:
            if engine.dialect.name not in ("sqlite",):
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with catch_warnings():
                simplefilter("ignore", SAWarning)  # indexes that reflection skips are in the DDL
                metadata.reflect(connection)
            metadata.info["dialect"] = engine.dialect.name
            if not metadata.tables:
                raise SourceError(f"{_shown(url)}: the database has no tables")
            if engine.dialect.name == "sqlite":
                _complete_sqlite(connection, metadata)
            frames = {name: _rows(connection, t) for name, t in metadata.tables.items()}
            for table in metadata.tables.values():
                _set_time_types(connection, table)
    except (SQLAlchemyError, ValueError, TypeError) as error:
        raise SourceError(f"{_shown(url)}: {_reason(error)}") from error
    finally:
        engine.dispose()
    return frames, {"tables": {n: _keys(t) for n, t in metadata.tables.items()}}, metadata


def write_database(url: str, tables: Mapping[str, pd.DataFrame], metadata: sa.MetaData) -> None:
    """Creates the reflected tables in another database and inserts rows, all or nothing.

    Args:
        url: SQLAlchemy URL of the database; an SQLite file must not exist yet.
        tables: Rows to insert, by table.
        metadata: Reflected tables, from `read_database`.

    Raises:
        TargetError: A table or the SQLite file exists already, or the database reports an error.
    """
    try:
        parsed = sa.make_url(url)
        path = Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None
        if path is None:
            _write(url, tables, metadata)
            return
        if path.exists():
            raise TargetError(f"{path}: there is such a file (expected: a new one)")
        partial = path.with_name(path.name + ".partial")
        partial.unlink(missing_ok=True)
        try:
            _write(parsed.set(database=str(partial)), tables, metadata)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
    except (SQLAlchemyError, OSError) as error:
        raise TargetError(f"{_shown(url)}: {_reason(error)}") from error


def selected_rows(
    url: str | sa.URL,
    name: str | None,
    query: str | None,
    batch_rows: int,
    note: Callable[[str], None],
    connect_args: Mapping[str, Any] = MappingProxyType({}),
    title: str | None = None,
) -> Iterator[pa.Table]:
    """Yields the rows of a table or a SELECT statement in batches, within one transaction. The
    first batch has only the column names.

    Args:
        url: SQLAlchemy URL of the database.
        name: Name of the table, optionally after its schema and a point; None for a query.
        query: SELECT statement; None for a table.
        batch_rows: Maximum number of rows of a batch.
        note: Function that is called with a message about columns that are left out.
        connect_args: Arguments that SQLAlchemy passes to the database driver.
        title: Name of the database in errors; None for its URL without the password.

    Raises:
        SourceError: The database cannot be opened, or it refuses the query.
    """
    if query is not None and not _SELECT.match(query):
        raise SourceError(
            Problem("the query is not a SELECT statement", "/query", expected="SELECT …")
        )
    with (
        _read_errors(url, title),
        closing_engine(_engine(url, connect_args, title)) as engine,
        engine.connect().execution_options(stream_results=True) as opened,
    ):
        connection = _reading_only(opened)
        statement: sa.Select[Any] | sa.TextClause
        if query is None:
            statement = _whole(connection, str(name), note)
        else:
            statement = sa.text(query.replace(":", r"\:"))  # a bare colon begins a parameter
        result = connection.execute(statement)
        names = list(result.keys())
        if len({*names}) < len(names):
            expected = "a name of its own for each column (AS)"
            problem = Problem("two columns have the same name", "/query", expected=expected)
            raise SourceError(problem)
        yield pa.table({name: pa.nulls(0) for name in names})
        for rows in result.partitions(batch_rows):
            columns = map(_arrow, zip(*rows, strict=True))
            yield pa.table(dict(zip(names, columns, strict=True)))


def table_names(
    url: str | sa.URL,
    connect_args: Mapping[str, Any] = MappingProxyType({}),
    title: str | None = None,
) -> list[str]:
    """Returns the names of the tables and views in the default schema of a database.

    Args:
        title: Name of the database in errors; None for its URL without the password.

    Raises:
        SourceError: The database cannot be opened.
    """
    with (
        _read_errors(url, title),
        closing_engine(_engine(url, connect_args, title)) as engine,
    ):
        return _names(sa.inspect(engine), None)


_SELECT = re.compile(r"(?is)(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:select|with|values|table)\b")


@contextmanager
def closing_engine(engine: sa.Engine) -> Iterator[sa.Engine]:
    """Context manager that closes all connections of an engine."""
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _read_errors(url: str | sa.URL, title: str | None) -> Iterator[None]:
    """Context manager that converts errors of a database to SourceError, with its title or URL."""
    try:
        yield
    except (
        SQLAlchemyError, pa.ArrowException, ModuleNotFoundError, ValueError, TypeError,
        ArithmeticError, sqlite3.Error,
    ) as error:  # fmt: skip
        raise SourceError(f"{title or _shown(url)}: {_reason(error)}") from error


def _reading_only(connection: sa.Connection) -> sa.Connection:
    """Makes the connection refuse changes of the database, if it supports this, and returns it."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
    if connection.dialect.name in _MYSQL:
        connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
    if connection.dialect.name == "postgresql":
        return connection.execution_options(postgresql_readonly=True)
    return connection


def _arrow(cells: Sequence[Any]) -> pa.Array:
    """Converts the cells of one column, as the database driver returns them, to an Arrow array.

    Numbers, booleans, strings, dates, timestamps and durations keep their type, but decimal numbers
    become doubles, and timestamps with a zone are converted to UTC. All cells become strings if the
    column mixes types or has another type, or if its whole numbers exceed 64 bits. If all cells are
    missing, the type of the array is null.
    """
    kinds = {type(cell) for cell in cells} - {type(None)}
    if Decimal in kinds:
        kinds = (kinds - {Decimal}) | {float}
        cells = [float(cell) if isinstance(cell, Decimal) else cell for cell in cells]
    if kinds <= {int, float} or (len(kinds) == 1 and kinds <= _KINDS):
        with suppress(pa.ArrowInvalid, OverflowError):  # whole numbers that are too large
            found = pa.array(cells, from_pandas=True)  # NaN is null
            has_zone = getattr(found.type, "tz", None) is not None
            return found.cast(pa.timestamp("us", "UTC")) if has_zone else found
    texts = [cell if isinstance(cell, bytes | None) else str(cell) for cell in cells]
    return pa.array(texts, pa.string())


_KINDS = {bool, str, date, datetime, timedelta}


def _whole(connection: sa.Connection, name: str, note: Callable[[str], None]) -> sa.Select[Any]:
    """Returns the query for all rows of a table or view.

    Raises:
        SourceError: The database has no such table; the message lists those that it has.
    """
    inspector = sa.inspect(connection)
    bare, schema = _split_name(inspector, name)
    if not inspector.has_table(bare, schema=schema):
        listed = ", ".join(_names(inspector, None)[:_MOST_LISTED]) or "none"
        message, expected = f"the database has no table {name!r}", f"one of: {listed}"
        raise SourceError(Problem(message, "/table", expected=expected))
    table = sa.Table(bare, sa.MetaData(), schema=schema, autoload_with=connection)
    left_out = [column.name for column in table.columns if not _is_plain(column)]
    if left_out:
        note(f"{name}: {', '.join(left_out)} is not modelled")
    return sa.select(*(column for column in table.columns if column.name not in left_out))


def _names(inspector: sa.Inspector, schema: str | None) -> list[str]:
    return sorted([*inspector.get_table_names(schema), *inspector.get_view_names(schema)])


def _split_name(inspector: sa.Inspector, name: str) -> tuple[str, str | None]:
    """Returns (table, schema) for the name `table` or `schema.table`; None is the default
    schema."""
    schema, _, bare = name.rpartition(".")
    if schema and not inspector.has_table(name) and schema in inspector.get_schema_names():
        return bare, schema
    return name, None


def require_table(
    url: str | sa.URL,
    name: str,
    if_exists: str,
    connect_args: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Checks that a table can be written: the database responds, and either the table does not
    exist or `if_exists` allows changing it.

    Args:
        if_exists: `fail`, `append` or `replace`.

    Raises:
        TargetError: The table exists and `if_exists` is `fail`, or the database does not respond.
    """
    with _written_database(url, connect_args) as engine:
        path = Path(engine.url.database or "")
        if engine.dialect.name == "sqlite" and not path.exists():
            if not path.parent.is_dir():
                raise TargetError(f"{path}: there is no folder {path.parent}; create it first")
            return  # a connection would create the file
        _refuse_existing(sa.inspect(engine), name, if_exists)


def _refuse_existing(inspector: sa.Inspector, name: str, if_exists: str) -> None:
    bare, schema = _split_name(inspector, name)
    if if_exists == "fail" and bare in _names(inspector, schema):
        expected = "a new one, or to append to it or replace it"
        message = f"the database has the table {name!r}"
        raise TargetError(Problem(message, "/table", expected=expected))


def insert_rows(
    url: str | sa.URL,
    tables: Mapping[str, Path],
    if_exists: str,
    connect_args: Mapping[str, Any] = MappingProxyType({}),
    title: str | None = None,
) -> None:
    """Writes the rows of Parquet files into tables, all or none.

    Args:
        tables: Parquet files by the name of their table, `table` or `schema.table`.
        if_exists: `fail`, `append` or `replace`, for tables that exist.
        title: Name of the database in errors; None for its URL without the password.

    Raises:
        TargetError: The database refuses a table or a row.
    """
    with _written_database(url, connect_args, title) as engine:
        file = Path(engine.url.database or "") if engine.dialect.name == "sqlite" else None
        is_new = file is not None and not file.exists()
        try:
            with engine.begin() as connection:
                for name, path in tables.items():
                    _insert(connection, name, path, if_exists)
        except BaseException:
            if is_new and file is not None:
                file.unlink(missing_ok=True)
            raise


def _insert(connection: sa.Connection, name: str, path: Path, if_exists: str) -> None:
    inspector = sa.inspect(connection)
    _refuse_existing(inspector, name, if_exists)
    bare, schema = _split_name(inspector, name)
    kinds, mode = _sql_types(path, connection.dialect.name), if_exists
    columns = {}
    if if_exists == "append" and inspector.has_table(bare, schema):
        columns = _reflected(connection, bare, schema)
        times = {n: k for n, k in kinds.items() if isinstance(k, sa.DateTime)}
        kinds = {
            n: times.get(n, column.type) if isinstance(column.type, sa.DateTime) else column.type
            for n, column in columns.items()
        }
    n_rows = 0
    for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS):
        frame = batch.to_pandas(types_mapper=_WHOLE_NUMBERS.get)
        for n in columns.keys() & {*frame}:
            frame[n] = _converted(frame[n], columns[n], n_rows)
        frame.to_sql(bare, connection, schema=schema, if_exists=mode, index=False, dtype=kinds)
        mode = "append"
        n_rows += len(frame)


def _reflected(
    connection: sa.Connection, name: str, schema: str | None
) -> dict[str, sa.Column[Any]]:
    """Returns the columns of a table by name, except those of types unknown to SQLAlchemy."""
    with catch_warnings():
        simplefilter("ignore", SAWarning)
        table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection)
    return {c.name: c for c in table.columns if not isinstance(c.type, sa.types.NullType)}


def _converted(cells: pd.Series[Any], column: sa.Column[Any], n_before: int) -> pd.Series[Any]:
    """Converts cells to values for a column of an existing table. `n_before` is the number of
    earlier rows, so that the TargetError about an invalid cell gives its row in the whole table."""
    found: list[Any] = []
    for row, (cell, is_there) in enumerate(zip(cells, cells.notna(), strict=True)):
        try:
            found.append(_sql_value(cell, column.type) if is_there else None)
        except (ValueError, ArithmeticError, LookupError) as error:
            kind = next(word for of, word in _WORDS.items() if isinstance(column.type, of))
            message = f"{str(cell)!r} cannot be written to a column of type {column.type}"
            problem = Problem(message, column=column.name, row=n_before + row, expected=kind)
            raise TargetError(problem) from error
    return pd.Series(found, cells.index, dtype=object)


def _sql_value(cell: Any, kind: sa.types.TypeEngine[Any]) -> Any:
    """Converts a cell that is not missing to a value of an SQL type.

    Raises:
        ValueError, ArithmeticError, LookupError: The cell cannot be converted.
    """
    if isinstance(kind, sa.DateTime | sa.Date):
        if isinstance(cell, pd.Timestamp):
            cell = cell.to_pydatetime(warn=False)
        time = datetime.fromisoformat(str(cell))
        if isinstance(kind, sa.DateTime):
            return time
        if time.time() != datetime.min.time():
            raise ValueError
        return time.date()
    if isinstance(kind, sa.Integer):
        number = Decimal(str(int(cell) if isinstance(cell, bool) else cell))
        if number != int(number):
            raise ValueError
        return int(number)
    if isinstance(kind, sa.Boolean):
        return _TRUTHS[str(cell).lower()]
    if isinstance(kind, sa.Float):
        return float(cell)
    if isinstance(kind, sa.Numeric):
        return Decimal(str(cell))
    if isinstance(kind, sa.Uuid):
        return kind.python_type(str(cell))
    return str(cell) if isinstance(kind, sa.String) else cell


_TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_WORDS = {
    sa.DateTime: "a time such as 2024-12-31 08:30:00",
    sa.Date: "a date such as 2024-12-31",
    sa.Integer: "a whole number",
    sa.Boolean: "true or false",
    sa.Numeric: "a number such as 12.5",
    sa.Uuid: "a UUID",
}


_WHOLE_NUMBERS = {
    pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(),
}  # fmt: skip


def _sql_types(path: Path, dialect: str) -> dict[str, sa.types.TypeEngine[Any]]:
    """Returns SQL types by column: for columns of dates and, in SQLite and MySQL, also for columns
    of times. The type stores fractions of seconds only if a cell of the column contains some."""
    kinds: dict[str, sa.types.TypeEngine[Any]] = {}
    for field in pq.read_schema(path):
        if pa.types.is_date(field.type):
            kinds[field.name] = sa.Date()
        if pa.types.is_timestamp(field.type) and dialect in ("sqlite", *_MYSQL):
            cells = pq.read_table(path, columns=[field.name])[0].to_pandas()
            whole = cells.dropna().dt.floor("s").equals(cells.dropna())
            kinds[field.name] = (
                sqlite.DATETIME(truncate_microseconds=whole)  # type: ignore[no-untyped-call]
                if dialect == "sqlite"
                else mysql.DATETIME(fsp=0 if whole else 6)
            )
    return kinds


@contextmanager
def _written_database(
    url: str | sa.URL, connect_args: Mapping[str, Any], title: str | None = None
) -> Iterator[sa.Engine]:
    """Context manager that opens a database to write to, and converts its errors to a
    TargetError."""
    try:
        with closing_engine(_new_engine(_parsed(url), connect_args)) as engine:
            yield engine
    except (SQLAlchemyError, ValueError, ModuleNotFoundError, sqlite3.Error) as error:
        raise TargetError(f"{title or _shown(url)}: {_reason(error)}") from error


def _parsed(url: str | sa.URL) -> sa.URL:
    """Returns the parsed URL, with gcvae's default driver of the database if it names none."""
    parsed = sa.make_url(url)
    if "@" in (parsed.host or ""):
        raise SourceError("the user name or password of the URL contains @; write it as %40")
    return parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))


_MYSQL = ("mysql", "mariadb")
_DRIVERS = {
    "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql", "mariadb": "mysql+pymysql",
}  # fmt: skip


def _new_engine(url: sa.URL, connect_args: Mapping[str, Any]) -> sa.Engine:
    arguments = {**connect_args}
    if url.password is not None and url.get_driver_name() == "pymysql":
        arguments["password"] = url.password.encode()  # else it is sent as Latin-1
    return sa.create_engine(url, connect_args=arguments)


def _engine(
    url: str | sa.URL,
    connect_args: Mapping[str, Any] = MappingProxyType({}),
    title: str | None = None,
) -> sa.Engine:
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise SourceError(f"{title or parsed.database}: there is no such file")
    return _new_engine(parsed, connect_args)


def _shown(url: str | sa.URL) -> str:
    return hidden_password(url if isinstance(url, str) else url.render_as_string())


def _reason(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"the driver {error.name} is not installed; pip installs the package that has it"
    return str(getattr(error, "orig", None) or error).strip().split("\n")[0]


def _is_plain(column: sa.Column[Any]) -> bool:
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
            has_zone = getattr(column.type, "timezone", False) and any(
                cell.tzinfo is not None for cell in cells.dropna()
            )
            frame[column.name] = cells.astype("datetime64[us, UTC]" if has_zone else TIMES)
        elif isinstance(column.type, sa.Uuid):
            frame[column.name] = cells.astype("string").astype(object)
    return frame


def _complete_sqlite(connection: sa.Connection, metadata: sa.MetaData) -> None:
    """Adds what SQLAlchemy's reflection of an SQLite file omits.

    The additions are the original DDL statements (in `metadata.info`), UNIQUE constraints on
    columns whose type has a length, and, for columns without a type, the type of their values.
    """
    written = sa.text(
        "SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' ORDER BY rowid"
    )
    metadata.info["ddl"] = [tuple(row) for row in connection.execute(written)]
    for table in metadata.tables.values():
        name = connection.dialect.identifier_preparer.quote(table.name)
        indexes = connection.exec_driver_sql(f"PRAGMA index_list({name})").all()
        for _, index, _, origin, _ in reversed(indexes):
            quoted = connection.dialect.identifier_preparer.quote(index)
            info = connection.exec_driver_sql(f"PRAGMA index_info({quoted})")
            columns = [column for _, _, column in info]
            if origin == "u" and columns not in _unique(table):
                table.append_constraint(sa.UniqueConstraint(*columns))
        for column in table.columns:
            if isinstance(column.type, sa.types.NullType):
                kinds = sa.select(sa.func.typeof(column)).where(column.is_not(None)).distinct()
                found = set(connection.scalars(kinds))
                names: dict[str, sa.types.TypeEngine[Any]] = {
                    "integer": sa.Integer(),
                    "real": sa.Float(),
                    "blob": sa.LargeBinary(),
                }
                column.type = names.get("".join(found), sa.Text())


def _set_time_types(connection: sa.Connection, table: sa.Table) -> None:
    """Sets the text format in which SQLite stores the times of each column.

    SQLite stores times as strings. The format is that of the string with the most characters in the
    column: whether a space or a T precedes the hour, and whether the time of day, seconds and
    fractions of seconds are written.
    """
    for column in table.columns:
        if not isinstance(column.type, sa.DateTime):
            continue
        cells = column if connection.dialect.name == "sqlite" else sa.cast(column, sa.String)
        text = sa.type_coerce(cells, sa.String)
        longest = sa.select(sa.func.max(sa.func.length(text))).scalar_subquery()
        example = connection.scalar(sa.select(text).where(sa.func.length(text) == longest).limit(1))
        found = _TIME.match(example or "")
        if found is None:
            continue
        written = [part for group, part in zip(found.groups(), _PARTS, strict=True) if group]
        form = _DAY + "".join(written).replace(" ", found[1] or "")
        kind: sa.DateTime = sqlite.DATETIME(storage_format=form)  # type: ignore[no-untyped-call]
        column.type = column.type.with_variant(kind, "sqlite")


_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:([ T])\d\d:\d\d)?(:\d\d)?(\.\d+)?")
_DAY = "%(year)04d-%(month)02d-%(day)02d"
_PARTS = " %(hour)02d:%(minute)02d", ":%(second)02d", ".%(microsecond)06d"


def _unique(table: sa.Table) -> list[list[str]]:
    """Returns the unique constraints except the primary key, each as a list of column names.

    Partial indexes, which apply to some rows only, are left out.
    """
    whole = [i for i in table.indexes if i.unique and not any(i.dialect_kwargs.values())]
    constraints = [c for c in table.constraints if isinstance(c, sa.UniqueConstraint)]
    found = [[c.name for c in each.columns] for each in constraints]
    found += [[c.name for c in each.columns] for each in whole]
    plain = {column.name for column in table.columns if _is_plain(column)}
    return sorted(columns for columns in found if columns and plain.issuperset(columns))


def _keys(table: sa.Table) -> dict[str, Any]:
    unique = _unique(table)
    return {
        **({"unique": unique} if unique else {}),
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
        target = _generic(metadata, engine.dialect.name)
        with engine.begin() as connection:
            there = set(sa.inspect(connection).get_table_names()) & set(target.tables)
            if there:
                message = f"the database has a table {sorted(there)[0]!r}"
                raise TargetError(
                    f"{engine.url.render_as_string()}: {message} (expected: none of them)"
                )
            ddl = metadata.info.get("ddl", ()) if engine.dialect.name == "sqlite" else ()
            for kind, statement in ddl:
                if kind == "table":
                    connection.exec_driver_sql(statement)
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
                _set_deferred_keys(connection, table, deferred, rows)
            for kind, statement in ddl:
                if kind != "table":
                    connection.exec_driver_sql(statement)
            _advance_sequences(connection, target, metadata)
    finally:
        engine.dispose()


def _generic(metadata: sa.MetaData, dialect: str) -> sa.MetaData:
    """Returns a copy of the tables without features of their database, such as sequences.

    For a database of another dialect, types are replaced by generic ones. SQL expressions, such as
    defaults, are omitted and reported on standard error.
    """
    found = sa.MetaData()
    for table in metadata.sorted_tables:
        copy = table.to_metadata(found)
        for column in copy.columns:
            default = str(getattr(column.server_default, "arg", ""))
            if "nextval" in default:
                column.server_default = None
            if column.identity is not None:
                column.identity.always = False  # so that keys can be inserted; restored afterwards
            if dialect == metadata.info["dialect"]:
                continue
            if column.server_default is not None and column.identity is None:
                what = "default" if column.computed is None else "expression"
                _tell_left_out(f"the {what} of {table.name}.{column.name}", dialect)
                column.server_default = column.computed = None
            with suppress(NotImplementedError):  # raised for types without a generic form
                variants = column.type._variant_mapping  # as_generic() leaves them out
                column.type = column.type.as_generic(allow_nulltype=True)
                for name, variant in variants.items():
                    column.type = column.type.with_variant(variant, name)
        if dialect != metadata.info["dialect"]:
            _leave_out_sql(copy, dialect)
    return found


def _leave_out_sql(table: sa.Table, dialect: str) -> None:
    """Removes constraints and indexes that contain SQL expressions, and reports them."""
    for constraint in [c for c in table.constraints if isinstance(c, sa.CheckConstraint)]:
        table.constraints.discard(constraint)
        _tell_left_out(f"CHECK ({constraint.sqltext}) of {table.name}", dialect)
    for index in list(table.indexes):
        of_columns = all(isinstance(each, sa.Column) for each in index.expressions)
        if any(value for _, value in index.dialect_kwargs.items()) or not of_columns:
            table.indexes.discard(index)
            _tell_left_out(f"index {index.name} of {table.name}", dialect)


def _tell_left_out(what: str, dialect: str) -> None:
    print(f"gcvae: {what} is not carried over to {dialect}", file=sys.stderr)


def _deferred(table: sa.Table, target: sa.MetaData) -> set[str]:
    """Returns nullable foreign key columns that may refer to rows that are inserted later.

    Their foreign keys refer to the same table, or to a table whose rows are inserted later because
    tables refer to each other in a cycle.
    """
    order = {t.name: i for i, t in enumerate(target.sorted_tables)}
    return {
        element.parent.name
        for key in table.foreign_key_constraints
        if order[key.referred_table.name] >= order[table.name]
        for element in key.elements
        if element.parent.nullable
    }


def _set_deferred_keys(
    connection: sa.Connection, table: sa.Table, deferred: set[str], rows: list[dict[str, Any]]
) -> None:
    """Sets the foreign key columns `deferred`, which are NULL in the inserted rows."""
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
    """Returns rows as dictionaries with values of the database driver's types.

    Columns of unsupported types are NULL, or empty bytes if they cannot be NULL.
    """
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
    """Returns a cell that is not missing, as a value of the database driver's type."""
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


def _advance_sequences(
    connection: sa.Connection, target: sa.MetaData, metadata: sa.MetaData
) -> None:
    """Advances PostgreSQL's sequences to the largest inserted keys, so that new rows get new keys.

    Also restores GENERATED ALWAYS on the key columns that have it in the original tables (in
    `metadata`). The copies of these columns lack it at first, so that keys can be inserted.
    """
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
            identity = metadata.tables[table.key].columns[column.name].identity
            if identity is not None and identity.always:
                name = connection.dialect.identifier_preparer.format_column(column)
                alter = f"ALTER TABLE {quoted} ALTER COLUMN {name} SET GENERATED ALWAYS"
                connection.exec_driver_sql(alter)
