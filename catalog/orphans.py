"""Bytes that no record stands for: reserved before a record is made, left when it is deleted.

The records are the truth, the bytes follow. Whoever is about to write bytes reserves their prefix
first; the transaction that makes the record drops the reservation. Whatever deletes a record
leaves its prefix here in the same transaction. So bytes without a record are always named here,
and garbage collection removes what a crash, a lost upload or a deletion left behind.
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
    """Gateway to the prefixes in the store that are to be collected."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, prefix: str, seconds: float) -> None:
        """Announce bytes under `prefix`: collected in `seconds` unless a record is made for them.

        Reserving again prolongs.

        Raises:
            ReservationLostError: the prefix is already being collected.
        """
        with self._database.writing() as session:
            if not _prolong(session, prefix, seconds):
                _insert(session, prefix, seconds)

    def abandon(self, prefix: str) -> bool:
        """Have a reservation run out now; False where it is gone, for its record was made.

        The transaction that makes the record drops the reservation. So this keeps the two cases
        apart where that transaction's end was not heard of.
        """
        with self._database.writing() as session:
            found = session.execute(
                update(OrphanRow)
                .where(OrphanRow.prefix == prefix)
                .values(sweep_at=database_clock(), being_swept=True)
            )
            return bool(found.rowcount)  # type: ignore[attr-defined]

    def add(self, prefixes: Iterable[str]) -> None:
        """Name prefixes whose bytes can go at once."""
        with self._database.writing() as session:
            add_orphans(session, prefixes)

    def take_due(self, limit: int = 100) -> list[str]:
        """The prefixes to be collected now; from here on no record can be made for them."""
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
        """The bytes under `prefix` are gone."""
        with self._database.writing() as session:
            session.execute(delete(OrphanRow).where(OrphanRow.prefix == prefix))


def add_orphans(session: Session, prefixes: Iterable[str]) -> None:
    """Name prefixes to be collected at once, in the caller's transaction."""
    for prefix in prefixes:
        if session.get(OrphanRow, prefix) is None:
            _insert(session, prefix, 0.0)
        session.execute(
            update(OrphanRow)
            .where(OrphanRow.prefix == prefix)
            .values(sweep_at=database_clock(), being_swept=True)
        )


def drop_reservation(session: Session, prefix: str) -> None:
    """Drop the reservation in the transaction that makes the record.

    Raises:
        ReservationLostError: it ran out and the bytes may be gone.
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
