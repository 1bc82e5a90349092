"""Tables from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.work.attempt import Attempt

if TYPE_CHECKING:
    from catalog.job_kinds import TableSpec
    from gcvae import TableReader


def table_of(attempt: Attempt, spec: TableSpec) -> TableReader:
    """The table that the job is about; raises as `stored_table`."""
    return stored_table(attempt, spec.table_key, spec.table_sha256, spec.table_encoding)


def stored_table(
    attempt: Attempt, key: str, sha256: str, encoding: str | None, *, name: str = "table"
) -> TableReader:
    """A table in the store, on this disk, to be read block by block: it need not fit into memory.

    Args:
        attempt: Of the job that reads it.
        key: Of the table's bytes.
        sha256: Of the same.
        encoding: Of a text file; None is UTF-8.
        name: Of the file here, which is another for each table of a job.

    Raises:
        MissingObjectError: it was deleted meanwhile.
        CorruptedError: the bytes are not those that were uploaded.
    """
    from gcvae.files.table_reader import TableReader

    file = attempt.folder / name
    attempt.store.fetch(key, sha256, file)
    return TableReader(file, encoding=encoding)
