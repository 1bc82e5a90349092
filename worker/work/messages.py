"""What a job's process is told, and what it reports to its supervisor: JSON lines."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from typing import Any

from catalog import Cancelled, Document, Failed, Outcome, Produced, Trained

_OUTCOMES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Trained, Produced, Failed, Cancelled)
}

SERVER_AWAY = "server_away"
"""Code of an attempt that failed because the database or the store did not answer."""


@dataclass(frozen=True)
class JobOrder:
    """Which attempt a job's process makes."""

    job_id: str
    attempt: int
    owner: str


class MessageWriter:
    """The child's end of the pipe."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", buffering=1)

    def progress(self, progress: Document) -> None:
        """Report how far the job is."""
        self._write({"progress": finite(progress)})

    def outcome(self, outcome: Outcome) -> None:
        """Report what became of the job. The last message."""
        self._write({"outcome": type(outcome).__name__, "fields": finite(asdict(outcome))})

    def try_again(self, failed: Failed, *, smaller_batch: bool = False) -> None:
        """Report that another attempt may succeed where this one failed. The last message."""
        self._write({"try_again": finite(asdict(failed)), "smaller_batch": smaller_batch})

    def _write(self, message: Document) -> None:
        self._file.write(json.dumps(message) + "\n")


class MessageReader:
    """The supervisor's end of the pipe.

    Attributes:
        progress: the newest progress that was not taken yet.
        outcome: what became of the job, once reported.
        try_again: why this attempt failed though another may succeed, once reported.
        smaller_batch: the other shall take half the batch.
        at_end: True once the child has closed its end.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.progress: Document | None = None
        self.outcome: Outcome | None = None
        self.try_again: Failed | None = None
        self.smaller_batch = False
        self.at_end = False
        self._rest = b""

    def read(self) -> None:
        """Take in what the pipe has; it must be readable."""
        data = os.read(self.descriptor, 65536)
        self.at_end = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    @property
    def has_last_word(self) -> bool:
        """True where the child has reported its outcome: nothing is lost by killing it."""
        return self.outcome is not None or self.try_again is not None

    def take_progress(self) -> Document | None:
        """The newest progress, once."""
        progress, self.progress = self.progress, None
        return progress

    def _take(self, message: Document) -> None:
        if "progress" in message:
            self.progress = message["progress"]
        elif "try_again" in message:
            self.try_again = _failed(message["try_again"])
            self.smaller_batch = message["smaller_batch"]
        else:
            fields = message["fields"]
            kind = _OUTCOMES[message["outcome"]]
            self.outcome = _failed(fields) if kind is Failed else kind(**fields)


def _failed(fields: Document) -> Failed:
    return Failed(fields["code"], fields["message"], tuple(fields["problems"]))


def finite(value: Any) -> Any:
    """The same document with null for numbers that JSON does not have (NaN, infinities)."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
