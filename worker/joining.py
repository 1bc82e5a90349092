"""Joining: the parts that the shards of a job made become its one result.

Tables of text stay in parts, which a manifest lists: joined they are the file, byte for byte.
Parquet keeps its index at its end, so that parts can not simply follow each other; users want one
file that every reader opens, and get one, with the row groups of all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import structlog

from catalog import JobKind, Produced
from catalog.errors import LeaseLostError
from models_store import Published
from models_store.errors import CorruptedError, MissingObjectError, PartsLostError
from models_store.manifests import Manifest
from worker.attempt import Attempt
from worker.outputs import publish

_log = structlog.get_logger(__name__)


def join(attempt: Attempt) -> Produced:
    """Publish the result of a job whose shards are done.

    Raises:
        LeaseLostError: the attempt no longer owns the job; or parts of it are lost, and the job
            waits until they are made again.
    """
    attempt.tell("joining", 1.0)
    shards = attempt.catalog.jobs.shards(attempt.job.id)
    parts = [Produced(**shard.part) for shard in shards if shard.part is not None]
    assert len(parts) == attempt.job.n_shards, "a job goes on when every shard is done"
    try:
        if attempt.job.spec["format"] == "parquet":
            return _join_row_groups(attempt, parts)
        return _list_parts(attempt, parts)
    except PartsLostError as error:
        _log.error("parts are lost and made again", shards=error.numbers)
        attempt.catalog.leases.redraw(attempt.claim, error.numbers)
        raise LeaseLostError(attempt.job.id, attempt.claim.attempt) from error


def _list_parts(attempt: Attempt, parts: Sequence[Produced]) -> Produced:
    """The result as a manifest of its parts."""
    summary, end = _summary(attempt, parts)
    pieces = [Published(part.object_key, part.size_bytes, part.sha256) for part in parts]
    if end:
        file = attempt.folder / "end"
        file.write_bytes(end)
        pieces.append(attempt.publish("end", file))
    whole = Manifest.of_parts(attempt.store, pieces)
    file = attempt.folder / "manifest"
    file.write_bytes(whole.to_bytes())
    published = attempt.publish("manifest.json", file)
    return Produced(
        object_key=published.key,
        sha256=whole.sha256,
        size_bytes=whole.size_bytes,
        media_type=parts[0].media_type,
        rows=sum(part.rows for part in parts),
        summary=summary,
        manifest_sha256=published.sha256,
    )


def _join_row_groups(attempt: Attempt, parts: Sequence[Produced]) -> Produced:
    """The result as one Parquet file."""
    from gcvae.table_stream import join_parquet

    files = [attempt.folder / f"part-{number}" for number in range(len(parts))]
    _fetch(attempt, parts, files)
    file = attempt.folder / "rows"
    with file.open("wb") as target:
        target.writelines(join_parquet(_each_once(files)))
    summary, _ = _summary(attempt, parts)
    rows = sum(part.rows for part in parts)
    media_type = parts[0].media_type
    return publish(attempt, "rows.parquet", file, media_type=media_type, rows=rows, summary=summary)


def _fetch(attempt: Attempt, parts: Sequence[Produced], files: Sequence[Path]) -> None:
    lost = []
    for number, (part, file) in enumerate(zip(parts, files, strict=True)):
        try:
            attempt.store.fetch(part.object_key, part.sha256, file)
        except (MissingObjectError, CorruptedError):
            lost.append(number)
    if lost:
        raise PartsLostError(lost)


def _each_once(files: Sequence[Path]) -> Iterator[Path]:
    """The files; each is removed when the next is asked for."""
    for file in files:
        yield file
        file.unlink()


def _summary(attempt: Attempt, parts: Sequence[Produced]) -> tuple[dict[str, Any], bytes]:
    """What is told of the whole, and what stands behind the last part."""
    if attempt.job.kind is not JobKind.SCORE:
        return parts[0].summary, b""
    from gcvae.score_stream import ScoreTotals, scores_end

    totals = ScoreTotals()
    for part in parts:
        totals.add_all(ScoreTotals.of_state(part.summary))
    return totals.to_json(), scores_end(attempt.job.spec["format"], totals)
