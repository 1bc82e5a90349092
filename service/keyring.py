"""The keys of requests, as one process knows them: looked up now and then, not for every poll."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from datetime import UTC, datetime, timedelta

from starlette.concurrency import run_in_threadpool

from catalog.errors import BadKeyError
from catalog.keys import Keys
from catalog.records import Key
from service.errors import UnauthorizedError

FRESH_SECONDS = 0.5
"""How long what was read of a key holds: a revoked one is refused after that at the latest."""
_MOST_KEPT = 1024
_NOTE_SECONDS = 60.0
_SCHEME = "Bearer "
_ADVICE = "send one as `Authorization: Bearer gcv_…`; `gcvae keys create` makes one"


class KeyRing:
    """Admits requests by their keys. For one event loop."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._admitted: OrderedDict[bytes, tuple[float, Key]] = OrderedDict()
        self._keyless_until = 0.0
        self._has_keys = False

    async def holder(self, authorization: str | None) -> Key | None:
        """The key of a request with this header; None where the service has no keys at all.

        Raises:
            UnauthorizedError: there are keys, and the request has none that is in force.
        """
        if not await self._keys_exist():
            return None
        if authorization is None:
            raise UnauthorizedError(f"this service asks for a key: {_ADVICE}")
        if authorization[: len(_SCHEME)].lower() != _SCHEME.lower():
            raise UnauthorizedError(f"the Authorization is no bearer token: {_ADVICE}")
        text = authorization[len(_SCHEME) :].strip()
        name = hashlib.sha256(text.encode()).digest()  # a key itself is not kept in memory
        admitted = self._admitted.get(name)
        if admitted is not None and admitted[0] > time.monotonic():
            return admitted[1]
        key = await run_in_threadpool(self._verified, text)
        self._admitted[name] = (time.monotonic() + FRESH_SECONDS, key)
        self._admitted.move_to_end(name)
        while len(self._admitted) > _MOST_KEPT:
            self._admitted.popitem(last=False)
        return key

    async def _keys_exist(self) -> bool:
        if not self._has_keys and time.monotonic() >= self._keyless_until:
            self._has_keys = await run_in_threadpool(self._keys.exist)
            self._keyless_until = time.monotonic() + FRESH_SECONDS
        return self._has_keys

    def _verified(self, text: str) -> Key:
        try:
            key = self._keys.verify(text)
        except BadKeyError as error:
            raise UnauthorizedError(f"{error}; {_ADVICE}") from None
        noted = datetime.now(UTC) - timedelta(seconds=_NOTE_SECONDS)
        if key.last_used_at is None or key.last_used_at < noted:
            self._keys.note_use(key.id)
        return key
