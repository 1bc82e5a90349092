"""Generates private rows, which replace the table in training under differential privacy, or
restores them from a checkpoint.

The table is queried once, and the private rows are stored with the checkpoints. A resumed run uses
the stored rows, because new ones would spend the privacy budget a second time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from gcvae.cells.distinct_cells import TextColumn
from gcvae.files.source_columns import source_columns
from gcvae.files.table_reader import Rows
from gcvae.schema.columns import TableSchema
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.differential_privacy.budget import Budget
from gcvae.training.differential_privacy.private_table import (
    PrivateTable,
    private_table,
)
from gcvae.training.progress import FitProgress
from gcvae.training.settings import TrainingConfig

_LENGTH_BYTES = 8


def private_rows(
    table: Rows,
    schema: TableSchema | Mapping[str, Any] | None,
    config: TrainingConfig,
    progress: FitProgress,
    seed: int,
    checkpoints: CheckpointStore | None,
) -> tuple[PrivateTable | None, CheckpointStore | None]:
    """Returns the private rows, and the store to use for the checkpoints of training.

    The store saves the private rows together with each checkpoint; it is None if `checkpoints` is
    None. If the settings do not ask for differential privacy, the private rows are None, and the
    store is `checkpoints` itself.

    Args:
        table: The real table.
        schema: Properties of the columns that the user specifies.
        progress: Progress of the fit.
        checkpoints: Store from which private rows are restored, if it contains those of this run;
            None to store nothing.

    Raises:
        SchemaError: The schema lacks what differential privacy needs, such as limits and levels.
        SettingError: The privacy settings do not fit the columns.
        TableError: The input is not a table, or hardly any row fits the schema.
        HardRuleError: Too few private rows satisfy the hard rules.
    """
    budget = Budget.of(config.differential_privacy)
    if budget is None:
        return None, checkpoints
    if checkpoints is None:
        return private_table(table, schema, budget, seed, progress.private), None
    document = schema.to_json() if isinstance(schema, TableSchema) else dict(schema or {})
    run = [asdict(budget), document, seed, _digest(table)]
    key = hashlib.sha256(json.dumps(run, sort_keys=True, default=str).encode()).hexdigest()
    store = PrivateCheckpoints(checkpoints, key)
    if store.rows is None:
        before_queries = checkpoints.before_private_queries
        store.store_rows(
            private_table(table, schema, budget, seed, progress.private, before_queries)
        )
    assert store.rows is not None
    return store.rows, store


def _digest(table: Rows) -> str:
    """Returns the SHA-256 of the real table's cells, a part of the key of stored private rows."""
    digest = hashlib.sha256()
    with source_columns(table) as source:
        for name in source.names:
            digest.update(str(name).encode())
            column = source[name]
            if isinstance(column, TextColumn):
                column = column.texts.to_pandas()
            digest.update(pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes())
    return digest.hexdigest()


class PrivateCheckpoints:
    """A checkpoint store that stores private rows together with each checkpoint of training.

    Attributes:
        interval_seconds: Minimum time between two checkpoints.
        rows: Private rows of the run; None until they are stored.
    """

    def __init__(self, store: CheckpointStore, key: str) -> None:
        """Loads the private rows from the store if they belong to the run that `key` identifies."""
        self._store, self._key = store, key
        self.interval_seconds = store.interval_seconds
        self.rows: PrivateTable | None = None
        self._head, self._checkpoint = b"", b""
        if (data := store.load()) is not None:
            self._read(data)

    def store_rows(self, rows: PrivateTable) -> None:
        """Stores the private rows; call it before they are used."""
        self.rows = rows
        cells = {str(name): rows.cells[name].tolist() for name in rows.cells}
        document = {
            "key": self._key,
            "cells": cells,
            "document": rows.document,
            "record": rows.record,
            "notes": list(rows.notes),
        }
        self._head = json.dumps(document).encode()
        self.save(b"")

    def before_private_queries(self) -> None:
        self._store.before_private_queries()

    def load(self) -> bytes | None:
        return self._checkpoint or None

    def restored(self, *, is_continued: bool) -> None:
        self._store.restored(is_continued=is_continued)

    def save(self, data: bytes) -> None:
        """Stores a checkpoint of training together with the private rows."""
        self._store.save(len(self._head).to_bytes(_LENGTH_BYTES, "big") + self._head + data)

    def _read(self, data: bytes) -> None:
        """Restores private rows and checkpoint from the stored bytes, unless these are of another
        run."""
        end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")
        try:
            found = json.loads(data[_LENGTH_BYTES:end])
        except ValueError:  # a run without privacy, or a truncated file
            return
        if not isinstance(found, dict) or found.get("key") != self._key:
            return
        self._head, self._checkpoint = data[_LENGTH_BYTES:end], data[end:]
        cells = pd.DataFrame(found["cells"], dtype=object)
        self.rows = PrivateTable(cells, found["document"], found["record"], tuple(found["notes"]))
