"""The connections of a workspace: databases, buckets and web servers that have a name."""

from __future__ import annotations

from sqlalchemy import func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import ConnectionRow
from catalog.errors import ConflictError, NotFoundError
from catalog.ids import new_id
from catalog.pages import Page, read_page
from catalog.records import Connection
from catalog.rows import WorkspaceRecords, copy_row, written

MOST_CONNECTIONS = 100


class Connections(WorkspaceRecords):
    """Creates, lists and deletes the connections of one workspace."""

    def new_id(self) -> str:
        """Returns an id for a connection whose password is about to be encrypted."""
        return new_id("con")

    def create(
        self, connection_id: str, name: str, url: str, sealed_password: str | None
    ) -> Connection:
        """Creates a connection and returns its record.

        Args:
            sealed_password: Encrypted password; None for none.

        Raises:
            ConflictError: The workspace has `MOST_CONNECTIONS` connections already, or one with
                this name.
        """
        with self._database.writing() as session:
            ours = select(func.count()).where(ConnectionRow.workspace == self._workspace)
            if session.scalars(ours).one() >= MOST_CONNECTIONS:
                most = f"the workspace has {MOST_CONNECTIONS} connections"
                raise ConflictError(f"{most}; delete one first")
            row = ConnectionRow(
                id=connection_id,
                workspace=self._workspace,
                name=name,
                url=url,
                sealed_password=sealed_password,
                created_at=database_clock(),
            )
            try:
                return written(session, row, Connection)
            except IntegrityError:
                raise ConflictError(f"there is a connection {name!r} already") from None

    def get(self, connection: str) -> Connection:
        """Returns the connection with this id or name.

        Raises:
            NotFoundError: The workspace has no such connection.
        """
        with self._database.reading() as session:
            return copy_row(Connection, self._find(session, connection))

    def list(self, *, limit: int, cursor: str | None) -> Page[Connection]:
        """Returns a page of the workspace's connections, the newest first.

        Raises:
            CursorError: The cursor is invalid.
        """
        query = select(ConnectionRow).where(ConnectionRow.workspace == self._workspace)
        with self._database.reading() as session:
            return read_page(session, query, ConnectionRow, Connection, limit, cursor)

    def delete(self, connection: str) -> None:
        """Deletes the connection with this id or name; datasets that were made of it are kept.

        Raises:
            NotFoundError: The workspace has no such connection.
        """
        with self._database.writing() as session:
            session.delete(self._find(session, connection))

    def _find(self, session: Session, connection: str) -> ConnectionRow:
        row = session.scalar(
            select(ConnectionRow).where(
                ConnectionRow.workspace == self._workspace,
                or_(ConnectionRow.id == connection, ConnectionRow.name == connection),
            )
        )
        if row is None:
            raise NotFoundError("connection", connection)
        return row
