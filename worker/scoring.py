"""The scoring job: a table becomes a table of log-likelihood bounds."""

from __future__ import annotations

from dataclasses import replace

from catalog import Produced
from catalog.specs import ScoreSpec
from gcvae.pieces import WHOLE
from worker.attempt import Attempt
from worker.outputs import publish, reporting, share_of_file, share_of_rows
from worker.shares import Share
from worker.tables import table_of


def score(attempt: Attempt) -> Produced:
    """Score the rows, or those of the shard, and publish the scores.

    Raises:
        InputError: the table does not fit the model.
        CancelledError: the attempt was asked to stop.
        LeaseLostError: the attempt no longer owns the job.
    """
    from gcvae.score_options import ScoreOptions
    from gcvae.score_stream import MEDIA_TYPES, ScoreTotals, stream_scores

    share = Share.of(attempt)
    spec = ScoreSpec.from_json(share.asked)
    attempt.tell("preparing", 0.0)
    attempt.set_up_threads()
    synthesizer = attempt.load_synthesizer()
    table = table_of(attempt, spec)
    among = None if share.shard is None else share.shard.rows
    options = ScoreOptions(
        spec.draws, spec.seed, spec.jitters, spec.measure, spec.score_missingness
    )
    scorer = synthesizer.scorer
    blocks = scorer.blocks(table, options, among)
    heading = {"model_id": attempt.job.model_id} | options.heading(scorer.order())
    totals = ScoreTotals()
    # The end holds the totals of all: where there are shards it is written when they are joined.
    piece = WHOLE if share.shard is None else replace(share.piece, is_last=False)
    file = attempt.folder / "scores"
    with file.open("wb") as target:
        share_of = share_of_file(table) if among is None else share_of_rows(len(among))
        told = reporting(attempt, "scoring", blocks, share_of)
        target.writelines(stream_scores(told, spec.format, heading, totals, piece))
    return publish(
        attempt,
        f"scores.{spec.format}",
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=totals.rows,
        summary=totals.to_json() if share.shard is None else totals.state(),
    )
