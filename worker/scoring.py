"""The scoring job: a table becomes a table of log-likelihood bounds."""

from __future__ import annotations

from catalog import Produced
from catalog.specs import ScoreSpec
from worker.attempt import Attempt
from worker.outputs import publish, reporting
from worker.tables import read_table_of


def score(attempt: Attempt) -> Produced:
    """Score the rows and publish the scores.

    Raises:
        InputError: the table does not fit the model.
        CancelledError: the attempt was asked to stop.
        LeaseLostError: the attempt no longer owns the job.
    """
    from gcvae.score_options import ScoreOptions
    from gcvae.score_stream import MEDIA_TYPES, ScoreTotals, stream_scores

    spec = ScoreSpec.from_json(attempt.job.spec)
    attempt.tell("preparing", 0.0)
    attempt.set_up_threads()
    synthesizer = attempt.load_synthesizer()
    frame = read_table_of(attempt, spec)
    options = ScoreOptions(
        spec.draws, spec.seed, spec.jitters, spec.measure, spec.score_missingness
    )
    scorer = synthesizer.scorer
    blocks = scorer.blocks(frame, options)
    heading = {"model_id": attempt.job.model_id} | options.heading(scorer.order())
    totals = ScoreTotals()
    file = attempt.folder / "scores"
    with file.open("wb") as target:
        told = reporting(attempt, "scoring", blocks, len(frame))
        target.writelines(stream_scores(told, spec.format, heading, totals))
    return publish(
        attempt,
        f"scores.{spec.format}",
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=totals.rows,
        summary=totals.to_json(),
    )
