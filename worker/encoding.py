"""The encoding job: a table becomes the places of its rows in the latent space."""

from __future__ import annotations

from catalog import Produced
from catalog.specs import EncodeSpec
from worker.attempt import Attempt
from worker.outputs import publish, reporting, share_of_file, share_of_rows
from worker.shares import Share
from worker.tables import table_of


def encode(attempt: Attempt) -> Produced:
    """Encode the rows, or those of the shard, and publish the encodings.

    Raises:
        InputError: the table does not fit the model.
        CancelledError: the attempt was asked to stop.
        LeaseLostError: the attempt no longer owns the job.
    """
    from gcvae.encoding_stream import MEDIA_TYPES, stream_encodings

    share = Share.of(attempt)
    spec = EncodeSpec.from_json(share.asked)
    attempt.tell("preparing", 0.0)
    attempt.set_up_threads()
    synthesizer = attempt.load_synthesizer()
    table = table_of(attempt, spec)
    among = None if share.shard is None else share.shard.rows
    share_of = share_of_file(table) if among is None else share_of_rows(len(among))
    blocks = reporting(attempt, "encoding", synthesizer.encode_blocks(table, among), share_of)
    file = attempt.folder / "encodings"
    with file.open("wb") as target:
        heading = {"model_id": attempt.job.model_id}
        target.writelines(stream_encodings(blocks, spec.format, heading, share.piece))
    return publish(
        attempt,
        f"encodings.{spec.format}",
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=table.rows if among is None else len(among),
        summary={},
    )
