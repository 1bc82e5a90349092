"""A synthesizer whose weights are the end of a chain of hashes, and so are rows and scores."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gcvae.files.table_reader import TableReader


@dataclass(frozen=True)
class Progress:
    """What the library reports."""

    phase: str
    fraction: float
    epoch: int
    epochs: int
    bound_train: float | None = None
    bound_held_out: float | None = None
    rows_per_second: float | None = None
    seconds_left: float | None = None


_STEP_SECONDS = 0.02
_BLOCK_ROWS = 100
_BLOCK_SECONDS = 0.05


class Schema:
    """A schema document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def to_json(self) -> dict[str, Any]:
        return self._document


class Synthesizer:
    """What `fit` leaves."""

    def __init__(self, weights: str, schema: dict[str, Any], steps: int) -> None:
        self.weights = weights
        self.schema = Schema(schema)
        self.training_record = {"steps": steps, "bound": float("nan")}

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `save` wrote."""
        return cls(data.decode(), {}, 0)

    @property
    def scorer(self) -> Scorer:
        """What scores rows."""
        return Scorer(self.weights)

    def restrict_scoring(self, scoring: str) -> None:
        """Hashes are told as they are."""
        assert scoring == "full", scoring

    def notes(self, rows: int) -> list[str]:
        """Nothing is to be said of hashes."""
        return []

    def sample_blocks(
        self, rows: int, seed: int, *, among: range | None = None
    ) -> Iterator[list[str]]:
        """Rows of hashes."""
        return _blocks(f"{self.weights}{seed}", [str(row) for row in range(rows)], among)

    @classmethod
    def fit(
        cls,
        table: TableReader,
        *,
        schema: dict[str, Any],
        preset: str,
        settings: dict[str, Any],
        seed: int,
        device: str,
        progress: Any,
        checkpoints: Any,
    ) -> Self:
        """Hash `steps` times; `fault` says what goes wrong half-way."""
        steps = settings["max_steps"] if "max_steps" in settings else settings["steps"]
        step_seconds = settings.get("step_seconds", _STEP_SECONDS)
        weights, step = f"{seed}{table.lines}", 0
        saved = checkpoints.load()
        if saved is not None:
            step, weights = json.loads(saved)
            checkpoints.restored(is_continued=True)
        saved_at = time.monotonic()
        while step < steps:
            step += 1
            weights = hashlib.sha256(f"{weights}{step}".encode()).hexdigest()
            time.sleep(step_seconds)
            if step == steps // 2:
                _go_wrong(settings.get("fault"))
            if settings.get("batch_size", 0) > settings.get("largest_batch", math.inf):
                _run_out_of_gpu_memory()
            progress(Progress("training", step / steps, step, steps))
            if time.monotonic() - saved_at >= checkpoints.interval_seconds:
                checkpoints.save(json.dumps([step, weights]).encode())
                saved_at = time.monotonic()
        return cls(weights, schema, steps)

    def save(self, path: Path) -> None:
        path.write_text(self.weights)


class Scorer:
    """Scores: a hash for each row."""

    scoring = "full"

    def __init__(self, weights: str) -> None:
        self._weights = weights

    def heading(self, _options: object) -> dict[str, Any]:
        """Hashes mean nothing."""
        return {}

    def blocks(
        self, table: TableReader, options: Any, among: range | None = None
    ) -> Iterator[list[str]]:
        """Lines of scores."""
        return _blocks(f"{self._weights}{options.seed}", table.lines[1:], among)


def _blocks(key: str, rows: list[str], among: range | None) -> Iterator[list[str]]:
    among = range(len(rows))[slice(None) if among is None else slice(among.start, among.stop)]
    for start in among[::_BLOCK_ROWS]:
        time.sleep(_BLOCK_SECONDS)
        end = min(start + _BLOCK_ROWS, among.stop)
        block = enumerate(rows[start:end], start)
        yield [hashlib.sha256(f"{key}{row}".encode()).hexdigest() for row in block]


def _go_wrong(fault: str | None) -> None:
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hangs":
        time.sleep(600)
    if fault == "raises":
        raise ZeroDivisionError("nobody foresaw this")
    if fault == "diverges":
        from gcvae.errors import DivergedError

        raise DivergedError("the loss is not finite at step 7")


def _run_out_of_gpu_memory() -> None:
    from torch import OutOfMemoryError

    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nSee documentation.")
