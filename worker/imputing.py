"""The imputation job: a table with blanks becomes a table without."""

from __future__ import annotations

from catalog import Produced
from catalog.specs import ImputeSpec
from worker.attempt import Attempt
from worker.outputs import publish, reporting, share_of_file, share_of_rows
from worker.shares import Share
from worker.tables import table_of


def impute(attempt: Attempt) -> Produced:
    """Fill the blanks of the rows, or of those of the shard, and publish them.

    Raises:
        InputError: the table does not fit the model.
        CancelledError: the attempt was asked to stop.
        LeaseLostError: the attempt no longer owns the job.
    """
    from gcvae.imputation_stream import stream_completed
    from gcvae.table_stream import MEDIA_TYPES

    share = Share.of(attempt)
    spec = ImputeSpec.from_json(share.asked)
    attempt.tell("preparing", 0.0)
    attempt.set_up_threads()
    synthesizer = attempt.load_synthesizer()
    table = table_of(attempt, spec)
    among = None if share.shard is None else share.shard.rows
    completed = synthesizer.impute_blocks(table, spec.draws, spec.seed, among)
    if among is None:
        share_of = share_of_file(table, spec.draws)
    else:
        share_of = share_of_rows(len(among) * spec.draws)
    blocks = reporting(attempt, "imputing", completed, share_of)
    file = attempt.folder / "completed"
    with file.open("wb") as target:
        target.writelines(stream_completed(blocks, synthesizer.schema, spec.format, share.piece))
    return publish(
        attempt,
        f"completed.{spec.format}",
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=(table.rows if among is None else len(among)) * spec.draws,
        summary={"draws": spec.draws, "seed": spec.seed},
    )
