"""PostgreSQL connections with time limits on the client's side.

A server that is down rejects connections at once. A frozen server, or one behind a network that
drops packets, does not respond at all, so the client itself has to stop waiting.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.errors import OperationalError, _WaitTimeout
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL

_CONNECT_SECONDS = 2  # minimum of PostgreSQL's clients
_IDLE_SECONDS = 5.0
_INTERVAL_SECONDS = 0.1


def make_postgres_engine(url: URL, answer_seconds: float | None, **options: Any) -> Engine:
    """Returns an SQLAlchemy engine whose statements fail after `answer_seconds`.

    Args:
        answer_seconds: Time limit of a statement; None for no limit.
        **options: Further arguments of `create_engine`.
    """
    limits = {} if answer_seconds is None else {"pool_timeout": answer_seconds}
    engine = create_engine(url, pool_pre_ping=True, **limits, **options)

    def connect(_dialect: Any, _record: Any, arguments: list[Any], given: dict[str, Any]) -> Any:
        chosen = {"connect_timeout": _CONNECT_SECONDS} | given
        chosen["options"] = f"{given.get('options', '')} {_session_limits(answer_seconds)}".strip()
        connection = ImpatientConnection.connect(*arguments, **chosen)
        connection.answer_seconds = answer_seconds
        return connection

    event.listen(engine, "do_connect", connect)
    return engine


class ImpatientConnection(psycopg.Connection[Any]):
    """psycopg connection that closes itself if the server does not respond in time.

    Attributes:
        answer_seconds: Time limit of a response; None for no limit.
    """

    answer_seconds: float | None = None

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _INTERVAL_SECONDS,
        timeout: float | None = None,
    ) -> RV:
        """Runs a psycopg operation to its end and returns its result.

        Args:
            gen: The operation, as psycopg's generator.
            interval: Seconds between checks for interrupts.
            timeout: Time limit in seconds; None for `answer_seconds`.

        Raises:
            psycopg.OperationalError: The server does not respond in time.
        """
        limit = self.answer_seconds if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except _WaitTimeout as error:
            self.close()  # a later response would not belong to any statement
            raise OperationalError(f"the server did not answer within {limit:g} s") from error


def _session_limits(answer_seconds: float | None) -> str:
    """Returns PostgreSQL options with time limits; None sets no limits.

    They limit each statement to `answer_seconds`. They also end a transaction whose client sends
    nothing for 5 seconds, because the client may be frozen and keeps its locks.
    """
    if answer_seconds is None:
        return ""
    limits = {
        "statement_timeout": answer_seconds,
        "idle_in_transaction_session_timeout": _IDLE_SECONDS,
    }
    return " ".join(f"-c {name}={int(seconds * 1000)}" for name, seconds in limits.items())
