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
"""Name of the file with the key, in the folder of the service's SQLite database."""
_NONCE_BYTES = 12
_KEY_BYTES = 32


class PasswordEncryption:
    """Encrypts passwords by AES-256-GCM, with the key in the settings or in a key file.

    A password is encrypted for one connection: only with the same id and URL can it be decrypted.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings

    def encrypt(self, password: str, *connection: str) -> str:
        """Encrypts the password of a connection. Returns nonce and ciphertext as base64.

        Args:
            password: The password.
            *connection: Id and URL of the connection to which the password belongs.

        Raises:
            RequestError: The service has no key.
        """
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._key()).encrypt(nonce, password.encode(), _associated_data(connection))
        return base64.b64encode(nonce + sealed).decode()

    def decrypt(self, sealed: str, *connection: str) -> str:
        """Decrypts the password of a connection, and returns it.

        Args:
            sealed: Nonce and ciphertext as base64, as `encrypt` returns them.
            *connection: Id and URL of the connection to which the password belongs.

        Raises:
            RequestError: The service has no key, or the key, id or URL has changed since.
        """
        data = base64.b64decode(sealed)
        nonce, content = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
        try:
            return (
                AESGCM(self._key()).decrypt(nonce, content, _associated_data(connection)).decode()
            )
        except InvalidTag:
            message = f"its password cannot be read with the key in {variable('secrets_key')}"
            expected = "the earlier key, or a new connection"
            raise RequestError(Problem(message, "/connection", expected=expected)) from None

    def _key(self) -> bytes:
        text = self._settings.secrets_key
        records = sa.make_url(self._settings.database())
        if text is None and records.get_backend_name() == "sqlite":
            text = _stored_key(Path(str(records.database)).with_name(KEY_FILE))
        if text is None:
            expected = f"at least {_KEY_BYTES} random characters in {variable('secrets_key')}"
            raise RequestError(
                Problem("this service has no key for passwords", "/password", expected=expected)
            )
        return hashlib.sha256(text.encode()).digest()


def _stored_key(path: Path) -> str:
    """Returns the key in a file. If the file does not exist, it is created with a random key."""
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as new:  # readable by the owner only
            new.write(secrets.token_urlsafe(_KEY_BYTES))
            new.flush()
            os.fsync(new.fileno())  # the file must not be empty after a power failure
            with suppress(FileExistsError):  # another process was faster
                os.link(new.name, path)
    return path.read_text()


def _associated_data(connection: tuple[str, ...]) -> bytes:
    return "\n".join(connection).encode()
