"""Connections of a workspace: named databases, buckets and web servers outside the service."""

from __future__ import annotations

from sqlalchemy import or_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import ConnectionRow
from catalog.errors import ConflictError, NotFoundError
from catalog.records import Connection
from catalog.registered import RegisteredRecords
from catalog.rows import write_row


class Connections(RegisteredRecords[ConnectionRow, Connection]):
    """Creates, reads, lists and deletes the connections of one workspace.

    A connection is a database, bucket or web server outside the service. It is found by its id or
    name. Datasets that were imported through a connection are kept when it is deleted.
    """

    _row, _record, _prefix, _most = ConnectionRow, Connection, "con", 100

    def create(
        self, connection_id: str, name: str, url: str, sealed_password: str | None
    ) -> Connection:
        """Creates a connection and returns its record.

        Args:
            connection_id: Id from `new_id`.
            sealed_password: Password, encrypted by the caller; None if the connection has none. It
                can only be decrypted for a connection with this id and URL.

        Raises:
            ConflictError: The workspace has the maximum number of connections already, or one with
                this name.
        """
        row = ConnectionRow(
            id=connection_id,
            workspace=self._workspace,
            name=name,
            url=url,
            sealed_password=sealed_password,
            created_at=database_clock(),
        )
        with self._database.writing() as session:
            self._require_room(session)
            try:
                return write_row(session, row, Connection)
            except IntegrityError:
                raise ConflictError(f"there is a connection {name!r} already") from None

    def _find(self, session: Session, record_id: str, *, lock: bool = False) -> ConnectionRow:
        has_name = or_(ConnectionRow.id == record_id, ConnectionRow.name == record_id)
        row: ConnectionRow | None = session.scalar(self._ours().where(has_name))
        if row is None:
            raise NotFoundError("connection", record_id)
        return row
