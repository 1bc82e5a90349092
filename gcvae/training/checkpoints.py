"""Saves checkpoints of a training run and resumes the run from them."""

from __future__ import annotations

import time
from typing import Protocol


class CheckpointStore(Protocol):
    """Interface of an object that stores the latest checkpoint of one training run.

    Attributes:
        interval_seconds: Minimum time between two checkpoints.
    """

    interval_seconds: float

    def counting(self) -> None:
        """The run calls this method before it queries its table for the first time under
        differential privacy.

        A run that resumes with stored private rows does not call it. An exception ends the run.
        """

    def load(self) -> bytes | None:
        """Returns the stored checkpoint; None if there is none."""

    def restored(self, *, is_continued: bool) -> None:
        """The run calls this method after `load` returned a checkpoint.

        Args:
            is_continued: Whether the run resumes from it; False if it belongs to another run.
        """

    def save(self, data: bytes) -> None:
        """Replaces the stored checkpoint, atomically."""


class Resumable(Protocol):
    """Interface of a training run that can be saved and resumed."""

    def fingerprint(self) -> str:
        """Returns a digest of everything that determines the run (versions, settings, seed, rows);
        a run resumes only from checkpoints with the same digest."""

    def to_bytes(self, fingerprint: str) -> bytes:
        """Returns the state of the run as bytes. They contain `fingerprint`, the digest that
        identifies the run."""

    def continue_from(self, data: bytes, fingerprint: str) -> bool:
        """Restores the state from `data` if it contains `fingerprint`, the digest that identifies
        the run; returns whether the state was restored."""


class Saver:
    """Saves checkpoints of a training run in a store, at the store's minimum interval."""

    def __init__(self, run: Resumable, store: CheckpointStore | None) -> None:
        """Starts the first interval.

        Args:
            run: Training run.
            store: Store of its checkpoint; None to save nothing.
        """
        self._run, self._store = run, store
        self._saved_at = time.monotonic()
        self._fingerprint = run.fingerprint() if store is not None else ""

    def restore(self) -> None:
        """Resumes the run from the stored checkpoint, if there is one and it belongs to the run."""
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
