"""Limit on the size of request line and headers, which are held in memory until complete."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.errors import HeadTooLongError
from service.http.problems import answer_known
from service.http.response_headers import REQUEST_ID, SECURITY, choose_request_id
from service.settings import ServiceSettings


def head_protocol(settings: ServiceSettings) -> type[HttpToolsProtocol]:
    """Returns uvicorn's HTTP protocol, limited to `max_head_bytes` of request line and headers."""

    class Limited(_LimitedHeads):
        limit = settings.max_head_bytes

    return Limited


class _LimitedHeads(HttpToolsProtocol):
    """HTTP protocol that responds with 431 if request line and headers exceed `limit` bytes.

    Attributes:
        _in_head: Whether request line and headers have begun and are not complete.
        _n_received: Number of received bytes of the incomplete request line and headers. Bytes of
            the packet in which the request began are not counted, because the packet may contain
            the end of the previous request. `on_headers_complete` checks the exact length.
    """

    limit: int
    _in_head = False
    _n_received = 0
    _is_too_long = False

    def data_received(self, data: bytes) -> None:
        """Parses received bytes, and refuses request line and headers that are already too long."""
        goes_on = self._in_head
        super().data_received(data)
        if self._in_head and goes_on and not self._is_too_long:
            self._n_received += len(data)
            if self._n_received > self.limit:
                self._is_too_long = True
                self._refuse()

    def on_message_begin(self) -> None:
        """Starts to count the bytes of a new request's line and headers."""
        self._in_head, self._n_received = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Checks the length of the complete request line and headers.

        Raises:
            HeadTooLongError: Request line and headers are too long. The base class catches this
                error and calls `send_400_response`.
        """
        self._in_head = False
        n_bytes = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if n_bytes > self.limit:
            self._is_too_long = True
            raise HeadTooLongError(self.limit)
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Responds with 431 if request line and headers are too long, else with 400."""
        if self._is_too_long:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        scope: dict[str, Any] = {"type": "http", "path": "/", "headers": [], "query_string": b""}
        scope["state"] = {"request_id": choose_request_id(None)}
        answer = answer_known(Request(scope), HeadTooLongError(self.limit))
        # This response bypasses the middleware, so the headers that they would add are added here.
        own = {REQUEST_ID: scope["state"]["request_id"], "Connection": "close", **SECURITY}
        answer.headers.update(own)
        lines = [b"HTTP/1.1 431 Request Header Fields Too Large"]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.transport.close()
