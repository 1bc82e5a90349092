"""What a job makes, block by block, and its way into the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from catalog import Produced
from worker.work.attempt import Attempt

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from gcvae import TableReader


def reporting(
    attempt: Attempt,
    phase: str,
    blocks: Iterator[pd.DataFrame],
    fraction_of: Callable[[int], float],
) -> Iterator[pd.DataFrame]:
    """The blocks; with each, progress is reported, and how fast it goes.

    Args:
        fraction_of: the fraction of the work that so many rows are.

    Raises:
        CancelledError: the attempt was asked to stop.
    """
    done, begun_at = 0, time.monotonic()
    for block in blocks:
        done += len(block)
        seconds = max(time.monotonic() - begun_at, 1e-9)
        fraction = fraction_of(done)
        left = seconds * (1.0 - fraction) / fraction if fraction else None
        attempt.report(phase, fraction, rows_per_second=done / seconds, seconds_left=left)
        yield block


def fraction_of_rows(rows: int) -> Callable[[int], float]:
    """The fraction of the work that some rows are, of so many in all."""
    return lambda done: done / rows if rows else 1.0


def fraction_of_table(
    table: TableReader, among: range | None, lines_per_row: int = 1
) -> Callable[[int], float]:
    """The fraction of the work that some lines are; of a row of the table so many are made.

    Args:
        among: the rows that are taken; None is all, whose number is known at the file's end only.
    """
    if among is not None:
        return fraction_of_rows(len(among) * lines_per_row)
    return lambda done: table.fraction * done / (table.rows * lines_per_row)


def publish(
    attempt: Attempt, name: str, file: Path, *, media_type: str, rows: int, summary: dict[str, Any]
) -> Produced:
    """The job's result, its bytes in the store.

    Raises:
        LeaseLostError: the attempt no longer owns the job.
    """
    attempt.report("finishing", 1.0)
    published = attempt.publish(name, file)
    return Produced(
        object_key=published.key,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        media_type=media_type,
        rows=rows,
        summary=summary,
    )
