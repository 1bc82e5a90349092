"""Orphans: bytes in the store without a record, reserved before creation or left after deletion.

Records are the source of truth. A process reserves a prefix before it writes bytes; the transaction
that creates the record removes the reservation. A transaction that deletes a record adds its prefix
here. Bytes without a record are thus always listed, and garbage collection removes those left by
crashes, lost uploads and deletions.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.engine import Database
from catalog.database.tables import OrphanRow
from catalog.errors import ReservationLostError


class Orphans:
    """Gateway to store prefixes that are to be collected."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, prefix: str, seconds: float) -> None:
        """Reserves `prefix`: its bytes are collected in `seconds` unless a record is created.

        Reserving again extends the time.

        Raises:
            ReservationLostError: The prefix is already being collected.
        """
        with self._database.writing() as session:
            if not _prolong(session, prefix, seconds):
                _insert(session, prefix, seconds)

    def abandon(self, prefix: str) -> bool:
        """Lets a reservation expire now; returns False if it is gone because its record was
        created.

        This tells the two cases apart if the result of the creating transaction is unknown.
        """
        with self._database.writing() as session:
            found = session.execute(
                update(OrphanRow)
                .where(OrphanRow.prefix == prefix)
                .values(sweep_at=database_clock(), being_swept=True)
            )
            return bool(found.rowcount)  # type: ignore[attr-defined]

    def add(self, prefixes: Iterable[str]) -> None:
        """Adds prefixes whose bytes can be deleted at once."""
        with self._database.writing() as session:
            add_orphans(session, prefixes)

    def take_due(self, limit: int = 100) -> list[str]:
        """Returns the prefixes to collect now; no records can be created for them any more."""
        with self._database.writing() as session:
            due = session.scalars(
                select(OrphanRow)
                .where(OrphanRow.sweep_at <= database_clock())
                .order_by(OrphanRow.sweep_at)
                .limit(limit)
                .with_for_update(skip_locked=True)
            ).all()
            for row in due:
                row.being_swept = True
            return [row.prefix for row in due]

    def forget(self, prefix: str) -> None:
        """Removes `prefix` after its bytes were deleted."""
        with self._database.writing() as session:
            session.execute(delete(OrphanRow).where(OrphanRow.prefix == prefix))


def add_orphans(session: Session, prefixes: Iterable[str]) -> None:
    """Adds prefixes to be collected at once, in the caller's transaction."""
    for prefix in prefixes:
        if session.get(OrphanRow, prefix) is None:
            _insert(session, prefix, 0.0)
        session.execute(
            update(OrphanRow)
            .where(OrphanRow.prefix == prefix)
            .values(sweep_at=database_clock(), being_swept=True)
        )


def drop_reservation(session: Session, prefix: str) -> None:
    """Removes the reservation, in the transaction that creates the record.

    Raises:
        ReservationLostError: It has expired and the bytes may be deleted.
    """
    dropped = session.execute(
        delete(OrphanRow).where(OrphanRow.prefix == prefix, ~OrphanRow.being_swept)
    )
    if dropped.rowcount == 0:  # type: ignore[attr-defined]
        raise ReservationLostError(prefix)


def _prolong(session: Session, prefix: str, seconds: float) -> bool:
    row = session.get(OrphanRow, prefix, with_for_update=True)
    if row is None:
        return False
    if row.being_swept:
        raise ReservationLostError(prefix)
    session.execute(
        update(OrphanRow).where(OrphanRow.prefix == prefix).values(sweep_at=database_clock(seconds))
    )
    return True


def _insert(session: Session, prefix: str, seconds: float) -> None:
    session.add(OrphanRow(prefix=prefix, sweep_at=database_clock(seconds), being_swept=False))
    session.flush()
