"""The sampling job: a model becomes a table of synthetic rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog import Produced
from catalog.specs import SampleSpec
from worker.attempt import Attempt

if TYPE_CHECKING:
    import pandas as pd


def sample(attempt: Attempt) -> Produced:
    """Draw the rows and publish them.

    Raises:
        InputError: what was asked can not be drawn.
        CancelledError: the attempt was asked to stop.
        LeaseLostError: the attempt no longer owns the job.
    """
    from gcvae.table_stream import MEDIA_TYPES, stream_table

    spec = SampleSpec.from_json(attempt.job.spec)
    attempt.tell("preparing", 0.0)
    attempt.set_up_threads()
    synthesizer = attempt.load_synthesizer()
    blocks = _told(attempt, synthesizer.sample_blocks(spec.rows, seed=spec.seed), spec.rows)
    file = attempt.folder / "rows"
    with file.open("wb") as target:
        target.writelines(stream_table(blocks, synthesizer.schema, spec.format))
    attempt.tell("finishing", 1.0)
    published = attempt.publish(f"rows.{spec.format}", file)
    return Produced(
        object_key=published.key,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        media_type=MEDIA_TYPES[spec.format],
        rows=spec.rows,
        summary={"seed": spec.seed},
    )


def _told(attempt: Attempt, blocks: Iterator[pd.DataFrame], rows: int) -> Iterator[pd.DataFrame]:
    drawn = 0
    for block in blocks:
        drawn += len(block)
        attempt.tell("sampling", drawn / rows if rows else 1.0)
        yield block
