"""Models: the records of synthesizers, in the making or published."""

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
    """Gateway to a workspace's models. One in training is made by `Jobs.enqueue_training`."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

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
        kind: DataKind = DataKind.TABLE,
    ) -> Model:
        """Record a model brought in from outside; its prefix was reserved before.

        Raises:
            ReservationLostError: the reservation ran out.
            IdempotencyBusyError: the request's key is another's by now.
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
        """The model.

        Raises:
            NotFoundError: no such model in this workspace.
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
        """A page of models; those that `search` is in the name or begins the id of."""
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
        """Have a model say less of rows, or give it another name. What is so already is no error.

        Raises:
            NotFoundError: no such model in this workspace.
            LooserScoringError: it says less already.
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
        """Delete the model and its results; returns the store prefixes to collect.

        The prefixes are among the orphans too, so a caller that dies loses none. A job that makes
        what goes with the model, as its report, ends with it.

        Raises:
            NotFoundError: no such model in this workspace.
            ConflictError: any other job on it is queued or running.
        """
        with self._database.writing() as session:
            return delete_model(session, model_id, self._workspace)
