"""A message broker without a server: a kombu transport that stores messages in a folder.

A message is written under a temporary name in the queue's folder, synced to the disk and renamed; a
reader takes it by renaming it again. Readers therefore never see incomplete messages, and only one
of several readers gets a message. Source: kombu's `filesystem` transport, which writes files under
their final names and loses messages that are read too early.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import virtual

_MESSAGE = ".msg"
_HIDDEN = "."  # temporary and taken files; a crash may leave some
_HIDDEN_SECONDS = 3600.0


class Channel(virtual.Channel):
    """kombu channel that stores each queue as a folder and each message as a file.

    The oldest message of a queue is received first. Every process declares queues and bindings for
    itself; only messages are shared.
    """

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        folder = self._folder(queue)
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}{_MESSAGE}"
        temporary = folder / f"{_HIDDEN}{name}"
        with temporary.open("wb") as file:
            file.write(json.dumps(message).encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(folder / name)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        names = os.listdir(self._folder(queue))
        for name in sorted(name for name in names if not name.startswith(_HIDDEN)):
            path = self._root / queue / name
            taken = path.with_name(f"{_HIDDEN}{uuid.uuid4().hex}-taken")
            try:
                path.rename(taken)
            except FileNotFoundError:
                continue  # another reader was faster
            content = taken.read_bytes()
            taken.unlink()
            return json.loads(content.decode())
        raise Empty

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        for path in self._folder(queue).glob(f"{_HIDDEN}*"):
            with suppress(FileNotFoundError):  # another process has removed it meanwhile
                if path.stat().st_mtime < time.time() - _HIDDEN_SECONDS:
                    path.unlink()

    def _folder(self, queue: str) -> Path:
        folder = self._root / queue
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def _root(self) -> Path:
        return Path(self.connection.client.transport_options["folder"])


class Transport(virtual.Transport):
    """kombu transport with a folder of message files as the broker.

    Its transport options are `folder` and `polling_interval` (seconds).
    """

    Channel = Channel

    driver_type = driver_name = "filesystem"
