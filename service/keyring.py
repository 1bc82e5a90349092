"""The keys of requests, as one process knows them: looked up now and then, not for every poll."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

from catalog.access.keys import Keys
from catalog.access.sessions import Sessions
from catalog.errors import BadKeyError
from catalog.records import Key
from service.errors import UnauthorizedError

AnswerT = TypeVar("AnswerT")

FRESH_SECONDS = 0.5
"""How long what was read of a key holds: a revoked one is refused after that at the latest, and one
that was asked for before it was made is let in."""
_MOST_KEPT = 1024
_NOTE_SECONDS = 60.0
_SCHEME = "Bearer "


class KeyRing:
    """Admits requests by their keys, and pages by their sessions. For one event loop."""

    def __init__(self, keys: Keys, sessions: Sessions) -> None:
        self._keys = keys
        self._sessions = sessions
        self._admitted = _Remembered[Key]()
        self._refused = _Remembered[str]()
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
            raise UnauthorizedError("the request has no API key")
        if authorization[: len(_SCHEME)].lower() != _SCHEME.lower():
            raise UnauthorizedError("the Authorization header is not a bearer token")
        return await self._remembered("key", authorization[len(_SCHEME) :].strip(), self._verified)

    def forget_session(self, session: str) -> None:
        """Ask anew for this session: it has ended."""
        self._admitted.forget(_name_of("session", session))

    async def _remembered(self, kind: str, text: str, find: Callable[[str], Key]) -> Key:
        """The key, or the refusal, of a moment ago: a flood of either is cheap."""
        name = _name_of(kind, text)
        if (key := self._admitted.get(name)) is not None:
            return key
        if (why := self._refused.get(name)) is not None:
            raise UnauthorizedError(why, of_session=kind == "session")
        try:
            key = await run_in_threadpool(find, text)
        except UnauthorizedError as error:
            self._refused.keep(name, str(error))
            raise
        self._admitted.keep(name, key)
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
            raise UnauthorizedError(str(error)) from None

    def _of_session(self, text: str) -> Key:
        try:
            return self._noted(self._sessions.find(text)[0])
        except BadKeyError as error:
            raise UnauthorizedError(str(error), of_session=True) from None

    def _noted(self, key: Key) -> Key:
        noted = datetime.now(UTC) - timedelta(seconds=_NOTE_SECONDS)
        if key.last_used_at is None or key.last_used_at < noted:
            self._keys.note_use(key.id)
        return key


class _Remembered(Generic[AnswerT]):
    """What was found a moment ago, of the last `_MOST_KEPT`."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[float, AnswerT]] = OrderedDict()

    def get(self, name: bytes) -> AnswerT | None:
        until, answer = self._kept.get(name, (0.0, None))
        return answer if until > time.monotonic() else None

    def keep(self, name: bytes, answer: AnswerT) -> None:
        self._kept[name] = time.monotonic() + FRESH_SECONDS, answer
        self._kept.move_to_end(name)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def forget(self, name: bytes) -> None:
        self._kept.pop(name, None)


def _name_of(kind: str, text: str) -> bytes:
    """What is kept in memory of a key or a token: neither itself."""
    return hashlib.sha256(f"{kind} {text}".encode()).digest()
