"""PostgreSQL as it is reached over a network: nobody waits for it without end.

A server that is down refuses connections at once. One that is frozen, or behind a network that
swallows everything, answers nothing, and neither it nor its host can be relied on to say so: the
client stops waiting by itself.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.errors import OperationalError, _WaitTimeout
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL

_CONNECT_SECONDS = 2  # the least that PostgreSQL's clients take
_IDLE_SECONDS = 5.0
_INTERVAL_SECONDS = 0.1


def make_postgres_engine(url: URL, answer_seconds: float | None, **options: Any) -> Engine:
    """An engine whose statements end within `answer_seconds`: None sets no limits."""
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
    """A connection that closes itself where the server does not answer in time.

    Attributes:
        answer_seconds: how long an answer is waited for; None is as long as it takes.
    """

    answer_seconds: float | None = None

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _INTERVAL_SECONDS,
        timeout: float | None = None,
    ) -> RV:
        """What `gen` returns.

        Raises:
            psycopg.OperationalError: the server does not answer.
        """
        limit = self.answer_seconds if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except _WaitTimeout as error:
            self.close()  # what it would answer now belongs to no question any more
            raise OperationalError(f"the server did not answer within {limit:g} s") from error


def _session_limits(answer_seconds: float | None) -> str:
    """What the server ends by itself: a statement that nobody waits for any more, and the
    transaction of a frozen client, whose locks everybody else waits for.
    """
    if answer_seconds is None:
        return ""
    limits = {
        "statement_timeout": answer_seconds,
        "idle_in_transaction_session_timeout": _IDLE_SECONDS,
    }
    return " ".join(f"-c {name}={int(seconds * 1000)}" for name, seconds in limits.items())
