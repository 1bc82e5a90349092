"""API keys and their scopes (permissions). Only a salted hash of a key is stored.

    key = gcv_ + 26 letters of its id + _ + 43 letters of 256 random bits

The id identifies the record; the random bits are the secret. 256 bits cannot be guessed, so the
salted hash (argon2id) need not be slow: computing it takes a millisecond.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from datetime import datetime
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import KeyRow
from catalog.errors import BadKeyError, ConflictError, NotFoundError
from catalog.ids import new_id
from catalog.records import Key, Scope
from catalog.rows import Records, copy_row, write_row

KEY_FORM = re.compile(r"gcv_([0-9a-z]{26})_([A-Za-z0-9_-]{32,64})")
_SECRET_BYTES = 32
_HASHER = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1)
_USE_SECONDS = 60.0
"""Minimum interval in seconds between updates of `last_used_at`."""


class Keys(Records):
    """Creates, verifies and revokes the API keys of all workspaces."""

    def create(
        self,
        workspace: str,
        name: str,
        scopes: Collection[Scope],
        *,
        expires_at: datetime | None = None,
        text: str | None = None,
    ) -> tuple[Key, str]:
        """Creates an API key and returns (record, key string). Only a hash of the key is stored.

        If the key `text` exists already, nothing is changed, and that key is returned.

        Args:
            scopes: Permissions of the key.
            expires_at: Time of expiry; None if the key does not expire.
            text: Key string that was generated elsewhere, such as in a file of secrets; None to
                generate one.

        Raises:
            BadKeyError: `text` is not formatted as an API key.
            ConflictError: Another key with the same id exists.
        """
        key_id, secret = _new_parts() if text is None else _parts(text)
        with self._database.writing() as session:
            row = session.get(KeyRow, key_id)
            if row is None:
                row = _new_row(key_id, secret, workspace, name, scopes, expires_at)
            elif not _fits(row.secret_hash, secret):
                raise ConflictError(f"another key {key_id} exists")
            return write_row(session, row, Key), _key_text(key_id, secret)

    def rotate(self, key_id: str) -> tuple[Key, str]:
        """Revokes an API key and creates another one for the same holder.

        The new key has the name, workspace, scopes and time of expiry of the revoked one.

        Returns:
            (record of the new key, key string); only a hash of the key is stored.

        Raises:
            NotFoundError: The key does not exist.
            ConflictError: The key is already revoked.
        """
        new_key_id, secret = _new_parts()
        with self._database.writing() as session:
            old = _find(session, key_id)
            if old.revoked_at is not None:
                raise ConflictError(f"key {key_id} was revoked; create a new key")
            scopes = [Scope(scope) for scope in old.scopes]
            row = _new_row(new_key_id, secret, old.workspace, old.name, scopes, old.expires_at)
            _revoke(session, key_id)
            return write_row(session, row, Key), _key_text(new_key_id, secret)

    def revoke(self, key_id: str) -> Key:
        """Revokes an API key and returns its record. A key that is already revoked is not changed.

        Raises:
            NotFoundError: The key does not exist.
        """
        with self._database.writing() as session:
            row = _find(session, key_id)
            if row.revoked_at is None:
                _revoke(session, key_id)
                session.refresh(row)
            return copy_row(Key, row)

    def list(self) -> list[Key]:
        """Returns the records of all API keys, the oldest first."""
        query = select(KeyRow).order_by(KeyRow.id)
        with self._database.reading() as session:
            return [copy_row(Key, row) for row in session.scalars(query)]

    def exist(self) -> bool:
        """Returns whether an API key was ever created; if so, requests need a key."""
        return self._any(select(KeyRow.id))

    def verify(self, text: str) -> Key:
        """Returns the record of the API key `text`.

        Rejecting a key takes about as long as accepting one, so the time does not reveal which keys
        exist.

        Raises:
            BadKeyError: The key is malformed, unknown, expired or revoked.
        """
        try:
            key_id, secret = _parts(text)
        except BadKeyError:
            _fits(_nobodys_hash(), text)
            raise
        with self._database.reading() as session:
            row = session.get(KeyRow, key_id)
            now = session.scalar(select(database_clock()))
        fits = _fits(_nobodys_hash() if row is None else row.secret_hash, secret)
        if row is None or not fits:
            raise BadKeyError("this key does not belong to this service")
        return in_force(row, now)

    def note_use(self, key_id: str) -> None:
        """Records that an API key is used now, at most once a minute."""
        is_old = KeyRow.last_used_at.is_(None) | (
            KeyRow.last_used_at < database_clock(-_USE_SECONDS)
        )
        used = update(KeyRow).where(KeyRow.id == key_id, is_old)
        with self._database.writing() as session:
            session.execute(used.values(last_used_at=database_clock()))


def in_force(row: KeyRow, now: datetime | None) -> Key:
    """Returns the record of a key from its database row, unless it is revoked or has expired.

    Args:
        now: Time by which the key must not have expired; None to accept expired keys.

    Raises:
        BadKeyError: The key is expired or revoked.
    """
    if row.revoked_at is not None:
        raise BadKeyError("this key was revoked")
    if row.expires_at is not None and now is not None and row.expires_at <= now:
        raise BadKeyError(f"this key expired at {row.expires_at.isoformat(timespec='seconds')}")
    return copy_row(Key, row)


def _new_parts() -> tuple[str, str]:
    return new_id("key"), secrets.token_urlsafe(_SECRET_BYTES)


def _parts(text: str) -> tuple[str, str]:
    found = KEY_FORM.fullmatch(text)
    if found is None:
        raise BadKeyError("this is not an API key; a key begins with gcv_ and has 74 characters")
    return f"key_{found[1]}", found[2]


def _key_text(key_id: str, secret: str) -> str:
    return f"gcv_{key_id.removeprefix('key_')}_{secret}"


def _new_row(
    key_id: str,
    secret: str,
    workspace: str,
    name: str,
    scopes: Collection[Scope],
    expires_at: datetime | None,
) -> KeyRow:
    return KeyRow(
        id=key_id,
        workspace=workspace,
        name=name,
        scopes=sorted({scope.value for scope in scopes}),
        secret_hash=_HASHER.hash(secret),
        expires_at=expires_at,
    )


def _find(session: Session, key_id: str) -> KeyRow:
    row = session.get(KeyRow, key_id, with_for_update=True)
    if row is None:
        raise NotFoundError("key", key_id)
    return row


def _revoke(session: Session, key_id: str) -> None:
    revoking = update(KeyRow).where(KeyRow.id == key_id).values(revoked_at=database_clock())
    session.execute(revoking, execution_options={"synchronize_session": False})


def _fits(hashed: str, secret: str) -> bool:
    try:
        return _HASHER.verify(hashed, secret)
    except VerifyMismatchError:
        return False


@cache
def _nobodys_hash() -> str:
    """Returns the hash of a random secret. Secrets of unknown keys are compared with it, so that
    rejecting an unknown key takes as long as rejecting a wrong secret of a known key."""
    return _HASHER.hash(secrets.token_urlsafe(_SECRET_BYTES))
