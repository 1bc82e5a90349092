"""Checkpoints of a training run: when they are saved, and how a run resumes from one."""

from __future__ import annotations

import time
from typing import Protocol


class CheckpointStore(Protocol):
    """Interface of the storage of one run's checkpoint. `save` replaces the last one atomically."""

    interval_seconds: float

    def counting(self) -> None:
        """Is called before a private run queries its table for the first time.

        A run that resumes with stored private rows does not call it. An exception ends the run.
        """

    def load(self) -> bytes | None:
        """Returns the last checkpoint saved, None when there is none."""

    def restored(self, *, is_continued: bool) -> None:
        """Is called after `load` with whether the run resumes from the loaded checkpoint."""

    def save(self, data: bytes) -> None:
        """Replaces the stored checkpoint."""


class Resumable(Protocol):
    """Interface of a training run that can be saved and resumed."""

    def fingerprint(self) -> str:
        """Returns the identity of the run. A run resumes only from checkpoints with its
        fingerprint."""

    def to_bytes(self, fingerprint: str) -> bytes:
        """Returns the serialised state of the run."""

    def continue_from(self, data: bytes, fingerprint: str) -> bool:
        """Restores the state from `data` if its fingerprint matches; returns whether it did."""


class Saver:
    """Saves a checkpoint each time the store's interval has passed."""

    def __init__(self, run: Resumable, store: CheckpointStore | None) -> None:
        """Starts the interval. Without a store nothing is saved."""
        self._run, self._store = run, store
        self._saved_at = time.monotonic()
        self._fingerprint = run.fingerprint() if store is not None else ""

    def restore(self) -> None:
        """Resumes the run from the store's checkpoint, if there is one."""
        store = self._store
        if store is not None and (data := store.load()) is not None:
            store.restored(is_continued=self._run.continue_from(data, self._fingerprint))

    def save_if_due(self) -> None:
        """Saves a checkpoint if the interval has passed since the last one."""
        store = self._store
        if store is None or time.monotonic() - self._saved_at < store.interval_seconds:
            return
        store.save(self._run.to_bytes(self._fingerprint))
        self._saved_at = time.monotonic()
