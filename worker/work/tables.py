"""Fetches tables from the object store to the local disk."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from worker.work.attempt import Attempt

if TYPE_CHECKING:
    import pandas as pd

    from catalog.job_kinds import TableSpec
    from gcvae import TableReader


def table_of(attempt: Attempt, spec: TableSpec) -> TableReader:
    """Fetches the table that a job reads, and returns a reader of it.

    Raises:
        MissingObjectError, CorruptedError: The table was deleted, or its bytes were changed.
    """
    return stored_table(attempt, spec.table_key, spec.table_sha256, spec.table_encoding)


def stored_table(
    attempt: Attempt, key: str, sha256: str, encoding: str | None, *, name: str = "table"
) -> TableReader:
    """Fetches a table to the local disk and returns a reader of it.

    Args:
        key: Store key of the table.
        sha256: Checksum of its bytes.
        encoding: Text encoding; None for UTF-8.
        name: Name of the local file, unique within the job.

    Raises:
        MissingObjectError: The table was deleted meanwhile.
        CorruptedError: The bytes are not those that were uploaded.
    """
    from gcvae.files.table_reader import TableReader

    file = attempt.folder / name
    attempt.store.fetch(key, sha256, file)
    return TableReader(file, encoding=encoding)


def stored_database(
    attempt: Attempt, key: str, sha256: str, encoding: str | None
) -> dict[str, pd.DataFrame]:
    """Reads all tables of the ZIP file that is stored under `key` and returns them by name.

    Raises:
        MissingObjectError: The file was deleted meanwhile.
        CorruptedError: The bytes do not have the checksum `sha256`.
    """
    from gcvae.files.table_archives import opened_archive, unpack
    from gcvae.files.table_reader import TableReader
    from gcvae.files.tables import read_table

    path = attempt.folder / "database"
    attempt.store.fetch(key, sha256, path)
    frames = {}
    with path.open("rb") as file, opened_archive(file) as (archive, members):
        for name, member in members.items():
            with tempfile.TemporaryFile(dir=attempt.folder) as table:
                unpack(archive, member, table, lambda _: None)  # checked when it was uploaded
                text = None if TableReader(table).is_parquet(table) else encoding
                frames[name] = read_table(table, encoding=text, may_be_empty=True)
    path.unlink()
    return frames
