"""Scoring job: computes a lower bound on the log-likelihood of each row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catalog import Produced
from catalog.job_kinds import ScoreSpec
from gcvae.files.shards import WHOLE
from worker.work.attempt import Attempt
from worker.work.databases import score_database
from worker.work.joining import Summary, join_shards
from worker.work.outputs import fraction_of_table, publish, reporting, write_file
from worker.work.shards import Shard
from worker.work.tables import table_of


def score(attempt: Attempt) -> Produced:
    """Scores the job's rows, or those of its shard, and publishes the scores as a table."""
    from gcvae.scoring.score_options import ScoreOptions
    from gcvae.scoring.score_stream import MEDIA_TYPES, new_totals, stream_scores

    shard = Shard.of(attempt, ScoreSpec)
    spec, among = shard.spec, shard.rows
    if spec.table_format == "zip":
        return score_database(attempt, spec)
    synthesizer = attempt.load_synthesizer()
    table = table_of(attempt, spec)
    options = ScoreOptions(
        spec.draws, spec.seed, spec.measure, spec.score_missingness, spec.tolerance
    )
    scorer = synthesizer.scorer
    blocks = scorer.blocks(table, options, among)
    heading = {"model_id": attempt.job.model_id} | scorer.heading(options)
    totals = new_totals(scorer.scoring)
    # The end of the file contains the totals of all rows; for shards, `join` writes it.
    of_file = WHOLE if among is None else replace(shard.of_file, is_last=False)
    blocks = reporting(attempt, "scoring", blocks, fraction_of_table(table, among))
    chunks = stream_scores(blocks, spec.format, heading, totals, of_file)
    file = write_file(attempt, f"scores.{spec.format}", chunks)
    return publish(
        attempt,
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=totals.rows,
        summary=totals.to_json() if among is None else totals.state(),
    )


def join(attempt: Attempt) -> Produced:
    """Joins the scores of a job whose shards have all succeeded, with totals over all rows.

    Raises:
        LeaseLostError: The attempt no longer owns the job, or waits for lost shards to be made
            again.
    """
    return join_shards(attempt, _totals)


def _totals(attempt: Attempt, shards: Sequence[Produced]) -> Summary:
    from gcvae.scoring.score_stream import joined_totals, scores_end

    totals = joined_totals([shard.summary for shard in shards])
    return totals.to_json(), scores_end(attempt.job.spec["format"], totals)
