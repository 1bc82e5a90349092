"""A proxy before a real service that cuts connections in the middle of answers."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Cuts:
    """Where the proxy cuts: after so many bytes of each next answer of `path`.

    Attributes:
        after_bytes: Of the next answers; later ones come whole.
        requests: The heads of the requests of `path`.
    """

    path: str
    after_bytes: list[int]
    requests: list[bytes] = field(default_factory=list)


@contextmanager
def cutting(url: str, path: str, after_bytes: Sequence[int]) -> Iterator[tuple[str, Cuts]]:
    """The url of a proxy that cuts answers whose request names this path."""
    parts, cuts = urlsplit(url), Cuts(path, list(after_bytes))
    listening = socket.create_server(("127.0.0.1", 0))
    target = (str(parts.hostname), int(parts.port or 80))
    thread = threading.Thread(target=_accept, args=(listening, target, cuts), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", cuts
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def _accept(listening: socket.socket, target: tuple[str, int], cuts: Cuts) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(client, target, cuts), daemon=True).start()


def _serve(client: socket.socket, target: tuple[str, int], cuts: Cuts) -> None:
    """One request a connection: its head and body go on, and as much of the answer as may come."""
    with client, socket.create_connection(target) as service:
        head = b""  # and the body
        while b"\r\n\r\n" not in head:
            if not (block := client.recv(65536)):
                return
            head += block
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        whole = head.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
        while len(head) < whole:
            head += client.recv(65536)
        limit = None
        if cuts.path.encode() in head.partition(b"\r\n")[0]:
            cuts.requests.append(head)
            limit = cuts.after_bytes.pop(0) if cuts.after_bytes else None
        service.sendall(re.sub(rb"(?i)(\r\nconnection: )keep-alive", rb"\1close", head))
        _pass_on(service, client, limit)


def _pass_on(service: socket.socket, client: socket.socket, limit: int | None) -> None:
    """The answer's head, then at most `limit` bytes of what it holds."""
    answer = b""
    while b"\r\n\r\n" not in answer and (block := service.recv(65536)):
        answer += block
    head, _, body = answer.partition(b"\r\n\r\n")
    client.sendall(head + b"\r\n\r\n")
    n_sent = 0
    while limit is None or n_sent < limit:
        body = body or service.recv(65536)
        if not body:
            return
        part = body if limit is None else body[: limit - n_sent]
        client.sendall(part)
        n_sent, body = n_sent + len(part), b""
