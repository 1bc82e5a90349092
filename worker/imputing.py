"""The imputation job: a table with blanks becomes a table without."""

from __future__ import annotations

from catalog import Produced
from catalog.specs import ImputeSpec
from worker.attempt import Attempt
from worker.outputs import publish, reporting, share_of_file
from worker.tables import table_of


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
    table = table_of(attempt, spec)
    completed = synthesizer.impute_blocks(table, spec.draws, spec.seed)
    blocks = reporting(attempt, "imputing", completed, share_of_file(table, spec.draws))
    file = attempt.folder / "completed"
    with file.open("wb") as target:
        target.writelines(stream_completed(blocks, synthesizer.schema, spec.format))
    return publish(
        attempt,
        f"completed.{spec.format}",
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=table.rows * spec.draws,
        summary={"draws": spec.draws, "seed": spec.seed},
    )
