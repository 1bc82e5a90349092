"""The rows that training sees under differential privacy, and where an interrupted run keeps them.

The table is asked once: a run that is taken up again goes on with the private rows that it had.
Drawn anew they would cost the budget a second time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa

from gcvae.cells.distinct_cells import TextColumn
from gcvae.files.source_columns import source_columns
from gcvae.files.table_reader import Rows
from gcvae.schema.columns import TableSchema
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.differential_privacy.budget import Budget
from gcvae.training.differential_privacy.private_table import (
    PhaseReport,
    PrivateTable,
    private_table,
)
from gcvae.training.progress.fit_progress import FitProgress
from gcvae.training.settings import TrainingConfig

_LENGTH_BYTES = 8


def private_rows(
    table: Rows,
    schema: TableSchema | Mapping[str, Any] | None,
    config: TrainingConfig,
    line: FitProgress | None,
    seed: int,
    checkpoints: CheckpointStore | None,
) -> tuple[PrivateTable | None, CheckpointStore | None]:
    """Returns (the private rows, where training keeps its checkpoints); none where nothing is
    promised.

    Raises:
        SchemaError, SettingError, TableError, HardRuleError: As `private_table`.
    """
    budget = Budget.of(config.differential_privacy)
    if budget is None:
        return None, checkpoints

    def report(phase: str, share: float) -> None:
        if line is not None:
            line.private(phase, share)

    if checkpoints is None:
        return private_table(table, schema, budget, seed, report), None
    return _kept_rows(table, schema, budget, seed, report, checkpoints)


def _kept_rows(
    table: Rows,
    schema: TableSchema | Mapping[str, Any] | None,
    budget: Budget,
    seed: int,
    report: PhaseReport,
    checkpoints: CheckpointStore,
) -> tuple[PrivateTable, CheckpointStore]:
    """Returns the private rows of the run that the store keeps; drawn and kept there if it is
    another."""
    document = schema.to_json() if isinstance(schema, TableSchema) else dict(schema or {})
    run = [asdict(budget), document, seed, _digest(table)]
    key = hashlib.sha256(json.dumps(run, sort_keys=True, default=str).encode()).hexdigest()
    store = PrivateCheckpoints(checkpoints, key)
    if store.rows is None:
        begins = checkpoints.counting
        store.keep(private_table(table, schema, budget, seed, report, begins))
    assert store.rows is not None
    return store.rows, store


def _digest(table: Rows) -> str:
    """sha256 over a real table's cells. It is kept with the checkpoint and goes with it."""
    digest = hashlib.sha256()
    with source_columns(table) as source:
        for name in source.names:
            digest.update(str(name).encode())
            column = source[name]
            if isinstance(column, TextColumn):
                column = column.texts.cast(pa.string()).to_pandas()
            digest.update(pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes())
    return digest.hexdigest()


class PrivateCheckpoints:
    """A store of checkpoints that keeps private rows in front of each.

    Attributes:
        rows: Rows of the run, as far as the store has them.
    """

    def __init__(self, store: CheckpointStore, key: str) -> None:
        """Reads what the store has; `key` is what makes two runs the same."""
        self._store, self._key = store, key
        self.interval_seconds = store.interval_seconds
        self.rows: PrivateTable | None = None
        self._head, self._checkpoint = b"", b""
        if (data := store.load()) is not None:
            self._read(data)

    def keep(self, rows: PrivateTable) -> None:
        """Keeps the rows, before anything is made of them."""
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

    def counting(self) -> None:
        """Hands on that the table is about to be asked."""
        self._store.counting()

    def load(self) -> bytes | None:
        """Training's own checkpoint."""
        return self._checkpoint or None

    def restored(self, *, is_continued: bool) -> None:
        """Hands on whether the run continues."""
        self._store.restored(is_continued=is_continued)

    def save(self, data: bytes) -> None:
        """Keeps training's checkpoint behind the rows."""
        self._store.save(len(self._head).to_bytes(_LENGTH_BYTES, "big") + self._head + data)

    def _read(self, data: bytes) -> None:
        """Takes the rows up, if they are of this very run."""
        end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")
        try:
            found = json.loads(data[_LENGTH_BYTES:end])
        except ValueError:  # of a run without privacy, or cut off
            return
        if not isinstance(found, dict) or found.get("key") != self._key:
            return
        self._head, self._checkpoint = data[_LENGTH_BYTES:end], data[end:]
        cells = pd.DataFrame(found["cells"], dtype=object)
        self.rows = PrivateTable(cells, found["document"], found["record"], tuple(found["notes"]))
