"""Sessions of web pages, opened with an API key and closed by signing out or after a time.

A session token has 256 random bits; the database stores its digest, without a salt because tokens
cannot be guessed. A session has the permissions of its key, and ends with it.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from sqlalchemy import delete, select

from catalog.access.keys import in_force
from catalog.database.clock import database_clock
from catalog.database.tables import KeyRow, SessionRow
from catalog.errors import BadKeyError
from catalog.records import Key
from catalog.rows import Records

_TOKEN_BYTES = 32


class Sessions(Records):
    """Opens, finds and closes the web sessions of all workspaces."""

    def open(self, key_id: str, seconds: float) -> tuple[str, datetime]:
        """Opens a web session for an API key that lasts `seconds`; returns (token, time of expiry).
        Only a hash of the token is stored."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._database.writing() as session:
            session.execute(delete(SessionRow).where(SessionRow.expires_at <= database_clock()))
            row = SessionRow(
                token_sha256=_digest(token), key_id=key_id, expires_at=database_clock(seconds)
            )
            session.add(row)
            session.flush()
            session.refresh(row)
            return token, row.expires_at

    def find(self, token: str) -> tuple[Key, datetime]:
        """Returns (API key with which a web session was opened, time at which the session expires).

        Raises:
            BadKeyError: The session is unknown or has ended, or its key is expired or revoked.
        """
        query = (
            select(KeyRow, SessionRow.expires_at, database_clock())
            .join(SessionRow, SessionRow.key_id == KeyRow.id)
            .where(SessionRow.token_sha256 == _digest(token))
        )
        with self._database.reading() as session:
            found = session.execute(query).one_or_none()
            if found is None or found[1] <= found[2]:
                raise BadKeyError("this session has ended")
            row, expires_at, now = found
            return in_force(row, now), expires_at

    def close(self, token: str) -> None:
        """Closes the web session with this token. Closing twice is allowed."""
        with self._database.writing() as session:
            session.execute(delete(SessionRow).where(SessionRow.token_sha256 == _digest(token)))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
