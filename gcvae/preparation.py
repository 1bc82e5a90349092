"""From a table to what a model is trained on: schema, codec, constraints, encoded rows.

A table in memory is prepared in memory. Of a file, memory holds a column at a time, or some rows:
the columns and the encoded rows are kept in temporary files. Both ways give the same to the bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gcvae.codec import TableCodec
from gcvae.constraint_set import ConstraintSet
from gcvae.encoded_rows import EncodedRows, encode_rows
from gcvae.inference import complete_schema
from gcvae.presets import TrainingConfig
from gcvae.schema import TableSchema
from gcvae.source_columns import Tell, source_columns
from gcvae.table_reader import TableReader
from gcvae.temporary_files import temporary_files
from gcvae.training_progress import Progress
from gcvae.typed_columns import TypedTable, row_blocks, typed_columns

_READ, _INFERRED, _TYPED = 0.2, 0.6, 0.8
"""Shares of the preparation after which its parts are done, the encoding at last."""


@dataclass(frozen=True)
class PreparedTable:
    """A table, ready to be trained on.

    Attributes:
        schema: Complete.
        codec: Fitted on the table.
        constraints: Of the schema, with the table's combinations.
        typed: The table's values.
        rows: The table, encoded.
    """

    schema: TableSchema
    codec: TableCodec
    constraints: ConstraintSet
    typed: TypedTable
    rows: EncodedRows


@contextmanager
def prepared_table(
    table: pd.DataFrame | TableReader,
    schema: TableSchema | Mapping[str, Any] | None,
    config: TrainingConfig,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[PreparedTable]:
    """Reads, infers, fits the codec and encodes; the files that it needs go with the block.

    Args:
        table: Cells as text or typed, or a file.
        schema: What is known of the columns.
        config: Which codec.
        progress: Called with the phase `preparing`; what it raises ends the preparation.

    Raises:
        TableError: It is no table, or nothing in it can be modelled.
        SchemaError: The schema contradicts the table, or rows of it break a constraint.
        OSError: The disk is full.
    """
    with source_columns(table, _part(progress, 0.0, _READ)) as source:
        full = complete_schema(source, schema, _part(progress, _READ, _INFERRED)).schema
        with typed_columns(source, full, _part(progress, _INFERRED, _TYPED)) as typed:
            codec = TableCodec.fit(
                typed,
                full,
                numbers=config.numbers,
                levels=config.levels,
                with_copies=config.copies,
            )
            constraints = ConstraintSet.fit(typed, full)
            in_memory = isinstance(typed, pd.DataFrame)
            with nullcontext() if in_memory else temporary_files() as folder:
                rows = encode_rows(codec, typed, folder, _part(progress, _TYPED, 1.0))
                yield PreparedTable(full, codec, constraints, typed, rows)


def _part(progress: Callable[[Progress], None] | None, start: float, end: float) -> Tell:
    """What tells the progress of a part of the preparation."""

    def tell(fraction: float) -> None:
        if progress is not None:
            done = start + (end - start) * fraction
            progress(Progress(phase="preparing", fraction=done, epoch=0, epochs=0))

    return tell


def table_digest(table: TypedTable) -> str:
    """sha256 over a typed table's cells, names and order."""
    digest = hashlib.sha256("\x1f".join(map(str, table.columns)).encode())
    for block in row_blocks(table):
        digest.update(pd.util.hash_pandas_object(block, index=False).to_numpy().tobytes())
    return digest.hexdigest()
