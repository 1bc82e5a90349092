"""Idempotency keys: a request that a client sends twice with the same key is executed only once.

The transaction that creates the request's record also stores the record's id with the key. The
record is therefore created only once, even if the process that executes the request dies.

If that process dies or is suspended, the key expires. When the client then repeats the request,
another process takes over the key, and the suspended one can no longer create the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, and_, delete, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import IdempotencyRow
from catalog.errors import IdempotencyBusyError, IdempotencyMismatchError
from catalog.records import Document
from catalog.rows import WorkspaceRecords

KEEP_SECONDS = 10.0
"""Interval in seconds at which a request in progress renews its idempotency key."""

_ANSWERING_SECONDS = 3 * KEEP_SECONDS
_CREATED = "made"
"""Name of the only member of `IdempotencyRow.response`, the id of the created record, as long as
the response itself is not stored."""

_recorder: ContextVar[Callable[[Session, str], None] | None] = ContextVar("recorder", default=None)


@dataclass(frozen=True)
class CreatedRecord:
    """A record that was created by a request whose response has not been stored.

    Attributes:
        id: Id of the dataset, the imported model, or the job.
    """

    id: str


def record_created_id(session: Session, created_id: str) -> None:
    """Stores the id of a new record, so that repeated work finds it instead of creating another.

    It is called in the transaction that creates a dataset, model or job. `recording_ids` determines
    where the id is stored: with the idempotency key if an HTTP request creates the record, or in
    the run if a run of a schedule does. Outside of blocks of `recording_ids`, nothing is stored.

    Raises:
        IdempotencyBusyError: Another process took over the idempotency key. The record must not be
            created.
        LeaseLostError: Another process took over the run. The record must not be created.
    """
    if (record := _recorder.get()) is not None:
        record(session, created_id)


@contextmanager
def recording_ids(record: Callable[[Session, str], None]) -> Iterator[None]:
    """Context manager that calls `record(session, id)` for each record that its block creates.

    The call is part of the transaction that creates the record. `record` stores the id, so that a
    repetition of the same work finds the record instead of creating it again.
    """
    token = _recorder.set(record)
    try:
        yield
    finally:
        _recorder.reset(token)


def _record_for_key(workspace: str, key: str, session: Session, created_id: str) -> None:
    change = update(IdempotencyRow).where(_unanswered(workspace, key))
    change = change.values(response={_CREATED: created_id})
    if session.scalar(change.returning(IdempotencyRow.key)) is None:
        raise IdempotencyBusyError(key)


def forget_answer(session: Session, created_id: str, workspace: str) -> None:
    """Deletes the stored response of the request that created a record, because the record changed.

    The idempotency key is kept. If the request is repeated, it is not executed again, and its
    response is made from the record.
    """
    row = IdempotencyRow
    answered = row.response["body"]["id"].as_string() == created_id
    forgetting = update(row).where(row.workspace == workspace, answered)
    session.execute(forgetting.values(response={_CREATED: created_id}))


class Idempotency(WorkspaceRecords):
    """Reads and writes the idempotency keys of one workspace."""

    def begin(self, key: str, request_sha256: str) -> Document | CreatedRecord | None:
        """Registers a request by its idempotency key.

        Returns:
            None if the request is new; the caller then executes it. The stored response if the
            request was executed before. A `CreatedRecord` with the id of the record that the
            request has created if its response is not stored.

        Raises:
            IdempotencyMismatchError: The key was used for a different request.
            IdempotencyBusyError: The first request with this key is still in progress.
        """
        try:
            return self._begin(key, request_sha256)
        except IntegrityError as error:  # on PostgreSQL, if another request begins simultaneously
            raise IdempotencyBusyError(key) from error

    def _begin(self, key: str, request_sha256: str) -> Document | CreatedRecord | None:
        with self._database.writing() as session:
            # A process that died during its request never releases its key, so keys expire.
            expired = IdempotencyRow.created_at < database_clock(-_ANSWERING_SECONDS)
            session.execute(
                delete(IdempotencyRow).where(IdempotencyRow.response.is_(None), expired)
            )
            row = session.get(IdempotencyRow, (self._workspace, key), with_for_update=True)
            if row is None:
                row = IdempotencyRow(
                    workspace=self._workspace, key=key, request_sha256=request_sha256
                )
                session.add(row)
                return None
            if row.request_sha256 != request_sha256:
                raise IdempotencyMismatchError(key)
            if row.response is None:
                raise IdempotencyBusyError(key)
            return (
                CreatedRecord(row.response[_CREATED]) if _CREATED in row.response else row.response
            )

    @contextmanager
    def answering(self, key: str) -> Iterator[None]:
        """Context manager in which the request with this key is executed.

        If the block creates a record, the id of the record is stored with the key.
        """
        with recording_ids(partial(_record_for_key, self._workspace, key)):
            yield

    def keep(self, key: str) -> None:
        """Prevents the key of a request in progress from expiring; call it every `KEEP_SECONDS`."""
        with self._database.writing() as session:
            kept = update(IdempotencyRow).where(_unanswered(self._workspace, key))
            session.execute(kept.values(created_at=database_clock()))

    def complete(self, key: str, response: Document) -> None:
        """Stores the response to the request with this key; `response` is any JSON object."""
        with self._database.writing() as session:
            row = session.get(IdempotencyRow, (self._workspace, key), with_for_update=True)
            if row is not None:
                row.response = response

    def abandon(self, key: str) -> None:
        """Deletes a failed request's key, so that the request can be repeated.

        The key is kept if the request has created a record.
        """
        with self._database.writing() as session:
            session.execute(delete(IdempotencyRow).where(_unanswered(self._workspace, key)))


def _unanswered(workspace: str, key: str) -> ColumnElement[bool]:
    """SQL condition that the request with this key has neither been answered nor created a record.
    The id of a created record is stored as `response`."""
    row = IdempotencyRow
    return and_(row.workspace == workspace, row.key == key, row.response.is_(None))
