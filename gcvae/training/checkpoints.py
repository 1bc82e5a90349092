"""Checkpoints of a training run: when they are written, and that a run continues from its own."""

from __future__ import annotations

import time
from typing import Protocol


class CheckpointStore(Protocol):
    """Store of a run's checkpoint. `save` replaces the last one atomically."""

    interval_seconds: float

    def counting(self) -> None:
        """Hears that a private run is about to ask its table, before anything is counted. What it
        raises ends the run. One that goes on with the private rows that it had does not ask."""

    def load(self) -> bytes | None:
        """Returns the last checkpoint saved, None when there is none."""

    def restored(self, *, is_continued: bool) -> None:
        """Hears whether the run continues from what was loaded, or begins anew: it is another's."""

    def save(self, data: bytes) -> None:
        """Keeps a checkpoint in the place of the last one."""


class Resumable(Protocol):
    """A run that can be written down and taken up again."""

    def fingerprint(self) -> str:
        """Identity of a run: a checkpoint resumes only a run with an equal fingerprint."""

    def to_bytes(self, fingerprint: str) -> bytes:
        """Returns the state of the run."""

    def continue_from(self, data: bytes, fingerprint: str) -> bool:
        """Takes up what `to_bytes` wrote, if it is of this very run; whether it is."""


class Saver:
    """Saves a checkpoint at the store's interval, the first within that interval of the start."""

    def __init__(self, run: Resumable, store: CheckpointStore | None) -> None:
        """A run without a store is never saved."""
        self._run, self._store = run, store
        self._saved_at = time.monotonic()
        self._fingerprint = run.fingerprint() if store is not None else ""

    def restore(self) -> None:
        """Continues the run from the store's checkpoint, if it has one."""
        store = self._store
        if store is not None and (data := store.load()) is not None:
            store.restored(is_continued=self._run.continue_from(data, self._fingerprint))

    def save_if_due(self) -> None:
        """Saves once the interval has passed."""
        store = self._store
        if store is None or time.monotonic() - self._saved_at < store.interval_seconds:
            return
        store.save(self._run.to_bytes(self._fingerprint))
        self._saved_at = time.monotonic()
