"""Tables from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.attempt import Attempt

if TYPE_CHECKING:
    import pandas as pd


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
