"""The keys of requests, as one process knows them: looked up now and then, not for every poll."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from starlette.concurrency import run_in_threadpool

from catalog.access.keys import Keys
from catalog.access.sessions import Sessions
from catalog.errors import BadKeyError
from catalog.records import Key
from service.errors import UnauthorizedError

FRESH_SECONDS = 0.5
"""How long what was read of a key holds: a revoked one is refused after that at the latest."""
_MOST_KEPT = 1024
_NOTE_SECONDS = 60.0
_SCHEME = "Bearer "
_ADVICE = "send one as `Authorization: Bearer gcv_…`; `gcvae keys create` makes one"
_SIGN_IN = "sign in again with a key"


class KeyRing:
    """Admits requests by their keys, and pages by their sessions. For one event loop."""

    def __init__(self, keys: Keys, sessions: Sessions) -> None:
        self._keys = keys
        self._sessions = sessions
        self._admitted: OrderedDict[bytes, tuple[float, Key]] = OrderedDict()
        self._keyless_until = 0.0
        self._has_keys = False

    async def holder(self, authorization: str | None, session: str | None = None) -> Key | None:
        """The key of a request with this header, or else with this session; None where the service
        has no keys at all.

        Raises:
            UnauthorizedError: there are keys, and the request has none that is in force.
        """
        if authorization is not None:
            self._keyless_until = 0.0  # who sends a key knows that there are some
        if not await self.keys_exist():
            return None
        if authorization is None and session is not None:
            return await self._remembered("session", session, self._of_session)
        if authorization is None:
            raise UnauthorizedError(f"this service asks for a key: {_ADVICE}")
        if authorization[: len(_SCHEME)].lower() != _SCHEME.lower():
            raise UnauthorizedError(f"the Authorization is no bearer token: {_ADVICE}")
        return await self._remembered("key", authorization[len(_SCHEME) :].strip(), self._verified)

    def forget_session(self, session: str) -> None:
        """Ask anew for this session: it has ended."""
        self._admitted.pop(_name_of("session", session), None)

    async def _remembered(self, kind: str, text: str, find: Callable[[str], Key]) -> Key:
        name = _name_of(kind, text)
        admitted = self._admitted.get(name)
        if admitted is not None and admitted[0] > time.monotonic():
            return admitted[1]
        key = await run_in_threadpool(find, text)
        self._admitted[name] = (time.monotonic() + FRESH_SECONDS, key)
        self._admitted.move_to_end(name)
        while len(self._admitted) > _MOST_KEPT:
            self._admitted.popitem(last=False)
        return key

    async def keys_exist(self) -> bool:
        """Whether the service has keys, and so asks every call for one."""
        if not self._has_keys and time.monotonic() >= self._keyless_until:
            self._has_keys = await run_in_threadpool(self._keys.exist)
            self._keyless_until = time.monotonic() + FRESH_SECONDS
        return self._has_keys

    def _verified(self, text: str) -> Key:
        try:
            return self._noted(self._keys.verify(text))
        except BadKeyError as error:
            raise UnauthorizedError(f"{error}; {_ADVICE}") from None

    def _of_session(self, text: str) -> Key:
        try:
            return self._noted(self._sessions.find(text)[0])
        except BadKeyError as error:
            raise UnauthorizedError(f"{error}; {_SIGN_IN}") from None

    def _noted(self, key: Key) -> Key:
        noted = datetime.now(UTC) - timedelta(seconds=_NOTE_SECONDS)
        if key.last_used_at is None or key.last_used_at < noted:
            self._keys.note_use(key.id)
        return key


def _name_of(kind: str, text: str) -> bytes:
    """What is kept in memory of a key or a token: neither itself."""
    return hashlib.sha256(f"{kind} {text}".encode()).digest()
