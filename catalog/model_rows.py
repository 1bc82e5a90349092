"""Database rows of models: creation, lookup, and update after training."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import ModelRow
from catalog.errors import NotFoundError
from catalog.records import DataKind, Document, ModelStatus, Scoring, Trained


def new_model_row(
    model_id: str,
    workspace: str,
    name: str,
    dataset_id: str | None,
    training: Document,
    scoring: Scoring = Scoring.FULL,
    kind: DataKind = DataKind.TABLE,
) -> ModelRow:
    """Returns a new database row for a model that is about to be trained."""
    return ModelRow(
        id=model_id,
        workspace=workspace,
        name=name,
        kind=kind,
        dataset_id=dataset_id,
        status=ModelStatus.TRAINING,
        training=training,
        scoring=scoring,
        created_at=database_clock(),
    )


def make_ready(row: ModelRow, trained: Trained) -> None:
    """Marks a model as ready and copies the outcome of training into its database row.

    If the limit on scores that the model's file contains is stricter, it becomes that of the model.
    """
    row.status = ModelStatus.READY
    row.schema = trained.schema
    row.record = trained.record
    row.artifact_key = trained.artifact_key
    row.artifact_sha256 = trained.artifact_sha256
    row.artifact_bytes = trained.artifact_bytes
    if row.scoring.is_looser_than(Scoring(trained.scoring)):
        row.scoring = Scoring(trained.scoring)


def find_model(session: Session, model_id: str, workspace: str, *, lock: bool = False) -> ModelRow:
    """Returns the database row of a model; with `lock` the row is locked until the transaction
    ends.

    Raises:
        NotFoundError: The workspace contains no such model.
    """
    query = select(ModelRow).where(ModelRow.id == model_id, ModelRow.workspace == workspace)
    row = session.scalar(query.with_for_update() if lock else query)
    if row is None:
        raise NotFoundError("model", model_id)
    return row
