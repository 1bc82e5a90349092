"""Web sessions, opened with an API key or by a person; they end by signing out or by a time limit.

A session token has 256 random bits; the database stores its digest, without a salt because tokens
cannot be guessed. A session of a key has the permissions of the key, and ends with it. A session of
a person has the permissions that the person had when signing in.

The token of a session is replaced regularly. The previous token stays valid for a minute, for
requests in progress. If it is used later, it was probably stolen, so the session is closed.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, or_, select, update

from catalog.access.keys import in_force
from catalog.database.clock import database_clock
from catalog.database.tables import KeyRow, SessionRow
from catalog.errors import BadKeyError
from catalog.records import Caller, Person
from catalog.rows import Records

_RENEWAL = timedelta(minutes=15)
"""Age at which a token is replaced."""
_UNDER_WAY = timedelta(minutes=1)
"""Time for which a replaced token stays valid."""
_TOKEN_BYTES = 32
_USE = timedelta(minutes=1)
"""Minimum interval between updates of `used_at`."""


@dataclass(frozen=True)
class Session:
    """A web session that has not ended.

    Attributes:
        caller: API key or person to whom the session belongs.
        is_due: Whether the session's token should be replaced.
    """

    caller: Caller
    expires_at: datetime
    is_due: bool


class Sessions(Records):
    """Opens, finds and closes the web sessions of all workspaces."""

    def open(self, owner: str | Person, seconds: float, idle_seconds: int) -> tuple[str, datetime]:
        """Opens a web session and returns (token, time of expiry). Only a hash of the token is
        stored.

        Args:
            owner: Id of an API key, or a person.
            seconds: Time after which the session ends.
            idle_seconds: Time without requests after which the session ends earlier.
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        is_over = or_(
            SessionRow.expires_at <= database_clock(),
            SessionRow.used_at <= database_clock(-SessionRow.idle_seconds),
        )
        with self._database.writing() as session:
            session.execute(delete(SessionRow).where(is_over))
            row = SessionRow(
                token_sha256=_digest(token),
                key_id=None if isinstance(owner, Person) else owner,
                person=asdict(owner) if isinstance(owner, Person) else None,
                idle_seconds=idle_seconds,
                expires_at=database_clock(seconds),
            )
            session.add(row)
            session.flush()
            session.refresh(row)
            return token, row.expires_at

    def find(self, token: str) -> Session:
        """Returns the web session with a token, and records that it is used.

        Raises:
            BadKeyError: The session is unknown or has ended, or its key is expired or revoked.
        """
        digest = _digest(token)
        query = (
            select(SessionRow, KeyRow, database_clock())
            .join(KeyRow, SessionRow.key_id == KeyRow.id, isouter=True)
            .where(or_(SessionRow.token_sha256 == digest, SessionRow.previous_sha256 == digest))
        )
        with self._database.reading() as session:
            found = session.execute(query).one_or_none()
        if found is None:
            raise BadKeyError("this session has ended")
        row, key, now = found
        ends_at = min(row.expires_at, row.used_at + timedelta(seconds=row.idle_seconds))
        if digest == row.previous_sha256:
            ends_at = min(ends_at, row.renewed_at + _UNDER_WAY)
        if ends_at <= now:
            self.close(token)
            raise BadKeyError("this session has ended")
        if row.used_at + _USE <= now:
            used = update(SessionRow).where(SessionRow.token_sha256 == row.token_sha256)
            with self._database.writing() as session:
                session.execute(used.values(used_at=database_clock()))
        caller = Person(**row.person) if key is None else in_force(key, now)
        is_due = digest == row.token_sha256 and row.renewed_at + _RENEWAL <= now
        return Session(caller, row.expires_at, is_due)

    def renew(self, token: str) -> str | None:
        """Replaces a session's token if it is at least 15 minutes old.

        Returns:
            The new token; None if the token was not replaced.
        """
        new, digest = secrets.token_urlsafe(_TOKEN_BYTES), _digest(token)
        is_due = SessionRow.renewed_at <= database_clock(-_RENEWAL.total_seconds())
        renewal = update(SessionRow).where(SessionRow.token_sha256 == digest, is_due)
        values = {"token_sha256": _digest(new), "previous_sha256": digest}
        with self._database.writing() as session:
            done = session.execute(renewal.values(**values, renewed_at=database_clock()))
        return new if done.rowcount else None  # type: ignore[attr-defined]

    def close(self, token: str) -> None:
        """Closes the web session with this token. Closing twice is allowed."""
        digest = _digest(token)
        is_it = or_(SessionRow.token_sha256 == digest, SessionRow.previous_sha256 == digest)
        with self._database.writing() as session:
            session.execute(delete(SessionRow).where(is_it))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
