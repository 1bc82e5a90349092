"""Idempotency keys: a request that is sent twice is executed once and answered twice.

The created record is noted with the key in the same transaction. It is therefore created once, even
if the process dies, or sleeps until another request takes over the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.engine import Database
from catalog.database.tables import IdempotencyRow
from catalog.errors import IdempotencyBusyError, IdempotencyMismatchError
from catalog.records import Document

KEEP_SECONDS = 10.0
"""Interval at which a request in progress renews its key."""

_ANSWERING_SECONDS = 3 * KEEP_SECONDS
_MADE = "made"
"""Only member of an incomplete response: the id of the created record."""

_answering: ContextVar[tuple[str, str] | None] = ContextVar("answering", default=None)


@dataclass(frozen=True)
class Made:
    """Record created by a request whose response is not stored (yet).

    Attributes:
        id: Id of the dataset, the imported model, or the job.
    """

    id: str


def note_made(session: Session, made_id: str) -> None:
    """Notes the created record if the current request has a key.

    Raises:
        IdempotencyBusyError: Another request took over the key; the transaction must fail.
    """
    held = _answering.get()
    if held is None:
        return
    workspace, key = held
    row = IdempotencyRow
    note = update(row).where(row.workspace == workspace, row.key == key, row.response.is_(None))
    if session.scalar(note.values(response={_MADE: made_id}).returning(row.key)) is None:
        raise IdempotencyBusyError(key)


def forget_answer(session: Session, made_id: str, workspace: str) -> None:
    """Deletes the response to the request that created this record, because it may be outdated.

    A repeated request is not executed; its response is made from the record.
    """
    row = IdempotencyRow
    answered = row.response["body"]["id"].as_string() == made_id
    forgetting = update(row).where(row.workspace == workspace, answered)
    session.execute(forgetting.values(response={_MADE: made_id}))


class Idempotency:
    """Gateway to the idempotency keys of a workspace."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    def begin(self, key: str, request_sha256: str) -> Document | Made | None:
        """Returns None if the request is new; else its response, or the record it created.

        Raises:
            IdempotencyMismatchError: The key was used for another request.
            IdempotencyBusyError: The first request is still in progress.
        """
        try:
            return self._begin(key, request_sha256)
        except IntegrityError as error:  # on PostgreSQL another request began in between
            raise IdempotencyBusyError(key) from error

    def _begin(self, key: str, request_sha256: str) -> Document | Made | None:
        with self._database.writing() as session:
            self._drop_abandoned(session)
            row = session.get(IdempotencyRow, (self._workspace, key), with_for_update=True)
            if row is None:
                session.add(_new_row(self._workspace, key, request_sha256))
                return None
            if row.request_sha256 != request_sha256:
                raise IdempotencyMismatchError(key)
            if row.response is None:
                raise IdempotencyBusyError(key)
            return Made(row.response[_MADE]) if _MADE in row.response else row.response

    @contextmanager
    def answering(self, key: str) -> Iterator[None]:
        """Records created in this block belong to the request with this key."""
        token = _answering.set((self._workspace, key))
        try:
            yield
        finally:
            _answering.reset(token)

    def keep(self, key: str) -> None:
        """Renews the key of a request in progress; call it every `KEEP_SECONDS`."""
        with self._database.writing() as session:
            session.execute(
                update(IdempotencyRow)
                .where(
                    IdempotencyRow.workspace == self._workspace,
                    IdempotencyRow.key == key,
                    IdempotencyRow.response.is_(None),
                )
                .values(created_at=database_clock())
            )

    def complete(self, key: str, response: Document) -> None:
        """Stores the response (status code, headers, body, as the caller defines them)."""
        with self._database.writing() as session:
            row = session.get(IdempotencyRow, (self._workspace, key), with_for_update=True)
            if row is not None:
                row.response = response

    def abandon(self, key: str) -> None:
        """Releases the key of a failed request, unless it created a record."""
        with self._database.writing() as session:
            session.execute(
                delete(IdempotencyRow).where(
                    IdempotencyRow.workspace == self._workspace,
                    IdempotencyRow.key == key,
                    IdempotencyRow.response.is_(None),
                )
            )

    def _drop_abandoned(self, session: Session) -> None:
        # A process that died while answering says nothing more: its key must not block for long.
        session.execute(
            delete(IdempotencyRow).where(
                IdempotencyRow.response.is_(None),
                IdempotencyRow.created_at < database_clock(-_ANSWERING_SECONDS),
            )
        )


def _new_row(workspace: str, key: str, request_sha256: str) -> IdempotencyRow:
    return IdempotencyRow(
        workspace=workspace,
        key=key,
        request_sha256=request_sha256,
        created_at=database_clock(),
    )
