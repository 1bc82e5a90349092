"""The scoring job: a table becomes a table of log-likelihood bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog import Produced
from catalog.specs import ScoreSpec
from worker.attempt import Attempt
from worker.tables import read_stored_table

if TYPE_CHECKING:
    import pandas as pd


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
    frame = read_stored_table(attempt, spec.table_key, spec.table_sha256, spec.table_format)
    options = ScoreOptions(
        spec.draws, spec.seed, spec.jitters, spec.measure, spec.score_missingness
    )
    scorer = synthesizer.scorer
    blocks = scorer.blocks(frame, options)
    heading = {"model_id": attempt.job.model_id} | options.heading(scorer.order())
    totals = ScoreTotals()
    file = attempt.folder / "scores"
    with file.open("wb") as target:
        told = _told(attempt, blocks, len(frame))
        target.writelines(stream_scores(told, spec.format, heading, totals))
    attempt.tell("finishing", 1.0)
    published = attempt.publish(f"scores.{spec.format}", file)
    return Produced(
        object_key=published.key,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        media_type=MEDIA_TYPES[spec.format],
        rows=totals.rows,
        summary=totals.to_json(),
    )


def _told(attempt: Attempt, blocks: Iterator[pd.DataFrame], rows: int) -> Iterator[pd.DataFrame]:
    scored = 0
    for block in blocks:
        scored += len(block)
        attempt.tell("scoring", scored / rows)
        yield block
