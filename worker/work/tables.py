"""Tables from the store."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from worker.work.attempt import Attempt

if TYPE_CHECKING:
    import pandas as pd

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


def stored_database(
    attempt: Attempt, key: str, sha256: str, encoding: str | None
) -> dict[str, pd.DataFrame]:
    """The tables of a ZIP file in the store, by name; arguments and errors as of `stored_table`."""
    from gcvae.files.table_archives import opened_archive, unpack
    from gcvae.files.table_reader import TableReader
    from gcvae.files.tables import read_table

    path = attempt.folder / "database"
    attempt.store.fetch(key, sha256, path)
    frames = {}
    with path.open("rb") as file, opened_archive(file) as (archive, members):
        for name, member in members.items():
            with tempfile.TemporaryFile(dir=attempt.folder) as table:
                unpack(archive, member, table, lambda _: None)  # it was checked when it came
                text = None if TableReader(table).is_parquet(table) else encoding
                frames[name] = read_table(table, encoding=text, may_be_empty=True)
    path.unlink()
    return frames
