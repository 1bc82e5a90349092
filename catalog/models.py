"""Reads, changes and deletes the records of models."""

from __future__ import annotations

from sqlalchemy import select

from catalog.database.engine import Database
from catalog.database.tables import ModelRow
from catalog.errors import LooserScoringError
from catalog.idempotency import note_made
from catalog.ids import new_id
from catalog.model_deletion import delete_model
from catalog.model_rows import find_model, make_ready, new_model_row
from catalog.object_keys import model_prefix
from catalog.orphans import drop_reservation
from catalog.pages import Order, Page, copy_row, named_like, read_page
from catalog.records import DataKind, Document, Model, ModelStatus, Scoring, Trained


class Models:
    """Reads, changes and deletes the model records of one workspace.

    `Jobs.enqueue_training` creates the record of a model in training.
    """

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    def new_id(self) -> str:
        """Returns an id for a model that is about to be stored."""
        return new_id("mdl")

    def add_ready(
        self,
        *,
        model_id: str,
        name: str,
        trained: Trained,
        training: Document,
        kind: DataKind = DataKind.TABLE,
    ) -> Model:
        """Records an imported model whose bytes are already stored, under a prefix reserved before.

        Args:
            trained: Store key and description of the artifact.
            training: Preset and settings with which the model was trained.
            kind: Whether the model is of a table or a database.

        Raises:
            ReservationLostError: The reservation has expired.
            IdempotencyBusyError: Another request took over the idempotency key.
        """
        row = new_model_row(model_id, self._workspace, name, None, training, kind=kind)
        with self._database.writing() as session:
            drop_reservation(session, model_prefix(model_id))
            make_ready(row, trained)
            session.add(row)
            session.flush()
            note_made(session, model_id)
            session.refresh(row)
            return copy_row(Model, row)

    def get(self, model_id: str) -> Model:
        """Returns the model with this id.

        Raises:
            NotFoundError: The workspace contains no such model.
        """
        with self._database.reading() as session:
            return copy_row(Model, find_model(session, model_id, self._workspace))

    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        dataset_id: str | None = None,
        status: ModelStatus | None = None,
        search: str | None = None,
        order: Order = Order.NEWEST,
    ) -> Page[Model]:
        """Returns one page of the workspace's models.

        Args:
            cursor: `next_cursor` of the previous page; None for the first page.
            dataset_id: Only models that were trained on this dataset; None for all.
            status: Only models with this status; None for all.
            search: String contained in the name (ignoring case) or at the start of the id; None for
                all models.
            order: Order of the list.

        Raises:
            CursorError: The cursor is not from a page of this list.
        """
        query = select(ModelRow).where(ModelRow.workspace == self._workspace)
        if dataset_id is not None:
            query = query.where(ModelRow.dataset_id == dataset_id)
        if status is not None:
            query = query.where(ModelRow.status == status)
        query = named_like(query, ModelRow, search)
        with self._database.reading() as session:
            return read_page(session, query, ModelRow, Model, limit, cursor, order)

    def change(
        self, model_id: str, *, scoring: Scoring | None = None, name: str | None = None
    ) -> Model:
        """Changes a model's scoring, its name or both, and returns the model.

        Args:
            scoring: New limit on the scores that the model may return, as strict as the current one
                or stricter; None leaves it.
            name: New name; None leaves it.

        Raises:
            NotFoundError: The workspace contains no such model.
            LooserScoringError: The new scoring allows more than the current one.
        """
        with self._database.writing() as session:
            row = find_model(session, model_id, self._workspace, lock=True)
            if scoring is not None and scoring.is_looser_than(row.scoring):
                raise LooserScoringError(model_id, row.scoring, scoring)
            row.scoring = row.scoring if scoring is None else scoring
            row.name = row.name if name is None else name
            session.flush()
            session.refresh(row)
            return copy_row(Model, row)

    def delete(self, model_id: str) -> tuple[str, ...]:
        """Deletes a model and its results, and returns the store prefixes of their bytes.

        Garbage collection deletes the bytes even if the caller dies. Jobs whose results are deleted
        with the model, such as reports, are cancelled.

        Raises:
            NotFoundError: The workspace contains no such model.
            ConflictError: Another job on the model is queued or running.
        """
        with self._database.writing() as session:
            return delete_model(session, model_id, self._workspace)
