"""Jobs from the users' side: queue, poll, cancel and retry. Workers use `leases.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.counts import Counted, count
from catalog.database.engine import Database
from catalog.database.tables import DatasetRow, JobRow, ModelRow
from catalog.errors import ConflictError, ModelNotReadyError, NotFoundError
from catalog.idempotency import record_created_id
from catalog.ids import new_id
from catalog.job_kinds import JobKind, TrainSpec
from catalog.jobs.finishing import close_job, close_where_shards_are
from catalog.jobs.privacy_ledger import PrivacyRequest, reserve
from catalog.jobs.shards import add_shards, queue_again, reset_shards, stop_shards
from catalog.object_keys import input_prefix
from catalog.orphans import drop_reservation
from catalog.pages import ListedRecords
from catalog.records import (
    Cancelled,
    Document,
    Job,
    JobStatus,
    Model,
    ModelStatus,
    Scoring,
)
from catalog.rows import copy_row, find_row, write_row


@dataclass(frozen=True)
class RequestContext:
    """Identity of an HTTP request in logs and traces; both members are None outside of requests.

    Attributes:
        request_id: The X-Request-ID of the response.
        traceparent: The request's trace span (W3C Trace Context); None if it is not traced.
    """

    request_id: str | None = None
    traceparent: str | None = None


_OUTSIDE = RequestContext()
_context: ContextVar[RequestContext] = ContextVar("request context", default=_OUTSIDE)


@contextmanager
def in_request(context: RequestContext) -> Iterator[None]:
    """Context manager: jobs that are queued within the block refer to this HTTP request."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


