"""A receiver of webhooks on a free loopback port, which can answer badly."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.serving import SilentHandler, serving

Answer = int | Callable[[], int]


@dataclass
class Receiver:
    """What has arrived, and how each path answers: with a status, or by a function that may wait.

    Attributes:
        received: (path, headers in small letters, body) of each request, in order.
        answers: Status or function by path; paths without one answer 204.
    """

    url: str
    received: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)

    def events(self, path: str = "/hook") -> list[dict[str, Any]]:
        """The events that arrived at a path, in order, with repetitions."""
        return [json.loads(body) for at, _, body in [*self.received] if at == path]

    def wait_for(self, n_events: int, path: str = "/hook", seconds: float = 30.0) -> None:
        """Wait until so many different events have arrived."""
        until = time.monotonic() + seconds
        while len({event["id"] for event in self.events(path)}) < n_events:
            assert time.monotonic() < until, f"{len(self.events(path))} requests arrived"
            time.sleep(0.02)


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    """A receiver, until the block ends."""

    class Handler(SilentHandler, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.received.append((self.path, self.lower_headers(), self.read_body()))
            answer = found.answers.get(self.path, 204)
            status = answer if isinstance(answer, int) else answer()
            try:
                self.send_response(status)
                if status in (301, 302, 307):
                    self.send_header("Location", f"{found.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:
                pass  # the sender has not waited

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    found = Receiver(f"http://127.0.0.1:{server.server_port}")
    with serving(server):
        yield found
