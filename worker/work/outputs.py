"""Reports progress while the result of a job is written block by block, and publishes the
result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
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
    """Yields the blocks unchanged, and reports progress and speed after each.

    Args:
        phase: Name of the phase in the job's progress.
        fraction_of: Function that maps the number of finished rows to the finished fraction of the
            work.

    Raises:
        CancelledError: The attempt was asked to stop.
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
    """Returns a function that maps a number of finished rows to their fraction of `rows`."""
    return lambda done: done / rows if rows else 1.0


def fraction_of_table(
    table: TableReader, among: range | None, lines_per_row: int = 1
) -> Callable[[int], float]:
    """Returns a function that maps a number of written lines to the finished fraction of the work.

    Args:
        table: Table that is read.
        among: Row numbers of the rows that are used; None for all rows, whose number is estimated
            from the part of the file that has been read.
        lines_per_row: Number of written lines for each row of the table.
    """
    if among is not None:
        return fraction_of_rows(len(among) * lines_per_row)
    return lambda done: table.fraction * done / (table.rows * lines_per_row)


def write_file(attempt: Attempt, name: str, chunks: Iterable[bytes]) -> Path:
    """Writes a file in the attempt's folder and returns its path."""
    file = attempt.folder / name
    with file.open("wb") as target:
        target.writelines(chunks)
    return file


def publish(
    attempt: Attempt, file: Path, *, media_type: str, rows: int, summary: dict[str, Any]
) -> Produced:
    """Stores a file as the job's result, under its own name, and returns the outcome of the job.

    Args:
        rows: Number of rows in the file.
        summary: Summary of the result, as JSON.

    Raises:
        LeaseLostError: The attempt no longer owns the job.
    """
    attempt.report("finishing", 1.0)
    published = attempt.publish(file)
    return Produced(
        object_key=published.key,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        media_type=media_type,
        rows=rows,
        summary=summary,
    )


def publish_report(
    attempt: Attempt, document: dict[str, Any], *, rows: int, summary: dict[str, Any]
) -> Produced:
    """Stores a report as the job's result, a JSON file, and returns the outcome of the job.

    Args:
        document: The report, as JSON.
        rows: Number of rows to record with the result.
        summary: Summary of the result, as JSON.

    Raises:
        LeaseLostError: The attempt no longer owns the job.
    """
    content = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    file = write_file(attempt, "report.json", [content])
    return publish(attempt, file, media_type="application/json", rows=rows, summary=summary)
