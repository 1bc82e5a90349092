"""The database's clock as an SQL expression, and the column type of timestamps.

Leases expire by the database's clock, so differences between the clocks of workers do not matter.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Double, Float, TypeDecorator, literal
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class Timestamp(TypeDecorator[datetime]):
    """SQLAlchemy type of a time: seconds since 1970 in the database, a UTC datetime in Python."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> float | None:
        return None if value is None else value.timestamp()

    def process_result_value(self, value: float | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromtimestamp(value, UTC)


class _DatabaseClock(FunctionElement[datetime]):
    """SQL expression of the database's current time plus its argument in seconds."""

    name = "database_clock"
    type = Timestamp()
    inherit_cache = True


def database_clock(plus_seconds: Any = 0.0) -> _DatabaseClock:
    """Returns an SQL expression of the database's current time plus a number (or SQL expression)
    of seconds."""
    is_number = isinstance(plus_seconds, (int, float))
    return _DatabaseClock(literal(float(plus_seconds), Float()) if is_number else plus_seconds)


@compiles(_DatabaseClock, "sqlite")
def _compile_for_sqlite(element: _DatabaseClock, compiler: SQLCompiler, **kw: Any) -> str:
    # julianday has milliseconds in every SQLite; 2440587.5 is 1970-01-01.
    offset = compiler.process(element.clauses, **kw)
    return f"((julianday('now') - 2440587.5) * 86400.0 + {offset})"


@compiles(_DatabaseClock, "postgresql")
def _compile_for_postgresql(element: _DatabaseClock, compiler: SQLCompiler, **kw: Any) -> str:
    # clock_timestamp() instead of now(), which is the time of the transaction's start.
    offset = compiler.process(element.clauses, **kw)
    return f"(CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION) + {offset})"
