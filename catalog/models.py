"""Reads, changes and deletes the records of models."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.tables import JobRow, ModelRow, ResultRow
from catalog.errors import ConflictError, LooserScoringError
from catalog.idempotency import record_created_id
from catalog.job_kinds import KINDS_OF_MODEL
from catalog.jobs.finishing import close_job, make_ready
from catalog.object_keys import model_prefix, result_prefix
from catalog.orphans import add_orphans, drop_reservation
from catalog.pages import ListedRecords
from catalog.records import (
    ACTIVE,
    Cancelled,
    DataKind,
    Document,
    Model,
    Scoring,
    Trained,
)
from catalog.rows import find_row, write_row


class Models(ListedRecords[ModelRow, Model]):
    """Reads, changes and deletes the model records of one workspace.

    `Jobs.enqueue_training` creates the record of a model in training.
    """

    _row, _record, _prefix = ModelRow, Model, "mdl"

    def add_ready(
        self,
        *,
        model_id: str,
        name: str,
        trained: Trained,
        training: Document,
        kind: DataKind = DataKind.TABLE,
    ) -> Model:
        """Creates the record of an imported model whose bytes are stored already.

        The caller has reserved the store prefix of the bytes (`Orphans.reserve`). Creating the
        record ends the reservation.

        Args:
            trained: Store key and description of the artifact.
            training: Preset and settings with which the model was trained.
            kind: Whether the model is of a table or a database.
        """
        row = ModelRow(
            id=model_id,
            workspace=self._workspace,
            name=name,
            kind=kind,
            training=training,
            scoring=Scoring.FULL,
        )
        make_ready(row, trained)
        with self._database.writing() as session:
            drop_reservation(session, model_prefix(model_id))
            record_created_id(session, model_id)
            return write_row(session, row, Model)

    def change(
        self, model_id: str, *, scoring: Scoring | None = None, name: str | None = None
    ) -> Model:
        """Changes a model's scoring, its name or both, and returns the model.

        Args:
            scoring: New limit on the scores that the model may return, as strict as the current one
                or stricter; None to keep the current one.
            name: New name; None to keep the current one.

        Raises:
            LooserScoringError: The new scoring allows more than the current one.
        """
        with self._database.writing() as session:
            row = self._find(session, model_id, lock=True)
            if scoring is not None and scoring.is_looser_than(row.scoring):
                raise LooserScoringError(model_id, row.scoring, scoring)
            row.scoring = row.scoring if scoring is None else scoring
            row.name = row.name if name is None else name
            return write_row(session, row, Model)

    def delete(self, model_id: str) -> tuple[str, ...]:
        """Deletes a model and its results, and returns the store prefixes of their bytes.

        Garbage collection deletes the bytes even if the caller dies. Jobs whose results are deleted
        with the model, such as reports, are cancelled.

        Raises:
            ConflictError: Another job on the model is queued or running.
        """
        with self._database.writing() as session:
            return delete_model(session, model_id, self._workspace)


def delete_model(session: Session, model_id: str, workspace: str) -> tuple[str, ...]:
    """Deletes a model and its results within the caller's transaction.

    Returns:
        The store prefixes of their bytes, which garbage collection deletes.

    Raises:
        ConflictError: Another job on the model is queued or running.
    """
    _cancel_jobs_of_model(session, model_id, workspace)
    row = find_row(session, ModelRow, model_id, workspace, lock=True)
    _refuse_while_busy(session, model_id)
    prefixes = _prefixes_of(session, model_id)
    session.delete(row)
    add_orphans(session, prefixes)
    return prefixes


def _cancel_jobs_of_model(session: Session, model_id: str, workspace: str) -> None:
    """Cancels the unfinished jobs whose results are deleted with the model.

    Must be called before the model is locked, because jobs are always locked before models.
    """
    jobs = select(JobRow).where(
        JobRow.model_id == model_id,
        JobRow.workspace == workspace,
        JobRow.kind.in_(KINDS_OF_MODEL),
        JobRow.status.in_(ACTIVE),
    )
    for row in session.scalars(jobs.order_by(JobRow.id).with_for_update()).all():
        close_job(session, row, Cancelled())


def _refuse_while_busy(session: Session, model_id: str) -> None:
    job_id = session.scalar(
        select(JobRow.id)
        .where(JobRow.model_id == model_id, JobRow.status.in_(ACTIVE), JobRow.parent_id.is_(None))
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