class Jobs(ListedRecords[JobRow, Job]):
    """Creates, reads, cancels and retries the jobs of one workspace.

    A job is stored in the database, so it is not lost if the message broker fails. `get` also
    returns shards (parts of jobs that single workers process), which are not listed.
    """

    _row, _record, _prefix = JobRow, Job, "job"

    def __init__(self, database: Database, workspace: str, resend_seconds: float) -> None:
        super().__init__(database, workspace)
        self._resend_seconds = resend_seconds

    def enqueue_training(
        self,
        *,
        dataset_id: str,
        name: str,
        training: Document,
        priority: int = 0,
        estimate: Document | None = None,
        scoring: Scoring = Scoring.FULL,
        privacy: PrivacyRequest | None = None,
    ) -> tuple[Model, Job]:
        """Creates the records of a model and of its queued training job, and returns both.

        The caller then notifies workers.

        Args:
            training: Preset, seed, device and settings of the training.
            priority: Priority among the workspace's waiting jobs; higher runs sooner.
            estimate: Estimated time and memory, as JSON; None if unknown.
            scoring: Limit on the scores that the model may return.
            privacy: Privacy cost to reserve; None to skip the check of privacy caps.

        Raises:
            BudgetError: The models of the table would exceed a privacy cap.
        """
        with self._database.writing() as session:
            dataset = find_row(
                session, DatasetRow, dataset_id, self._workspace, lock=privacy is None
            )
            job = self._new_row(self.new_id(), JobKind.TRAIN, TrainSpec(training).to_json())
            model = ModelRow(
                id=new_id("mdl"),
                workspace=self._workspace,
                name=name,
                kind=dataset.kind,
                dataset_id=dataset_id,
                status=ModelStatus.TRAINING,
                job_id=job.id,
                training=training,
                scoring=scoring,
            )
            job.model_id, job.dataset_id = model.id, dataset_id
            job.priority, job.estimate = priority, estimate
            if privacy is not None:  # this locks the dataset, with others of the same table
                reserve(session, dataset_id, job, privacy)
            count(session, Counted.CREATED, kind=job.kind)
            record_created_id(session, job.id)
            return write_row(session, model, Model), write_row(session, job, Job)

    def enqueue(
        self,
        kind: JobKind,
        *,
        model_id: str,
        spec: Document,
        dataset_id: str | None = None,
        job_id: str | None = None,
        shards: Sequence[range] = (),
        priority: int = 0,
        estimate: Document | None = None,
    ) -> Job:
        """Creates and returns a queued job that uses a ready model; the caller notifies workers.

        Args:
            spec: Specification of the work, as JSON (`catalog.job_kinds`).
            dataset_id: Dataset that the job reads; None for none.
            job_id: Id from `new_id` if the job's input table is already stored under the reserved
                prefix `input_prefix(job_id)`; None to create an id.
            shards: Ranges of rows to be processed by several workers; empty if one worker does all.
            priority: Priority among the workspace's waiting jobs; higher runs sooner.
            estimate: Estimated time and memory, as JSON; None if unknown.

        Raises:
            ModelNotReadyError: The model is not ready.
        """
        with self._database.writing() as session:
            model = find_row(session, ModelRow, model_id, self._workspace, lock=True)
            if model.status != ModelStatus.READY:
                raise ModelNotReadyError(model_id, model.status)
            if dataset_id is not None:
                find_row(session, DatasetRow, dataset_id, self._workspace, lock=True)
            if job_id is not None:
                drop_reservation(session, input_prefix(job_id))
            row = self._new_row(job_id or self.new_id(), kind, spec)
            row.model_id, row.dataset_id = model_id, dataset_id
            row.priority, row.estimate = priority, estimate
            row.result_id = new_id(kind.id_prefix)
            add_shards(session, row, shards)
            count(session, Counted.CREATED, kind=kind)
            record_created_id(session, row.id)
            return write_row(session, row, Job)

    def find_by_result(self, result_id: str) -> Job:
        """Returns the job whose result has, or will have, this id."""
        query = self._ours().where(JobRow.result_id == result_id)
        with self._database.reading() as session:
            row = session.scalar(query)
            if row is None:
                raise NotFoundError("result", result_id)
            return copy_row(Job, row)

    def count(self, statuses: Collection[JobStatus]) -> int:
        """Returns the number of the workspace's jobs with one of these statuses."""
        found = self._ours().where(JobRow.status.in_(statuses)).subquery()
        query = select(func.count()).select_from(found)
        with self._database.reading() as session:
            return int(session.scalar(query) or 0)

    def request_cancel(self, job_id: str) -> Job:
        """Cancels a queued job at once, or asks a running one to stop, and returns the job.

        Cancelling twice is allowed.

        Raises:
            ConflictError: The job has succeeded or failed.
        """
        with self._database.writing() as session:
            row = self._find_seen(session, job_id)
            if row.status in (JobStatus.SUCCEEDED, JobStatus.FAILED):
                raise ConflictError(
                    f"job {job_id} has ended ({row.status}) and cannot be cancelled"
                )
            if row.status == JobStatus.QUEUED and not row.open_shards:
                close_job(session, row, Cancelled())
            elif not row.cancel_requested and not row.status.is_final:
                row.cancel_requested = True
                row.version += 1
                if row.open_shards:
                    stop_shards(session, row)
                    close_where_shards_are(session, row)
            return write_row(session, row, Job)

    def retry(self, job_id: str, privacy: PrivacyRequest | None = None) -> Job:
        """Queues a failed or cancelled job again and returns it; the caller notifies workers.

        Args:
            privacy: Privacy cost to reserve, because a repeated private training spends it again;
                None to skip the check of privacy caps.

        Raises:
            BudgetError: The models of the table would exceed a privacy cap.
            ConflictError: The job is neither failed nor cancelled, or its input was deleted.
        """
        with self._database.writing() as session:
            row = self._find_seen(session, job_id)
            _refuse_retry(row)
            if row.kind == JobKind.TRAIN:
                dataset_id = str(row.dataset_id)
                find_row(session, DatasetRow, dataset_id, self._workspace, lock=privacy is None)
                if privacy is not None:
                    reserve(session, dataset_id, row, privacy)
                model = find_row(session, ModelRow, str(row.model_id), self._workspace, lock=True)
                model.status = ModelStatus.TRAINING
            context = _context.get()
            queue_again(row, context.request_id, context.traceparent, self._resend_seconds)
            reset_shards(session, row)
            return write_row(session, row, Job)

    def _new_row(self, job_id: str, kind: JobKind, spec: Document) -> JobRow:
        context = _context.get()
        return JobRow(
            id=job_id,
            workspace=self._workspace,
            kind=kind,
            spec=spec,
            queue=kind.queue,
            next_dispatch_at=database_clock(self._resend_seconds),
            request_id=context.request_id,
            traceparent=context.traceparent,
        )

    def _ours(self) -> Select[Any]:
        """Omits shards, which users do not see."""
        return super()._ours().where(JobRow.parent_id.is_(None))

    def _find_seen(self, session: Session, job_id: str) -> JobRow:
        found = self._ours().where(JobRow.id == job_id).with_for_update()
        row: JobRow | None = session.scalar(found)
        if row is None:
            raise NotFoundError("job", job_id)
        return row


def _refuse_retry(row: JobRow) -> None:
    if row.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
        raise ConflictError(
            f"job {row.id} is {row.status}; only failed or cancelled jobs can be retried"
        )
    if row.model_id is None:
        raise ConflictError(f"the model of job {row.id} is deleted; it cannot be retried")
    reads_dataset = row.kind == JobKind.TRAIN or "dataset_id" in row.spec
    if reads_dataset and row.dataset_id is None:
        raise ConflictError(f"the dataset of job {row.id} is deleted; it cannot be retried")
