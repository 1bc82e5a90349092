"""What a job makes, block by block, and its way into the store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from catalog import Produced
from worker.attempt import Attempt

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def reporting(
    attempt: Attempt, phase: str, blocks: Iterator[pd.DataFrame], rows: int
) -> Iterator[pd.DataFrame]:
    """The blocks; with each, progress among all `rows` is told, and how fast it goes.

    Raises:
        CancelledError: the attempt was asked to stop.
    """
    done, begun_at = 0, time.monotonic()
    for block in blocks:
        done += len(block)
        seconds = max(time.monotonic() - begun_at, 1e-9)
        speed = done / seconds
        more = {"rows_per_second": speed, "seconds_left": (rows - done) / speed if speed else None}
        attempt.tell(phase, done / rows if rows else 1.0, **more)
        yield block


def publish(
    attempt: Attempt, name: str, file: Path, *, media_type: str, rows: int, summary: dict[str, Any]
) -> Produced:
    """The job's result, its bytes in the store.

    Raises:
        LeaseLostError: the attempt no longer owns the job.
    """
    attempt.tell("finishing", 1.0)
    published = attempt.publish(name, file)
    return Produced(
        object_key=published.key,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        media_type=media_type,
        rows=rows,
        summary=summary,
    )
