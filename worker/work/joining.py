"""Joins the results of a job's shards (ranges of rows processed by several workers) to one table.

Text files stay in shards, listed by a manifest, because their concatenation is the complete file. A
Parquet file has an index at its end, so shards cannot be concatenated; they are rewritten as one
file with the row groups of all shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import structlog

from catalog import Document, Produced
from catalog.errors import LeaseLostError
from models_store import Published
from models_store.errors import CorruptedError, MissingObjectError, ShardsLostError
from models_store.manifests import Manifest
from worker.work.attempt import Attempt
from worker.work.outputs import publish, write_file

_log = structlog.get_logger(__name__)


Summary = tuple[Document, bytes]
"""Summary of a joined result, and bytes to append after its last shard."""


def summary_of_first(_attempt: Attempt, shards: Sequence[Produced]) -> Summary:
    """Returns (summary of the joined result, no bytes to append to it).

    The summary is that of the first shard: for most kinds of jobs, all shards have the same one.
    """
    return shards[0].summary, b""


def join_shards(
    attempt: Attempt,
    summarize: Callable[[Attempt, Sequence[Produced]], Summary] = summary_of_first,
) -> Produced:
    """Joins the results of a job whose shards have all succeeded, and publishes the joined table.

    Args:
        summarize: Function that returns (summary of the joined result, bytes to append to it).

    Raises:
        LeaseLostError: The attempt no longer owns the job; or results of shards were lost, and the
            job waits until they are made again.
    """
    attempt.report("joining", 0.0)
    jobs = attempt.catalog.all_jobs.shards(attempt.job.id)
    shards = [Produced(**job.part) for job in jobs if job.part is not None]
    assert len(shards) == attempt.job.n_shards, "a job goes on when every shard is done"
    summary, end = summarize(attempt, shards)
    try:
        if attempt.job.spec["format"] == "parquet":
            return _join_row_groups(attempt, shards, summary)
        return _list_shards(attempt, shards, summary, end)
    except ShardsLostError as error:
        _log.error("shards are lost and made again", shards=error.numbers)
        attempt.catalog.leases.requeue_lost_shards(attempt.claim, error.numbers)
        raise LeaseLostError(attempt.job.id, attempt.claim.attempt) from error


def _list_shards(
    attempt: Attempt, shards: Sequence[Produced], summary: Document, end: bytes
) -> Produced:
    """Publishes a manifest that lists the shards' files, and returns the joined result."""
    parts = [Published(shard.object_key, shard.size_bytes, shard.sha256) for shard in shards]
    if end:
        parts.append(attempt.publish(write_file(attempt, "end", [end])))
    whole = Manifest.of_shards(attempt.store, parts)
    published = attempt.publish(write_file(attempt, "manifest.json", [whole.to_bytes()]))
    return Produced(
        object_key=published.key,
        sha256=whole.sha256,
        size_bytes=whole.size_bytes,
        media_type=shards[0].media_type,
        rows=sum(shard.rows for shard in shards),
        summary=summary,
        manifest_sha256=published.sha256,
    )


def _join_row_groups(attempt: Attempt, shards: Sequence[Produced], summary: Document) -> Produced:
    from gcvae.files.table_stream import join_parquet

    files = [attempt.folder / f"shard-{number}" for number in range(len(shards))]
    _fetch(attempt, shards, files)
    file = write_file(attempt, "rows.parquet", join_parquet(_each_once(files)))
    rows = sum(shard.rows for shard in shards)
    return publish(attempt, file, media_type=shards[0].media_type, rows=rows, summary=summary)


def _fetch(attempt: Attempt, shards: Sequence[Produced], files: Sequence[Path]) -> None:
    lost = []
    for number, (shard, file) in enumerate(zip(shards, files, strict=True)):
        try:
            attempt.store.fetch(shard.object_key, shard.sha256, file)
        except (MissingObjectError, CorruptedError):
            lost.append(number)
    if lost:
        raise ShardsLostError(lost)


def _each_once(files: Sequence[Path]) -> Iterator[Path]:
    """Yields the files, and deletes each one when the next is requested, to free disk space."""
    for file in files:
        yield file
        file.unlink()
