"""Interface of the store of a training run's checkpoints."""

from __future__ import annotations

from typing import Protocol


class CheckpointStore(Protocol):
    """Interface of an object that stores the latest checkpoint of one training run.

    Attributes:
        interval_seconds: Minimum time between two checkpoints.
    """

    interval_seconds: float

    def before_private_queries(self) -> None:
        """Called before the run queries its table under differential privacy, but not if the run
        resumes with stored private rows. An exception that this method raises ends the run."""

    def load(self) -> bytes | None:
        """Returns the stored checkpoint; None if there is none."""

    def restored(self, *, is_continued: bool) -> None:
        """Called after `load` has returned a checkpoint. `is_continued` is False if the checkpoint
        belongs to another run and is therefore ignored."""

    def save(self, data: bytes) -> None:
        """Replaces the stored checkpoint, atomically."""
