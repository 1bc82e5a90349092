"""Orphans: bytes in the store without a record.

The record of such bytes is still to be created, could not be created, or was deleted.

Records are the source of truth. A process reserves a store prefix before it writes bytes; the
transaction that creates the record removes the reservation. A transaction that deletes a record
adds its prefix to the orphans. Bytes without a record are thus always listed, and garbage
collection deletes those left by crashes, failed uploads and deletions.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import OrphanRow
from catalog.errors import ReservationLostError
from catalog.rows import Records


class Orphans(Records):
    """Manages the list of store prefixes without a record.

    For each prefix, the list contains the time from which the bytes under it may be deleted.
    """

    def reserve(self, prefix: str, seconds: float) -> None:
        """Reserves a store prefix for a record that is to be created within `seconds`.

        After that time, bytes under the prefix are deleted unless the record exists. Reserving
        again extends the time.

        Raises:
            ReservationLostError: The bytes under the prefix are already being deleted.
        """
        with self._database.writing() as session:
            row = session.get(OrphanRow, prefix, with_for_update=True)
            if row is None:
                row = OrphanRow(prefix=prefix, being_swept=False)
                session.add(row)
            elif row.being_swept:
                raise ReservationLostError
            row.sweep_at = database_clock(seconds)

    def abandon(self, prefix: str) -> bool:
        """Ends the reservation of a prefix now, so that bytes under it are deleted.

        Returns True if the prefix was reserved, False if its record was created. The result helps a
        caller that has not received the database's response to the creation of the record.
        """
        with self._database.writing() as session:
            found = session.execute(
                update(OrphanRow)
                .where(OrphanRow.prefix == prefix)
                .values(sweep_at=database_clock(), being_swept=True)
            )
            return bool(found.rowcount)  # type: ignore[attr-defined]

    def add(self, prefixes: Iterable[str]) -> None:
        """Marks all bytes in the object store under these key prefixes as due for deletion."""
        with self._database.writing() as session:
            add_orphans(session, prefixes)

    def take_due(self, limit: int = 100) -> list[str]:
        """Returns at most `limit` prefixes whose bytes are to be deleted now.

        No record can be created for these prefixes afterwards.
        """
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
        """Removes a store prefix from the list of orphans, after its bytes were deleted."""
        with self._database.writing() as session:
            session.execute(delete(OrphanRow).where(OrphanRow.prefix == prefix))


def add_orphans(session: Session, prefixes: Iterable[str]) -> None:
    """Marks all bytes under these prefixes for deletion, in the caller's transaction."""
    for prefix in prefixes:
        if session.get(OrphanRow, prefix) is None:
            session.add(OrphanRow(prefix=prefix, sweep_at=database_clock(), being_swept=False))
            session.flush()
        session.execute(
            update(OrphanRow)
            .where(OrphanRow.prefix == prefix)
            .values(sweep_at=database_clock(), being_swept=True)
        )


def drop_reservation(session: Session, prefix: str) -> None:
    """Removes the reservation of a prefix, in the transaction that creates the record.

    Raises:
        ReservationLostError: The reservation has expired, and the bytes may be deleted.
    """
    dropped = session.execute(
        delete(OrphanRow).where(OrphanRow.prefix == prefix, ~OrphanRow.being_swept)
    )
    if dropped.rowcount == 0:  # type: ignore[attr-defined]
        raise ReservationLostError
