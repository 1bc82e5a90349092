"""What a job makes, block by block, and its way into the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from catalog import Produced
from worker.attempt import Attempt

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from gcvae import TableReader


def reporting(
    attempt: Attempt,
    phase: str,
    blocks: Iterator[pd.DataFrame],
    share_of: Callable[[int], float],
) -> Iterator[pd.DataFrame]:
    """The blocks; with each, progress is told, and how fast it goes.

    Args:
        share_of: what part of the work so many rows are.

    Raises:
        CancelledError: the attempt was asked to stop.
    """
    done, begun_at = 0, time.monotonic()
    for block in blocks:
        done += len(block)
        seconds = max(time.monotonic() - begun_at, 1e-9)
        share = share_of(done)
        left = seconds * (1.0 - share) / share if share else None
        attempt.tell(phase, share, rows_per_second=done / seconds, seconds_left=left)
        yield block


def share_of_rows(rows: int) -> Callable[[int], float]:
    """Of so many rows in all."""
    return lambda done: done / rows if rows else 1.0


def share_of_file(reader: TableReader, lines_per_row: int = 1) -> Callable[[int], float]:
    """Of a file's rows, whose number is known at its end only; some lines are made of each."""
    return lambda done: reader.fraction * done / (reader.rows * lines_per_row)


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
