"""Deletes a model with all its results, and marks their stored bytes for deletion."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.tables import JobRow, ResultRow
from catalog.errors import ConflictError
from catalog.job_kinds import JobKind
from catalog.jobs.finishing import close_job
from catalog.model_rows import find_model
from catalog.object_keys import model_prefix, result_prefix
from catalog.orphans import add_orphans
from catalog.records import Cancelled, JobStatus

_ACTIVE = (JobStatus.QUEUED, JobStatus.RUNNING)
_OF_MODEL = [kind for kind in JobKind if kind.spec.is_of_model]


def delete_model(session: Session, model_id: str, workspace: str) -> tuple[str, ...]:
    """Deletes a model and its results within the caller's transaction.

    Returns:
        The store prefixes of their bytes, which garbage collection deletes.

    Raises:
        NotFoundError: The workspace contains no such model.
        ConflictError: Another job on the model is queued or running.
    """
    _cancel_jobs_of_model(session, model_id, workspace)
    row = find_model(session, model_id, workspace, lock=True)
    _refuse_while_busy(session, model_id)
    prefixes = _prefixes_of(session, model_id)
    session.delete(row)
    add_orphans(session, prefixes)
    return prefixes


def _cancel_jobs_of_model(session: Session, model_id: str, workspace: str) -> None:
    """Cancels the unfinished jobs whose results are deleted with the model; running attempts lose
    their lease.

    The caller must do this before it locks the model, because jobs are always locked before models.
    """
    jobs = select(JobRow).where(
        JobRow.model_id == model_id,
        JobRow.workspace == workspace,
        JobRow.kind.in_(_OF_MODEL),
        JobRow.status.in_(_ACTIVE),
    )
    for row in session.scalars(jobs.order_by(JobRow.id).with_for_update()).all():
        close_job(session, row, Cancelled())


def _refuse_while_busy(session: Session, model_id: str) -> None:
    job_id = session.scalar(
        select(JobRow.id)
        .where(JobRow.model_id == model_id, JobRow.status.in_(_ACTIVE), JobRow.parent_id.is_(None))
        .limit(1)
    )
    if job_id is not None:
        raise ConflictError(f"job {job_id} still uses model {model_id}; cancel it first")


def _prefixes_of(session: Session, model_id: str) -> tuple[str, ...]:
    results = session.scalars(select(ResultRow.id).where(ResultRow.model_id == model_id))
    jobs = session.scalars(select(JobRow.id).where(JobRow.model_id == model_id))
    return (
        model_prefix(model_id),
        *(result_prefix(result_id) for result_id in results),
        *(f"jobs/{job_id}/" for job_id in jobs),
    )
