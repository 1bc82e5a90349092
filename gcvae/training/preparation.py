"""Prepares a table for training: completes its schema, fits codec and rules, encodes the rows.

A table in memory is prepared in memory. A file is read one column or some rows at a time, and
columns and encoded rows are stored in temporary files. Results are identical.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from gcvae.arrays import Codes, Mask
from gcvae.codec.context_codec import ContextCodec
from gcvae.codec.encoded_rows import EncodedRows, encode_rows
from gcvae.codec.table_codec import TableCodec
from gcvae.files.source_columns import source_columns, without_rows
from gcvae.files.table_reader import Rows
from gcvae.files.temporary_files import temporary_files
from gcvae.files.typed_columns import TypedTable, row_chunks, typed_columns
from gcvae.profiling.infer import complete_schema
from gcvae.profiling.table_rules import search_notes, with_rules
from gcvae.profiling.withheld_levels import LearnedTable, without_rare_levels
from gcvae.progress import Report
from gcvae.sampling.hard_rules import HardRules
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.functions import kept_functions
from gcvae.training.held_back import report_rows
from gcvae.training.outer_limits import declared, with_outer_limits
from gcvae.training.private_rows import private_rows
from gcvae.training.progress import FitProgress
from gcvae.training.settings import TrainingConfig

_READ, _INFERRED, _TYPED = 0.2, 0.6, 0.8
"""Finished fraction of the preparation after reading, schema inference and conversion of cells."""


@dataclass(frozen=True)
class Context:
    """Data on which each row of a table depends, such as its parent row, for a model p(row |
    context).

    Attributes:
        cells: Context of each of n rows, with cells converted to the columns' dtypes.
        groups: Index of each row's parent. A value is rare if few parents have it, however many
            rows these have. Shape: (n,).
        parents: Contexts of all parents, each once, including parents without rows; the codec of
            the context is fitted to them. None if the context contains more than the parent's row;
            the codec is then fitted to `cells`.
    """

    cells: pd.DataFrame
    groups: Codes
    parents: pd.DataFrame | None = None

    def twice(self) -> Context:
        """Returns two copies of the context, one after the other, for a table that is repeated."""
        cells = pd.concat([self.cells, self.cells], ignore_index=True)
        return Context(cells, np.concatenate([self.groups, self.groups]), self.parents)

    def codec(self, rare: int) -> ContextCodec:
        """Returns a codec fitted to the context. A value is encoded by a code of its own only if at
        least `rare` parents have it."""
        if self.parents is not None:
            return ContextCodec.fit(self.parents, None, rare)
        return ContextCodec.fit(self.cells, self.groups, rare)


@dataclass(frozen=True)
class PreparedTable:
    """A table that is ready for training.

    Attributes:
        schema: Complete schema.
        codec: Codec fitted to the table, which converts cells to codes.
        hard_rules: Hard rules of the schema, with the combinations of values that the table
            contains.
        context: Codec of the context; None for an unconditional model.
        typed: Table with cells converted to the dtypes of the schema.
        learned: The same table, with rare categories replaced.
        rows: The same table, encoded.
        notes: Data-quality warnings.
        record: Entries for the training record, such as the privacy ledger.
        checkpoints: Store for the checkpoints of training; None to save none.
    """

    schema: TableSchema
    codec: TableCodec
    hard_rules: HardRules
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
    progress: FitProgress | None = None,
    seed: int = 0,
    checkpoints: CheckpointStore | None = None,
    context: Context | None = None,
    held_out: Mask | None = None,
) -> Iterator[PreparedTable]:
    """Context manager that reads a table, completes its schema, fits the codec and encodes the
    rows. Temporary files are deleted at its end.

    Args:
        table: Data frame with parsed cells or text, or the path of a file.
        schema: Properties of columns that the user specifies; all others are inferred.
        progress: Progress of the fit, to which the preparation is reported; None for no reports. An
            exception of its callback ends the preparation.
        checkpoints: Store of the run's checkpoint; None saves none. Under differential privacy it
            also stores the private rows, so that a resumed run does not query the table again.
        context: Context of each row; None for an unconditional model.
        held_out: Mask of the rows that determine when training stops; None selects them at random.
            Shape: (n,).

    Raises:
        TableError: The input is not a table, or none of its columns can be modelled.
        SchemaError: The schema contradicts the table, or rows violate a hard rule.
        OSError: The disk is full.
    """
    progress = progress or FitProgress()
    private, checkpoints = private_rows(table, schema, config, progress, seed, checkpoints)
    if private is not None:
        table, schema = private.cells, private.document
    with ExitStack() as files:
        whole = files.enter_context(source_columns(table, _step_report(progress, 0.0, _READ)))
        source = without_rows(whole, report_rows(len(whole), config.report_share, seed))
        inferring = _step_report(progress, _READ, _INFERRED)
        inferred = complete_schema(source, schema, inferring, rules=False)
        full, typing = inferred.schema, _step_report(progress, _INFERRED, _TYPED)
        typed = files.enter_context(typed_columns(source, full, typing))
        configured = _with_configured_rules(full, config)
        left_out = search_notes(configured)
        full, _ = with_rules(configured, typed, source.line_of)
        rare_rows, with_atoms = config.rare_level_rows, config.encoding == "quantile"
        full = with_outer_limits(full, typed, schema, rare_rows, with_atoms=with_atoms)
        has_entities = private is None and context is None
        used = typed
        if len(source) < len(whole):
            keys = [column for column in full if column.kind.outcomes is Outcomes.KEYS]
            used = files.enter_context(typed_columns(whole, TableSchema(tuple(keys))))
        learned, codec = _learned_table(full, typed, used, schema, config, has_entities)
        hard_rules = HardRules.fit(learned.cells, learned.schema, codec.reduction)
        in_memory = isinstance(typed, pd.DataFrame)
        folder = None if in_memory else files.enter_context(temporary_files())
        rows = encode_rows(codec, learned.cells, folder, _step_report(progress, _TYPED, 1.0))
        notes = (() if private is None else private.notes) + inferred.warnings + left_out
        record = learned.record()
        if private is not None:
            record["differential_privacy"] = private.record
        context_codec = None
        if context is not None:
            context_codec = context.codec(rare_rows)
            rows = replace(rows, context=context_codec.encode(context.cells))
        if held_out is not None:
            rows = replace(rows, held_out=torch.from_numpy(held_out))
        yield PreparedTable(
            schema=learned.schema,
            codec=codec,
            hard_rules=hard_rules,
            context=context_codec,
            typed=typed,
            learned=learned.cells,
            rows=rows,
            notes=notes + learned.notes(rare_rows),
            record=record,
            checkpoints=checkpoints,
        )


def _learned_table(
    schema: TableSchema,
    typed: TypedTable,
    whole: TypedTable,
    given: TableSchema | Mapping[str, Any] | None,
    config: TrainingConfig,
    has_entities: bool,
) -> tuple[LearnedTable, TableCodec]:
    """Returns the table from which the model learns, and the codec that is fitted to it.

    In this table, rare categories are replaced if the setting `encoding` is `quantile`.

    Args:
        schema: Complete schema of the table.
        typed: The table, without the rows that are set aside for a report.
        whole: The table with all rows. The codec generates none of its keys and personal cells.
        given: The user's schema. Categories that it lists are not replaced.
        has_entities: Whether the codec may learn entities: things such as customers, to which
            several rows refer, and which determine some columns.
    """
    rows = config.rare_level_rows if config.encoding == "quantile" else 1
    functions = kept_functions(schema, config)
    declared_names = {name for name in schema.names if "levels" in (declared(name, given) or {})}
    learned = without_rare_levels(schema, typed, declared_names, rows, functions)
    codec = TableCodec.fit(
        learned.cells,
        learned.schema,
        encoding=config.encoding,
        with_rules=config.rules == "model",
        functions=kept_functions(learned.schema, config),
        rare_rows=config.rare_level_rows,
        withheld=learned.withheld,
        with_entities=has_entities and config.rules == "model",
        whole=whole,
    )
    return learned, codec


def _with_configured_rules(schema: TableSchema, config: TrainingConfig) -> TableSchema:
    """Returns the schema with only the hard and the user-specified rules if the setting `rules` is
    `none`; otherwise unchanged."""
    if config.rules != "none":
        return schema
    given = [r for r in schema.rules or () if r.source == "given" or r.keep == "hard"]
    return replace(schema, rules=tuple(given))


def _step_report(progress: FitProgress, start: float, end: float) -> Report:
    return lambda share: progress.preparing(start + (end - start) * share)


def table_digest(table: TypedTable, without: Codes | None = None) -> str:
    """Returns the SHA-256 of the column names and cells of a typed table, in hexadecimal, leaving
    out the rows with the indices `without`."""
    is_kept = np.ones(len(table), dtype=bool)
    is_kept[[] if without is None else without] = False
    digest, n_before = hashlib.sha256("\x1f".join(map(str, table.columns)).encode()), 0
    for block in row_chunks(table):
        hashes = pd.util.hash_pandas_object(block, index=False).to_numpy()
        digest.update(hashes[is_kept[n_before : n_before + len(block)]].tobytes())
        n_before += len(block)
    return digest.hexdigest()
