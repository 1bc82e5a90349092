"""Authentication of requests by API key or session, cached for half a second."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

from catalog.access.keys import Keys
from catalog.access.sessions import Sessions
from catalog.errors import BadKeyError
from catalog.records import Caller, Key
from service.errors import UnauthorizedError

AnswerT = TypeVar("AnswerT")

FRESH_SECONDS = 0.5
"""Lifetime of cached results: a revoked or new key may take effect this much later."""
_MOST_KEPT = 1024
_NOTE_SECONDS = 60.0
_SCHEME = "Bearer "


class KeyRing:
    """Authenticates requests by API key or by the session of a signed-in web page.

    Results are cached for `FRESH_SECONDS`. Each instance may be used in one event loop only.

    Args:
        keys, sessions: Records of API keys and sessions in the database.
        has_sign_on: Whether single sign-on is configured. If so, each request needs a key or
            session, even if no keys exist; if not, sessions of persons are refused.
    """

    def __init__(self, keys: Keys, sessions: Sessions, *, has_sign_on: bool) -> None:
        self._keys = keys
        self._sessions = sessions
        self._admitted = _RecentResults[Caller]()
        self._refused = _RecentResults[str]()
        self._keyless_until = 0.0
        self._has_sign_on = self._has_keys = has_sign_on

    async def authenticate(
        self, authorization: str | None, session: str | None = None
    ) -> Caller | None:
        """Returns the API key or person that sends a request; None if none is required.

        Args:
            authorization: Authorization header; None if it is missing.
            session: Session token of a signed-in page, used if there is no Authorization header.

        Raises:
            UnauthorizedError: The request needs a valid key or session, and has none.
        """
        if authorization is not None:
            self._keyless_until = 0.0  # a request with a key suggests that there are keys now
        if not await self.keys_exist():
            return None
        if authorization is None and session is not None:
            return await self._recent_or_find("session", session)
        if authorization is None:
            raise UnauthorizedError("the request has no API key")
        if authorization[: len(_SCHEME)].lower() != _SCHEME.lower():
            raise UnauthorizedError("the Authorization header is not a bearer token")
        return await self._recent_or_find("key", authorization[len(_SCHEME) :].strip())

    def forget_session(self, session: str) -> None:
        """Removes an ended session from the cache, so that its token is refused at once."""
        self._admitted.forget(_digest_of("session", session))

    async def _recent_or_find(self, kind: str, text: str) -> Caller:
        """Returns the caller with the token `text`, from the cache or else from the database.
        Raises UnauthorizedError for an invalid token; this refusal is cached, too."""
        name = _digest_of(kind, text)
        if (caller := self._admitted.get(name)) is not None:
            return caller
        if (why := self._refused.get(name)) is not None:
            raise UnauthorizedError(why, of_session=kind == "session")
        try:
            caller = await run_in_threadpool(self._find, kind, text)
        except UnauthorizedError as error:
            self._refused.keep(name, str(error))
            raise
        self._admitted.keep(name, caller)
        return caller

    async def keys_exist(self) -> bool:
        """Returns whether calls need authentication: keys exist, or sign-on is configured."""
        if not self._has_keys and time.monotonic() >= self._keyless_until:
            self._has_keys = await run_in_threadpool(self._keys.exist)
            self._keyless_until = time.monotonic() + FRESH_SECONDS
        return self._has_keys

    def _find(self, kind: str, text: str) -> Caller:
        """Returns the caller with the token `text`. The use of an API key is recorded, at most once
        a minute."""
        try:
            caller = self._keys.verify(text) if kind == "key" else self._sessions.find(text).caller
        except BadKeyError as error:
            raise UnauthorizedError(str(error), of_session=kind == "session") from None
        if not isinstance(caller, Key):
            if not self._has_sign_on:
                raise UnauthorizedError("this session has ended", of_session=True)
            return caller
        noted = datetime.now(UTC) - timedelta(seconds=_NOTE_SECONDS)
        if caller.last_used_at is None or caller.last_used_at < noted:
            self._keys.note_use(caller.id)
        return caller


class _RecentResults(Generic[AnswerT]):
    """Cache of the latest `_MOST_KEPT` results, each valid for `FRESH_SECONDS`."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[float, AnswerT]] = OrderedDict()

    def get(self, name: bytes) -> AnswerT | None:
        """Returns the result cached under the hash `name`; None if it is missing or expired."""
        until, answer = self._kept.get(name, (0.0, None))
        return answer if until > time.monotonic() else None

    def keep(self, name: bytes, answer: AnswerT) -> None:
        """Caches the result `answer` under the hash `name` for a limited time."""
        self._kept[name] = time.monotonic() + FRESH_SECONDS, answer
        self._kept.move_to_end(name)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def forget(self, name: bytes) -> None:
        """Removes the result under the hash `name` from the cache, if it is there."""
        self._kept.pop(name, None)


def _digest_of(kind: str, text: str) -> bytes:
    """Returns a hash of a token, so that tokens are not kept in memory."""
    return hashlib.sha256(f"{kind} {text}".encode()).digest()
