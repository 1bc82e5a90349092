"""A web server on a free loopback port whose files, headers and manners are given."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.servers.serving import SilentHandler, serving

Chunks = Callable[[], Iterator[bytes]]


@dataclass
class Page:
    """What is at a path: a body, or a function that yields its chunks and may wait."""

    body: bytes | Chunks = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class WebServer:
    """Pages by path, and the (path, headers in small letters) of each request, in order."""

    url: str
    port: int
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def web_server(
    host: str = "127.0.0.1", port: int = 0, certificate: Path | None = None
) -> Iterator[WebServer]:
    """A web server, until the block ends; with TLS if there is a certificate with its key."""

    class Handler(SilentHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append((self.path, self.lower_headers()))
            page = found.pages.get(self.path, Page(b"", 404))
            try:
                self.send_response(page.status)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                if isinstance(page.body, bytes):
                    self.send_header("Content-Length", str(len(page.body)))
                self.end_headers()
                for chunk in [page.body] if isinstance(page.body, bytes) else page.body():
                    self.wfile.write(chunk)
            except OSError:
                pass  # the client has not waited

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    found = WebServer(f"{scheme}://{host}:{server.server_port}", server.server_port)
    with serving(server):
        yield found
