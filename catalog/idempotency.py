"""Idempotency keys: a request that is sent twice is done once and answered twice.

What a request makes is noted with its key in the transaction that makes it. So it is made once,
wherever the process that answers dies, or sleeps until its key is another's.
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
"""How often whoever answers a request says that it still does."""

_ANSWERING_SECONDS = 3 * KEEP_SECONDS
_MADE = "made"
"""The only member of a response that is not written down yet: the id of what was made."""

_answering: ContextVar[tuple[str, str] | None] = ContextVar("answering", default=None)


@dataclass(frozen=True)
class Made:
    """What a request made, whose answer is not written down (yet).

    Attributes:
        id: of the dataset, of the imported model, or of the job.
    """

    id: str


def note_made(session: Session, made_id: str) -> None:
    """Note what the transaction makes, where the request that is being answered has a key.

    Raises:
        IdempotencyBusyError: the key is not this request's any more; the transaction must fail.
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
    """Forget the answer to the request that made this: what it says may have been taken back.

    The request is not done twice: its answer is made of the record from now on.
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
        """None where the request is new and shall be done; else the answer it got before, or what
        it made before it could be answered.

        Raises:
            IdempotencyMismatchError: the key stands for another request.
            IdempotencyBusyError: the first request is still being answered.
        """
        try:
            return self._begin(key, request_sha256)
        except IntegrityError as error:  # on PostgreSQL another request began between two lines
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
        """What is made within is made for the request with this key, which `begin` called new."""
        token = _answering.set((self._workspace, key))
        try:
            yield
        finally:
            _answering.reset(token)

    def keep(self, key: str) -> None:
        """The request is still being answered; to be said every `KEEP_SECONDS`."""
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
        """Remember the answer (status code, headers, body: the caller's to define)."""
        with self._database.writing() as session:
            row = session.get(IdempotencyRow, (self._workspace, key), with_for_update=True)
            if row is not None:
                row.response = response

    def abandon(self, key: str) -> None:
        """The request failed: the key may be used again, unless something was made."""
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
