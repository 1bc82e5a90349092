"""The imputation job: a table with blanks becomes a table without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog import Produced
from catalog.specs import ImputeSpec
from worker.attempt import Attempt
from worker.tables import read_stored_table

if TYPE_CHECKING:
    import pandas as pd


def impute(attempt: Attempt) -> Produced:
    """Fill the blanks and publish the table.

    Raises:
        InputError: the table does not fit the model.
        CancelledError: the attempt was asked to stop.
        LeaseLostError: the attempt no longer owns the job.
    """
    from gcvae.imputation_stream import stream_completed
    from gcvae.table_stream import MEDIA_TYPES

    spec = ImputeSpec.from_json(attempt.job.spec)
    attempt.tell("preparing", 0.0)
    attempt.set_up_threads()
    synthesizer = attempt.load_synthesizer()
    frame = read_stored_table(attempt, spec.table_key, spec.table_sha256, spec.table_format)
    rows = len(frame) * spec.draws
    blocks = _told(attempt, synthesizer.impute_blocks(frame, spec.draws, spec.seed), rows)
    file = attempt.folder / "completed"
    with file.open("wb") as target:
        target.writelines(stream_completed(blocks, synthesizer.schema, spec.format))
    attempt.tell("finishing", 1.0)
    published = attempt.publish(f"completed.{spec.format}", file)
    return Produced(
        object_key=published.key,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        media_type=MEDIA_TYPES[spec.format],
        rows=rows,
        summary={"draws": spec.draws, "seed": spec.seed},
    )


def _told(attempt: Attempt, blocks: Iterator[pd.DataFrame], rows: int) -> Iterator[pd.DataFrame]:
    done = 0
    for block in blocks:
        done += len(block)
        attempt.tell("imputing", done / rows)
        yield block
