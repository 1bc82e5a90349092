"""From a table to what a model is trained on: schema, codec, constraints, encoded rows.

A table in memory is prepared in memory. Of a file, memory holds a column at a time, or some rows:
the columns and the encoded rows are kept in temporary files. Both ways give the same to the bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from gcvae.arrays import Mask
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.encoded_rows import EncodedRows, encode_rows
from gcvae.codec.table_codec import TableCodec
from gcvae.constraints.constraint_set import ConstraintSet
from gcvae.files.source_columns import source_columns, without_rows
from gcvae.files.table_reader import Rows
from gcvae.files.temporary_files import temporary_files
from gcvae.files.typed_columns import TypedTable, row_chunks, typed_columns
from gcvae.profiling.infer import complete_schema
from gcvae.profiling.table_rules import search_notes, with_rules
from gcvae.profiling.withheld_levels import LearnedTable, without_rare_levels
from gcvae.progress import Report, report_to_nobody
from gcvae.schema.columns import TableSchema
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.functions import kept_functions
from gcvae.training.held_back import report_rows
from gcvae.training.outer_limits import declared, with_outer_limits
from gcvae.training.private_rows import private_rows
from gcvae.training.progress.fit_costs import TableSize
from gcvae.training.progress.fit_progress import FitProgress
from gcvae.training.settings import TrainingConfig

_READ, _INFERRED, _TYPED = 0.2, 0.6, 0.8
"""Shares of the preparation after which its parts are done, the encoding at last."""


@dataclass(frozen=True)
class Context:
    """Context of the rows of a table: the model is p(row | context).

    Attributes:
        cells: Typed, a row for each of the table's.
        groups: Numbers of the parents, by which rare values are counted. Shape: (n,).
        parents: The contexts of all parents, of which each counts once; those without rows, too.
            None where a context is more than the parent's row.
    """

    cells: pd.DataFrame
    groups: npt.NDArray[np.int64]
    parents: pd.DataFrame | None = None

    def twice(self) -> Context:
        """Every row twice."""
        cells = pd.concat([self.cells, self.cells], ignore_index=True)
        return Context(cells, np.concatenate([self.groups, self.groups]), self.parents)

    def codec(self, rare: int) -> ContextCodec:
        """Returns the codec of the contexts; values of fewer than `rare` parents have no code."""
        if self.parents is not None:
            return ContextCodec.fit(self.parents, None, rare)
        return ContextCodec.fit(self.cells, self.groups, rare)


@dataclass(frozen=True)
class PreparedTable:
    """A table, ready to be trained on.

    Attributes:
        schema: Complete.
        codec: Fitted on the table.
        constraints: Constraints of the schema, with the table's combinations.
        context: Of what each row is given, if it is.
        typed: The table's values.
        learned: The same without the levels that are withheld.
        rows: The table, encoded.
        notes: What one should know of the table: the warnings of its inference.
        record: What the training record is to say beside training's own: the private ledger.
        checkpoints: Where training keeps its own.
    """

    schema: TableSchema
    codec: TableCodec
    constraints: ConstraintSet
    context: ContextCodec | None
    typed: TypedTable
    learned: TypedTable
    rows: EncodedRows
    notes: tuple[str, ...]
    record: dict[str, Any]
    checkpoints: CheckpointStore | None


@contextmanager
def prepared_table(
    table: Rows,
    schema: TableSchema | Mapping[str, Any] | None,
    config: TrainingConfig,
    line: FitProgress | None = None,
    seed: int = 0,
    checkpoints: CheckpointStore | None = None,
    context: Context | None = None,
    held_out: Mask | None = None,
) -> Iterator[PreparedTable]:
    """Reads, infers, fits the codec and encodes; the files that it needs go with the block.

    Args:
        table: Cells as text or typed, or a file.
        schema: What is known of the columns.
        config: Which codec.
        line: Takes the preparation's reports; what it raises ends that.
        seed: Seed of the rows that are held back for a report.
        context: What each row is given, of a conditional model.
        held_out: Which rows decide when training ends; None: a random share. Shape: (n,).
        checkpoints: Where the run is kept. Under differential privacy the private rows are kept
            with it: a run that is taken up again does not ask the table a second time.

    Raises:
        TableError: It is no table, or nothing in it can be modelled.
        SchemaError: The schema contradicts the table, or rows of it break a constraint or a rule
            that is demanded.
        OSError: The disk is full.
    """
    private, checkpoints = private_rows(table, schema, config, line, seed, checkpoints)
    if private is not None:
        table, schema = private.cells, private.document
    with source_columns(table, _part(line, 0.0, _READ)) as whole:
        source = without_rows(whole, report_rows(len(whole), config.report_share, seed))
        if line is not None:
            n_columns = len(source.names)
            line.plan(config, TableSize(len(source), n_columns, n_columns // 2))
        inferred = complete_schema(source, schema, _part(line, _READ, _INFERRED), rules=False)
        full = inferred.schema
        with typed_columns(source, full, _part(line, _INFERRED, _TYPED)) as typed:
            asked = _with_asked(full, config)
            left_out = search_notes(asked)
            full, _ = with_rules(asked, typed, source.line_of)
            full = with_outer_limits(
                full, typed, schema, config.rare_level_rows, with_atoms=config.numbers == "quantile"
            )
            learned, codec = _coded(full, typed, schema, config)
            full, cells = learned.schema, learned.cells
            constraints = ConstraintSet.fit(cells, full)
            in_memory = isinstance(typed, pd.DataFrame)
            with nullcontext() if in_memory else temporary_files() as folder:
                rows = encode_rows(codec, cells, folder, _part(line, _TYPED, 1.0))
                notes = (() if private is None else private.notes) + inferred.warnings + left_out
                notes += learned.notes(config.rare_level_rows)
                record = learned.record()
                if private is not None:
                    record["differential_privacy"] = private.record
                context_codec = None
                if context is not None:
                    context_codec = context.codec(config.rare_level_rows)
                    encoded = context_codec.encode(context.cells)
                    rows = replace(rows, context=encoded)
                if held_out is not None:
                    rows = replace(rows, held_out=torch.from_numpy(held_out))
                yield PreparedTable(
                    schema=full,
                    codec=codec,
                    constraints=constraints,
                    context=context_codec,
                    typed=typed,
                    learned=cells,
                    rows=rows,
                    notes=notes,
                    record=record,
                    checkpoints=checkpoints,
                )


def _coded(
    schema: TableSchema,
    typed: TypedTable,
    given: TableSchema | Mapping[str, Any] | None,
    config: TrainingConfig,
) -> tuple[LearnedTable, TableCodec]:
    """Returns the table as the model learns it, and its codec. Levels are withheld where they are
    learned: a codec that lists them has no mass for those that are not there."""
    rows = config.rare_level_rows if config.levels == "learned" else 1
    functions = kept_functions(schema.rules or (), config)
    said = {name for name in schema.names if "levels" in (declared(name, given) or {})}
    learned = without_rare_levels(schema, typed, said, rows, functions)
    codec = TableCodec.fit(
        learned.cells,
        learned.schema,
        numbers=config.numbers,
        levels=config.levels,
        with_copies=config.copies,
        with_rules=config.rules == "model",
        functions=kept_functions(learned.schema.rules or (), config),
        rare_rows=config.rare_level_rows,
        withheld=learned.withheld,
    )
    return learned, codec


def _with_asked(schema: TableSchema, config: TrainingConfig) -> TableSchema:
    """Returns the schema with the rules that the settings ask for: without them those that users
    gave."""
    if config.rules != "none":
        return schema
    given = [r for r in schema.rules or () if r.source == "given" or r.keep == "hard"]
    return replace(schema, rules=tuple(given))


def _part(line: FitProgress | None, start: float, end: float) -> Report:
    """What takes the progress of a part of the preparation."""
    if line is None:
        return report_to_nobody
    return lambda share: line.preparing(start + (end - start) * share)


def table_digest(table: TypedTable, without: npt.NDArray[np.int64] | None = None) -> str:
    """sha256 over a typed table's cells, names and order; without the rows of some numbers."""
    is_kept = np.ones(len(table), dtype=bool)
    is_kept[[] if without is None else without] = False
    digest, n_before = hashlib.sha256("\x1f".join(map(str, table.columns)).encode()), 0
    for block in row_chunks(table):
        hashes = pd.util.hash_pandas_object(block, index=False).to_numpy()
        digest.update(hashes[is_kept[n_before : n_before + len(block)]].tobytes())
        n_before += len(block)
    return digest.hexdigest()
