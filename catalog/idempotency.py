"""Idempotency keys: a request that is sent twice is done once and answered twice."""

from __future__ import annotations

from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from catalog.clock import database_clock
from catalog.database import Database
from catalog.errors import IdempotencyBusyError, IdempotencyMismatchError
from catalog.records import DEFAULT_WORKSPACE, Document
from catalog.tables import IdempotencyRow

KEEP_SECONDS = 10.0
"""How often whoever answers a request says that it still does."""

_ANSWERING_SECONDS = 3 * KEEP_SECONDS


class Idempotency:
    """Gateway to the idempotency keys of each workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self, key: str, request_sha256: str, *, workspace: str = DEFAULT_WORKSPACE
    ) -> Document | None:
        """None where the request is new and shall be done; else the answer it got before.

        Raises:
            IdempotencyMismatchError: the key stands for another request.
            IdempotencyBusyError: the first request is still being answered.
        """
        try:
            return self._begin(key, request_sha256, workspace)
        except IntegrityError as error:  # on PostgreSQL another request began between two lines
            raise IdempotencyBusyError(key) from error

    def _begin(self, key: str, request_sha256: str, workspace: str) -> Document | None:
        with self._database.writing() as session:
            self._drop_abandoned(session)
            row = session.get(IdempotencyRow, (workspace, key), with_for_update=True)
            if row is None:
                session.add(_new_row(workspace, key, request_sha256))
                return None
            if row.request_sha256 != request_sha256:
                raise IdempotencyMismatchError(key)
            if row.response is None:
                raise IdempotencyBusyError(key)
            return row.response

    def keep(self, key: str, *, workspace: str = DEFAULT_WORKSPACE) -> None:
        """The request is still being answered; to be said every `KEEP_SECONDS`."""
        with self._database.writing() as session:
            session.execute(
                update(IdempotencyRow)
                .where(
                    IdempotencyRow.workspace == workspace,
                    IdempotencyRow.key == key,
                    IdempotencyRow.response.is_(None),
                )
                .values(created_at=database_clock())
            )

    def complete(self, key: str, response: Document, *, workspace: str = DEFAULT_WORKSPACE) -> None:
        """Remember the answer (status code, headers, body: the caller's to define)."""
        with self._database.writing() as session:
            row = session.get(IdempotencyRow, (workspace, key), with_for_update=True)
            if row is not None:
                row.response = response

    def abandon(self, key: str, *, workspace: str = DEFAULT_WORKSPACE) -> None:
        """The request failed: the key may be used again."""
        with self._database.writing() as session:
            session.execute(
                delete(IdempotencyRow).where(
                    IdempotencyRow.workspace == workspace,
                    IdempotencyRow.key == key,
                    IdempotencyRow.response.is_(None),
                )
            )

    def forget_older_than(self, seconds: float) -> None:
        """Forget keys made more than `seconds` ago."""
        with self._database.writing() as session:
            session.execute(
                delete(IdempotencyRow).where(IdempotencyRow.created_at < database_clock(-seconds))
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
