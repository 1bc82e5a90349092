"""Models: the records of synthesizers, in the making or published."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.engine import Database
from catalog.database.tables import JobRow, ModelRow, ResultRow
from catalog.errors import ConflictError, NotFoundError
from catalog.idempotency import note_made
from catalog.ids import new_id
from catalog.orphans import add_orphans, drop_reservation
from catalog.pages import Page, copy_row, read_page
from catalog.records import (
    DEFAULT_WORKSPACE,
    Document,
    JobStatus,
    Model,
    ModelStatus,
    Trained,
)

_ACTIVE = (JobStatus.QUEUED, JobStatus.RUNNING)


def model_prefix(model_id: str) -> str:
    """Where a model's bytes lie in the store."""
    return f"models/{model_id}/"


class Models:
    """Gateway to the models. A model in training is made by `Jobs.enqueue_training`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def new_id(self) -> str:
        """An id for a model whose bytes are about to be written."""
        return new_id("mdl")

    def add_ready(
        self,
        *,
        model_id: str,
        name: str,
        trained: Trained,
        training: Document,
        workspace: str = DEFAULT_WORKSPACE,
    ) -> Model:
        """Record a model brought in from outside; its prefix was reserved before.

        Raises:
            ReservationLostError: the reservation ran out.
            IdempotencyBusyError: the request's key is another's by now.
        """
        row = new_model_row(model_id, workspace, name, None, training)
        with self._database.writing() as session:
            drop_reservation(session, model_prefix(model_id))
            make_ready(row, trained)
            session.add(row)
            session.flush()
            note_made(session, model_id)
            session.refresh(row)
            return copy_row(Model, row)

    def get(self, model_id: str, *, workspace: str = DEFAULT_WORKSPACE) -> Model:
        """The model.

        Raises:
            NotFoundError: no such model in this workspace.
        """
        with self._database.reading() as session:
            return copy_row(Model, find_model(session, model_id, workspace))

    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        workspace: str = DEFAULT_WORKSPACE,
        dataset_id: str | None = None,
        status: ModelStatus | None = None,
    ) -> Page[Model]:
        """A page of models, newest first."""
        query = select(ModelRow).where(ModelRow.workspace == workspace)
        if dataset_id is not None:
            query = query.where(ModelRow.dataset_id == dataset_id)
        if status is not None:
            query = query.where(ModelRow.status == status)
        with self._database.reading() as session:
            return read_page(session, query, ModelRow, Model, limit, cursor)

    def delete(self, model_id: str, *, workspace: str = DEFAULT_WORKSPACE) -> tuple[str, ...]:
        """Delete the model and its results; returns the store prefixes to collect.

        The prefixes are among the orphans too, so a caller that dies loses none.

        Raises:
            NotFoundError: no such model in this workspace.
            ConflictError: a job on it is queued or running.
        """
        with self._database.writing() as session:
            row = find_model(session, model_id, workspace, lock=True)
            _refuse_while_busy(session, model_id)
            prefixes = _prefixes_of(session, model_id)
            session.delete(row)
            add_orphans(session, prefixes)
            return prefixes


def new_model_row(
    model_id: str, workspace: str, name: str, dataset_id: str | None, training: Document
) -> ModelRow:
    """A row of a model that is about to be trained."""
    return ModelRow(
        id=model_id,
        workspace=workspace,
        name=name,
        dataset_id=dataset_id,
        status=ModelStatus.TRAINING,
        training=training,
        created_at=database_clock(),
    )


def make_ready(row: ModelRow, trained: Trained) -> None:
    """Write the outcome of training into the model's row."""
    row.status = ModelStatus.READY
    row.schema = trained.schema
    row.record = trained.record
    row.artifact_key = trained.artifact_key
    row.artifact_sha256 = trained.artifact_sha256
    row.artifact_bytes = trained.artifact_bytes


def find_model(session: Session, model_id: str, workspace: str, *, lock: bool = False) -> ModelRow:
    """The row of a model of this workspace.

    Raises:
        NotFoundError: there is none.
    """
    query = select(ModelRow).where(ModelRow.id == model_id, ModelRow.workspace == workspace)
    row = session.scalar(query.with_for_update() if lock else query)
    if row is None:
        raise NotFoundError("model", model_id)
    return row


def _refuse_while_busy(session: Session, model_id: str) -> None:
    job_id = session.scalar(
        select(JobRow.id)
        .where(JobRow.model_id == model_id, JobRow.status.in_(_ACTIVE), JobRow.parent_id.is_(None))
        .limit(1)
    )
    if job_id is not None:
        raise ConflictError(f"job {job_id} still works on model {model_id}; cancel it first")


def _prefixes_of(session: Session, model_id: str) -> tuple[str, ...]:
    results = session.scalars(select(ResultRow.id).where(ResultRow.model_id == model_id))
    jobs = session.scalars(select(JobRow.id).where(JobRow.model_id == model_id))
    return (
        model_prefix(model_id),
        *(f"results/{result_id}/" for result_id in results),
        *(f"jobs/{job_id}/" for job_id in jobs),
    )
