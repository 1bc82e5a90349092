"""Encoding job: computes the latent vector of each row of a table."""

from __future__ import annotations

from catalog import Produced
from catalog.job_kinds import EncodeSpec
from worker.work.attempt import Attempt
from worker.work.outputs import fraction_of_table, publish, reporting, write_file
from worker.work.shards import Shard
from worker.work.tables import table_of


def encode(attempt: Attempt) -> Produced:
    """Computes and publishes the latent vector of each row of the job, or of its shard."""
    from gcvae.latent.encoding_stream import MEDIA_TYPES, stream_encodings

    shard = Shard.of(attempt, EncodeSpec)
    spec, among = shard.spec, shard.rows
    synthesizer = attempt.load_synthesizer()
    table = table_of(attempt, spec)
    fraction_of = fraction_of_table(table, among)
    blocks = reporting(attempt, "encoding", synthesizer.encode_blocks(table, among), fraction_of)
    heading = {"model_id": attempt.job.model_id}
    chunks = stream_encodings(blocks, spec.format, heading, shard.of_file)
    return publish(
        attempt,
        write_file(attempt, f"encodings.{spec.format}", chunks),
        media_type=MEDIA_TYPES[spec.format],
        rows=table.rows if among is None else len(among),
        summary={},
    )
