"""Headers of all responses: the id of the request, and security headers."""

from __future__ import annotations

import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = "X-Request-ID"
"""Header with the id of the request: the id that the client sent, if well-formed, or a new one."""
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""Default headers. They keep browsers from running scripts, such as scripts in a table's texts that
a report shows. Web pages with scripts set a less strict Content-Security-Policy."""
_WELL_FORMED = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class ResponseHeaders:
    """Middleware that adds the request id and security headers to each response.

    The security headers are those in `SECURITY`. A header that the response sets itself is kept.
    The request id is also stored in `request.state.request_id`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = choose_request_id(Headers(scope=scope).get(REQUEST_ID))
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)


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
