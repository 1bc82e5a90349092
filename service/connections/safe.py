"""Encrypts the passwords of connections."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gcvae.errors import Problem
from service.errors import RequestError
from service.settings import ServiceSettings, variable

KEY_FILE = "secrets.key"
"""Name of the key's file, beside an SQLite file of records."""
_NONCE_BYTES = 12
_KEY_BYTES = 32


class Safe:
    """Encrypts passwords by AES-256-GCM with the key of the settings.

    An encrypted password belongs to one connection and one URL: with others it cannot be read.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings

    def seal(self, password: str, *place: str) -> str:
        """Returns an encrypted password as text.

        Args:
            place: Id and URL of the connection.

        Raises:
            RequestError: The service has no key.
        """
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._key()).encrypt(nonce, password.encode(), _bound(place))
        return base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, *place: str) -> str:
        """Returns a password that `seal` has encrypted for the same place.

        Raises:
            RequestError: The service has no key, or another one than when it was encrypted.
        """
        data = base64.b64decode(sealed)
        nonce, content = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
        try:
            return AESGCM(self._key()).decrypt(nonce, content, _bound(place)).decode()
        except InvalidTag:
            message = f"its password cannot be read with the key in {variable('secrets_key')}"
            expected = "the earlier key, or a new connection"
            raise RequestError(Problem(message, "/connection", expected=expected)) from None

    def _key(self) -> bytes:
        text = self._settings.secrets_key
        records = sa.make_url(self._settings.database())
        if text is None and records.get_backend_name() == "sqlite":
            text = _kept_key(Path(str(records.database)).with_name(KEY_FILE))
        if text is None:
            expected = f"at least {_KEY_BYTES} random characters in {variable('secrets_key')}"
            raise RequestError(
                Problem("this service has no key for passwords", "/password", expected=expected)
            )
        return hashlib.sha256(text.encode()).digest()


def _kept_key(path: Path) -> str:
    """Returns the key in a file, which is made if it does not exist."""
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as new:  # readable by the owner only
            new.write(secrets.token_urlsafe(_KEY_BYTES))
            new.flush()
            os.fsync(new.fileno())  # after a power failure it would be an empty key
            with suppress(FileExistsError):  # another process was faster
                os.link(new.name, path)
    return path.read_text()


def _bound(place: tuple[str, ...]) -> bytes:
    return "\n".join(place).encode()
