"""A synthesizer whose weights are the end of a chain of hashes."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


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
    def fit(
        cls,
        frame: list[str],
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
        steps, weights, step = settings["steps"], f"{seed}{frame}", 0
        saved = checkpoints.load()
        if saved is not None:
            step, weights = json.loads(saved)
        saved_at = time.monotonic()
        while step < steps:
            step += 1
            weights = hashlib.sha256(f"{weights}{step}".encode()).hexdigest()
            time.sleep(settings["step_seconds"])
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


def _run_out_of_gpu_memory() -> None:
    from torch import OutOfMemoryError

    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nSee documentation.")


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
