"""Sampling job: generates a table of synthetic rows."""

from __future__ import annotations

from typing import Any

from catalog import Produced
from catalog.job_kinds import SampleSpec
from worker.work.attempt import Attempt
from worker.work.databases import sample_database
from worker.work.outputs import fraction_of_rows, publish, reporting, write_file
from worker.work.shards import Shard


def sample(attempt: Attempt) -> Produced:
    """Generates the job's rows, or those of its shard, and publishes them.

    Raises:
        InputError: The model cannot generate rows that satisfy the conditions.
    """
    from gcvae.files.row_documents import numbered, pointing
    from gcvae.files.table_stream import MEDIA_TYPES, stream_table
    from gcvae.files.tables import read_table

    shard = Shard.of(attempt, SampleSpec)
    spec = shard.spec
    if spec.rows is None:
        return sample_database(attempt, spec)
    among = range(spec.rows) if shard.rows is None else shard.rows
    synthesizer = attempt.load_synthesizer()
    summary: dict[str, Any] = {"seed": spec.seed}
    if shard.is_first and (notes := synthesizer.notes(spec.rows)):
        summary["notes"] = notes
    blocks = synthesizer.sample_blocks(spec.rows, seed=spec.seed, among=among)
    with pointing("/given_rows"):
        if spec.is_conditional:
            known = None if spec.given_rows is None else read_table(spec.given_rows.encode())
            sampler = synthesizer.sampler(
                spec.seed,
                given=spec.given,
                distribution=spec.distribution,
                given_rows=None if known is None else numbered(known),
            )
            if shard.is_first:
                summary |= sampler.summary(spec.rows)
            blocks = sampler.blocks(spec.rows, among)
        blocks = reporting(attempt, "sampling", blocks, fraction_of_rows(len(among)))
        chunks = stream_table(
            *(blocks, synthesizer.schema, spec.format, shard.of_file),
            escape_formulas=spec.escape_formulas,
        )
        file = write_file(attempt, f"rows.{spec.format}", chunks)
    return publish(
        attempt,
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=len(among),
        summary=summary,
    )
