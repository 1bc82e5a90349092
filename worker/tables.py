"""Tables from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.attempt import Attempt

if TYPE_CHECKING:
    import pandas as pd

    from catalog.specs import TableSpec


def read_table_of(attempt: Attempt, spec: TableSpec) -> pd.DataFrame:
    """The cells of the table that the job is about; raises as `read_stored_table`."""
    return read_stored_table(attempt, spec.table_key, spec.table_sha256, spec.table_format)


def read_stored_table(attempt: Attempt, key: str, sha256: str, file_format: str) -> pd.DataFrame:
    """The cells of a table in the store.

    Raises:
        MissingObjectError: it was deleted meanwhile.
        CorruptedError: the bytes are not those that were uploaded.
        TableError: it is no table.
    """
    from gcvae.tables import read_table

    file = attempt.folder / "table"
    attempt.store.fetch(key, sha256, file)
    return read_table(file, format=file_format)
