"""Servers in threads of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer


class SilentHandler(BaseHTTPRequestHandler):
    """Handler that logs nothing."""

    def log_message(self, *_: object) -> None:
        pass

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def lower_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """The server answers until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
