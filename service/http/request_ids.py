"""X-Request-ID header: each response has one, which is the client's own if that is well-formed."""

from __future__ import annotations

import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestIds:
    """Middleware that stores an id in `request.state.request_id` and in the header X-Request-ID."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = choose_request_id(Headers(scope=scope).get(HEADER))
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        await self.app(scope, receive, send_named)


def choose_request_id(given: str | None) -> str:
    """Returns the client's request id, or a new one if it is None or could forge a log line.

    >>> choose_request_id("order-17")
    'order-17'
    >>> choose_request_id("a b") == "a b"
    False
    """
    if given is not None and _WELL_FORMED.fullmatch(given):
        return given
    return uuid.uuid4().hex
