"""Ends jobs: writes the outcome and all its consequences in one transaction."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.counts import Counted, count, observe
from catalog.database.tables import JobRow, ModelRow, ResultRow
from catalog.ids import new_id
from catalog.job_kinds import JobKind, TrainSpec
from catalog.jobs.privacy_ledger import note_unbounded, release
from catalog.jobs.shards import count_shard, let_join, shard_prefixes
from catalog.object_keys import checkpoint_prefix, input_prefix, output_prefix, result_prefix
from catalog.orphans import add_orphans
from catalog.records import (
    Cancelled,
    Document,
    Failed,
    JobStatus,
    ModelStatus,
    Outcome,
    Produced,
    Scoring,
    Trained,
)
from catalog.webhooks.events import announce_end

_UNASKED = -100
"""Priority of a job that the service itself queued: below that of all other jobs."""


def close_job(session: Session, row: JobRow, outcome: Outcome) -> None:
    """Ends a job or shard, and writes its outcome.

    A training also updates the record of its model. Any other job that has succeeded also creates
    the record of its result. Stored bytes that are no longer needed are marked for deletion.

    When the last shard of a job ends, the job continues with joining the shards' results, or ends
    too. For a shard, the caller must have locked its job (`catalog.jobs.shards.lock_parent`).

    All changes are in the caller's transaction, so a job never appears as succeeded while its model
    is not ready or its progress is below 100 %.
    """
    row.status = _final_status(outcome)
    row.error = outcome.to_json() if isinstance(outcome, Failed) else None
    if row.status is JobStatus.SUCCEEDED:
        row.progress = row.progress | {"fraction": 1.0, "seconds_left": 0.0}
    row.finished_at = database_clock()
    row.lease_owner = row.lease_expires_at = row.next_dispatch_at = None
    row.checkpoint_key = row.checkpoint_sha256 = None
    row.version += 1
    add_orphans(session, _prefixes_over(session, row, outcome))
    if row.parent_id is not None:
        close_where_shards_are(session, count_shard(session, row, outcome))
        return
    if row.kind == JobKind.TRAIN:
        release(session, row.id)
        _close_model(session, row, outcome)
    elif isinstance(outcome, Produced):
        if row.kind.spec.is_of_model:
            _delete_earlier(session, row)
        session.add(
            ResultRow(
                id=row.result_id,
                workspace=row.workspace,
                kind=row.kind,
                model_id=row.model_id,
                job_id=row.id,
                **outcome.to_json(),
            )
        )
    _count_outcome(session, row, outcome)
    announce_end(session, row)


def close_where_shards_are(session: Session, job: JobRow) -> None:
    """Continues or ends a job whose shards have all ended; otherwise does nothing.

    If all shards have succeeded, a worker may join their results. If a shard has failed, or the job
    is to be cancelled, the job ends.
    """
    if job.open_shards:
        return
    if job.error is not None:
        close_job(session, job, Failed(**job.error))
    elif job.cancel_requested:
        close_job(session, job, Cancelled())
    else:
        let_join(job)


def make_ready(row: ModelRow, trained: Trained) -> None:
    """Marks a model as ready and copies the outcome of training into its database row.

    If the model's file contains a stricter limit on scores, that limit applies to the model.
    """
    row.status = ModelStatus.READY
    row.schema = trained.schema
    row.record = trained.record
    row.artifact_key = trained.artifact_key
    row.artifact_sha256 = trained.artifact_sha256
    row.artifact_bytes = trained.artifact_bytes
    if row.scoring.is_looser_than(Scoring(trained.scoring)):
        row.scoring = Scoring(trained.scoring)


def _count_outcome(session: Session, row: JobRow, outcome: Outcome) -> None:
    labels = {"kind": row.kind.value, "outcome": row.status.value}
    count(session, Counted.FINISHED, 1.0, **labels)
    if isinstance(outcome, Produced):
        count(session, Counted.ROWS, outcome.rows, kind=row.kind)
    session.flush()  # the database computes `finished_at`
    if row.started_at is not None and row.finished_at is not None:
        seconds = (row.finished_at - row.started_at).total_seconds()
        observe(session, Counted.DURATION, seconds, **labels)


def _final_status(outcome: Outcome) -> JobStatus:
    if isinstance(outcome, Failed):
        return JobStatus.FAILED
    return JobStatus.CANCELLED if isinstance(outcome, Cancelled) else JobStatus.SUCCEEDED


def _close_model(session: Session, row: JobRow, outcome: Outcome) -> None:
    model = session.get(ModelRow, row.model_id, with_for_update=True)
    assert model is not None, "a model cannot be deleted while its job is active"
    if isinstance(outcome, Trained):
        make_ready(model, outcome)
        if not TrainSpec.from_json(row.spec).is_private:
            note_unbounded(session, row)
        if outcome.next_job is not None:
            _queue_next(session, row, outcome.next_job)
    else:
        model.status = ModelStatus(_final_status(outcome).value)


def _queue_next(session: Session, row: JobRow, next_job: Document) -> None:
    """Queues a follow-up job on the model that this job has trained."""
    kind = next(kind for kind in JobKind if kind == next_job["kind"])
    session.add(
        JobRow(
            id=new_id("job"),
            workspace=row.workspace,
            kind=kind,
            spec=next_job["spec"],
            model_id=row.model_id,
            dataset_id=row.dataset_id,
            result_id=new_id(kind.id_prefix),
            queue=kind.queue,
            priority=_UNASKED,
            estimate=next_job["estimate"],
            next_dispatch_at=database_clock(),
            request_id=row.request_id,
            traceparent=row.traceparent,
        )
    )
    count(session, Counted.CREATED, kind=kind)


def _delete_earlier(session: Session, row: JobRow) -> None:
    earlier = select(ResultRow).where(
        ResultRow.model_id == row.model_id, ResultRow.kind == row.kind
    )
    for result in session.scalars(earlier.with_for_update()).all():
        session.delete(result)
        add_orphans(session, [result_prefix(result.id)])


def _prefixes_over(session: Session, row: JobRow, outcome: Outcome) -> list[str]:
    """Returns the store prefixes whose bytes are not needed after the job."""
    attempts = range(1, row.attempt + 1)
    prefixes = [checkpoint_prefix(row.id, attempt) for attempt in attempts]
    outputs = [output_prefix(row, attempt) for attempt in attempts]
    if isinstance(outcome, (Trained, Produced)):
        prefixes.append(input_prefix(row.id))
        outputs.pop()  # the output of the successful attempt, which is the last one
    if row.n_shards and not (isinstance(outcome, Produced) and outcome.manifest_sha256):
        outputs += shard_prefixes(session, row)
    return prefixes + outputs
