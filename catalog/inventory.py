"""Lists the bytes that the store should contain according to the records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.tables import DatasetRow, JobRow, ModelRow, OrphanRow, ResultRow
from catalog.object_keys import checkpoint_prefix, input_prefix, output_prefix
from catalog.records import ACTIVE, JobStatus
from catalog.rows import Records


@dataclass(frozen=True)
class Kept:
    """Stored bytes that belong to a record.

    Attributes:
        record_id: Id of the record: dataset, model, result or job.
        key: Store key of the bytes.
        sha256: Checksum of the bytes.
        is_manifest: Whether the bytes are a manifest: a JSON list of the objects (shards) in which
            a table is stored.
    """

    record_id: str
    key: str
    sha256: str
    is_manifest: bool = False


class Inventory(Records):
    """Lists the bytes that the store should contain according to the records of all workspaces."""

    def kept(self) -> list[Kept]:
        """Lists the stored bytes of all records.

        A result that is stored in several objects (shards) is represented by its manifest only.
        """
        with self._database.reading() as session:
            return [*_tables(session), *_results(session), *_bytes_of_jobs(session)]

    def prefixes_in_work(self) -> list[str]:
        """Returns the store prefixes under which bytes without a record may be found.

        These are the reserved prefixes, the prefixes to be deleted, and those under which running
        attempts at jobs write.
        """
        with self._database.reading() as session:
            prefixes = [*session.scalars(select(OrphanRow.prefix))]
            running = select(JobRow).where(JobRow.status == JobStatus.RUNNING)
            for row in session.scalars(running):
                prefixes += [
                    output_prefix(row, row.attempt),
                    checkpoint_prefix(row.id, row.attempt),
                ]
            return prefixes


def _tables(session: Session) -> Iterator[Kept]:
    for table in session.execute(select(DatasetRow.id, DatasetRow.object_key, DatasetRow.sha256)):
        yield Kept(*table)
    columns = select(ModelRow.id, ModelRow.artifact_key, ModelRow.artifact_sha256)
    for row in session.execute(columns.where(ModelRow.artifact_key.is_not(None))):
        model_id, key, sha256 = row
        assert key is not None, "the statement leaves out models without an artifact"
        assert sha256 is not None, "an artifact has a checksum"
        yield Kept(model_id, key, sha256)


def _results(session: Session) -> Iterator[Kept]:
    columns = (ResultRow.id, ResultRow.object_key, ResultRow.sha256, ResultRow.manifest_sha256)
    for result_id, key, sha256, manifest_sha256 in session.execute(select(*columns)):
        if manifest_sha256 is None:
            yield Kept(result_id, key, sha256)
        else:
            yield Kept(result_id, key, manifest_sha256, is_manifest=True)


def _bytes_of_jobs(session: Session) -> Iterator[Kept]:
    """Yields checkpoints, the results of shards whose job has not ended, and the uploaded input
    tables of jobs that have not succeeded."""
    of_job = (JobRow.id, JobRow.status, JobRow.spec, JobRow.part, JobRow.parent_id)
    of_checkpoint = (JobRow.checkpoint_key, JobRow.checkpoint_sha256)
    rows = session.execute(select(*of_job, *of_checkpoint)).all()
    open_ids = {row.id for row in rows if row.status in ACTIVE}
    for row in rows:
        if row.checkpoint_key is not None:
            yield Kept(row.id, row.checkpoint_key, row.checkpoint_sha256)
        if row.part is not None and row.parent_id in open_ids:
            yield Kept(row.id, row.part["object_key"], row.part["sha256"])
        key = row.spec.get("table_key", "")
        # A failed or cancelled job keeps its input table for a retry; a succeeded one does not.
        if key.startswith(input_prefix(row.id)) and row.status != JobStatus.SUCCEEDED:
            yield Kept(row.id, key, row.spec["table_sha256"])
