"""Creates, reads, changes and deletes the records of datasets."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.tables import DatasetRow, ModelRow
from catalog.errors import ConflictError, SchemaChangedError
from catalog.idempotency import forget_answer, record_created_id
from catalog.models import delete_model
from catalog.object_keys import dataset_prefix
from catalog.orphans import add_orphans, drop_reservation
from catalog.pages import ListedRecords
from catalog.records import DataKind, Dataset, Document, ModelStatus
from catalog.rows import write_row


class Datasets(ListedRecords[DatasetRow, Dataset]):
    """Creates, reads, changes and deletes the dataset records of one workspace."""

    _row, _record, _prefix = DatasetRow, Dataset, "ds"

    def add(
        self,
        *,
        dataset_id: str,
        name: str,
        format: str,
        rows: int,
        columns: int,
        schema: Document,
        sha256: str,
        size_bytes: int,
        object_key: str,
        warnings: Sequence[str],
        encoding: str | None = None,
        source: Document | None = None,
        given_schema: Document | None = None,
        tables: Sequence[Document] | None = None,
    ) -> Dataset:
        """Creates the record of a dataset whose bytes are stored already.

        The caller has reserved the store prefix of the bytes (`Orphans.reserve`). Creating the
        record ends the reservation.

        Args:
            dataset_id, name, format, rows, columns, schema, sha256, size_bytes, object_key,
                warnings, encoding, source: Values of these members of the new
                `catalog.records.Dataset`.
            given_schema: The part of the schema that the user specified; None if it is inferred
                completely.
            tables: Name, format, rows, columns and schema of each table of a database; None for a
                single table.
        """
        row = DatasetRow(
            id=dataset_id,
            workspace=self._workspace,
            name=name,
            kind=DataKind.TABLE if tables is None else DataKind.DATABASE,
            format=format,
            rows=rows,
            columns=columns,
            tables=None if tables is None else [*tables],
            schema=schema,
            given_schema=given_schema or {},
            sha256=sha256,
            size_bytes=size_bytes,
            object_key=object_key,
            warnings=[*warnings],
            encoding=encoding,
            source=source,
        )
        with self._database.writing() as session:
            drop_reservation(session, dataset_prefix(dataset_id))
            record_created_id(session, dataset_id)
            return write_row(session, row, Dataset)

    def replace_schema(
        self,
        before: Dataset,
        schema: Document,
        given_schema: Document,
        warnings: Sequence[str],
        tables: Sequence[Document] | None = None,
    ) -> Dataset:
        """Replaces a dataset's schema by one that the caller has checked against the table.

        Args:
            before: The dataset as the caller read it, with the schema to be replaced.
            schema: The new, complete schema.
            given_schema: The part of the new schema that the user specified.
            warnings: Data-quality warnings.
            tables: JSON objects of a database's tables with their new schemas; None for a single
                table.

        Raises:
            NotFoundError: The dataset was deleted.
            SchemaChangedError: The schema was changed since the caller read it.
            ConflictError: A model is being trained on the dataset.
        """
        with self._database.writing() as session:
            row = self._find(session, before.id, lock=True)
            if (row.schema, row.given_schema) != (before.schema, before.given_schema):
                raise SchemaChangedError(before.id)
            _refuse_while_training(session, before.id)
            row.schema, row.given_schema, row.warnings = schema, given_schema, [*warnings]
            row.tables = None if tables is None else [*tables]
            forget_answer(session, before.id, self._workspace)
            return write_row(session, row, Dataset)

    def rename(self, dataset_id: str, name: str) -> Dataset:
        """Renames a dataset and returns it."""
        with self._database.writing() as session:
            row = self._find(session, dataset_id, lock=True)
            row.name = name
            return write_row(session, row, Dataset)

    def count_models(self, dataset_id: str) -> int:
        """Returns the number of models that were trained on a dataset."""
        with self._database.reading() as session:
            return len(_models_of(session, dataset_id, self._workspace))

    def delete(self, dataset_id: str, *, cascade: bool = False) -> tuple[str, ...]:
        """Deletes a dataset's record and returns the store prefixes of its bytes.

        Garbage collection deletes the bytes.

        Args:
            cascade: Whether to delete also the models that were trained on the dataset, with their
                results.

        Raises:
            ConflictError: A model is being trained on the dataset, or a job uses a model to be
                deleted.
        """
        with self._database.writing() as session:
            row = self._find(session, dataset_id, lock=True)
            _refuse_while_training(session, dataset_id)
            of_models: tuple[str, ...] = ()
            for model_id in _models_of(session, dataset_id, self._workspace) if cascade else ():
                of_models += delete_model(session, model_id, self._workspace)
            session.delete(row)
            prefixes = (dataset_prefix(dataset_id),)
            add_orphans(session, prefixes)
            return prefixes + of_models


def _models_of(session: Session, dataset_id: str, workspace: str) -> Sequence[str]:
    of_dataset = (ModelRow.dataset_id == dataset_id, ModelRow.workspace == workspace)
    return session.scalars(select(ModelRow.id).where(*of_dataset).order_by(ModelRow.id)).all()


def _refuse_while_training(session: Session, dataset_id: str) -> None:
    model_id = session.scalar(
        select(ModelRow.id)
        .where(ModelRow.dataset_id == dataset_id, ModelRow.status == ModelStatus.TRAINING)
        .limit(1)
    )
    if model_id is not None:
        raise ConflictError(
            f"model {model_id} is being trained on dataset {dataset_id}; cancel its job first"
        )
