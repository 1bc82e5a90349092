"""A proxy in front of an S3 server, which can be told to misbehave: real HTTP, real clients."""

from __future__ import annotations

import http.client
import threading
import time
from contextlib import suppress
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.servers.serving import SilentHandler

_SLOW_SECONDS = 1.0
_TIMEOUT_SECONDS = 60.0
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
_WRITING = ("PUT", "POST", "DELETE")


class StoreMode(StrEnum):
    """What the store does with requests."""

    WELL = "well"
    ERRORS = "answers 500"
    SLOW = "answers slowly"
    TRUNCATED = "breaks off in mid-answer"
    FULL = "is full (507)"
    READ_ONLY = "is read-only (403)"


_REFUSALS = {
    StoreMode.ERRORS: (500, "InternalError"),
    StoreMode.FULL: (507, "InsufficientStorage"),
    StoreMode.READ_ONLY: (403, "AccessDenied"),
}


class StoreProxy:
    """Passes requests on to a server at `host:port`, as `mode` says; runs as a context.

    A reading request that is broken off has an answer shorter than announced; a writing one is
    done, and its answer never arrives.
    """

    def __init__(self, upstream_port: int) -> None:
        self.mode = StoreMode.WELL
        self._server = _ForgivingServer(("127.0.0.1", 0), _handler(self, upstream_port))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _ForgivingServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Nothing: clients are killed in the middle of requests here."""


def _handler(proxy: StoreProxy, upstream_port: int) -> type[BaseHTTPRequestHandler]:
    class Handler(SilentHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            mode = proxy.mode
            if mode is StoreMode.ERRORS or (mode in _REFUSALS and self.command in _WRITING):
                self._refuse(*_REFUSALS[mode])
                return
            if mode is StoreMode.SLOW:
                time.sleep(_SLOW_SECONDS)
            with suppress(ConnectionError):  # the client may have been killed meanwhile
                self._answer(*self._ask(body), is_broken=mode is StoreMode.TRUNCATED)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

        def _ask(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
            upstream = http.client.HTTPConnection("127.0.0.1", upstream_port, _TIMEOUT_SECONDS)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
            upstream.request(self.command, self.path, body, headers)
            response = upstream.getresponse()
            content = response.read()
            upstream.close()
            return response, content

        def _answer(
            self, response: http.client.HTTPResponse, content: bytes, *, is_broken: bool
        ) -> None:
            if is_broken and self.command in _WRITING:
                self.close_connection = True
                return
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            length = response.headers.get("Content-Length") if self.command == "HEAD" else None
            if response.status != 204:
                self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            if is_broken:
                self.close_connection = True
                content = content[: len(content) // 2]
            self.wfile.write(content)

        def _refuse(self, status: int, code: str) -> None:
            content = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    return Handler
