"""Imputation job: fills the missing cells of a table."""

from __future__ import annotations

from catalog import Produced
from catalog.job_kinds import ImputeSpec
from worker.work.attempt import Attempt
from worker.work.databases import impute_database
from worker.work.outputs import fraction_of_table, publish, reporting, write_file
from worker.work.shards import Shard
from worker.work.tables import table_of


def impute(attempt: Attempt) -> Produced:
    """Fills the missing cells of the rows of the job, or of its shard, and publishes these rows."""
    from gcvae.files.table_stream import MEDIA_TYPES
    from gcvae.sampling.imputation_stream import stream_completed

    shard = Shard.of(attempt, ImputeSpec)
    spec, among = shard.spec, shard.rows
    if spec.table_format == "zip":
        return impute_database(attempt, spec)
    synthesizer = attempt.load_synthesizer()
    table = table_of(attempt, spec)
    completed = synthesizer.impute_blocks(
        table, spec.draws, spec.seed, among, columns=spec.columns, keep_missing=spec.keep_missing
    )
    fraction_of = fraction_of_table(table, among, spec.draws)
    blocks = reporting(attempt, "imputing", completed, fraction_of)
    chunks = stream_completed(blocks, synthesizer.schema, spec.format, shard.of_file)
    file = write_file(attempt, f"completed.{spec.format}", chunks)
    return publish(
        attempt,
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=(table.rows if among is None else len(among)) * spec.draws,
        summary={"draws": spec.draws, "seed": spec.seed},
    )
