"""The rows of a report: which of them training learned from, and which it did not see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from gcvae.cells.values import check_columns
from gcvae.codec.key_learning import LEAST_SHARED_ROWS
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import TableError, UnknownColumnError
from gcvae.evaluation.report.rows import KeptRule, ReportRows
from gcvae.files.source_columns import source_columns
from gcvae.files.table_reader import Rows
from gcvae.files.typed_columns import TypedTable, rows_at, typed_columns
from gcvae.numerics.generators import generator_for
from gcvae.profiling.infer import complete_schema
from gcvae.rules.search import measured
from gcvae.schema.columns import TableSchema
from gcvae.training.held_back import MOST_REPORT_ROWS, report_rows
from gcvae.training.loop import split
from gcvae.training.preparation import table_digest

_REFERENCE_SHARE = 0.1
"""Share of the real rows that are set aside as reference where no training did."""
RowNumbers = npt.NDArray[np.int64]


class Model(Protocol):
    """Interface of a synthesizer that a report needs."""

    schema: TableSchema
    codec: TableCodec
    training_record: dict[str, Any]
    scoring: str

    def sample(self, rows: int, seed: int, *, frames: str) -> pd.DataFrame:
        """Synthetic rows."""

    def log_likelihood(
        self, frame: Rows, draws: int, seed: int, *, score_missingness: bool
    ) -> pd.DataFrame:
        """Returns the score of each row."""


@dataclass(frozen=True)
class _Sorts:
    """The numbers of the rows of each sort in the real table. Shape: (m,) each."""

    members: RowNumbers
    reference: RowNumbers
    held_back: RowNumbers
    is_training_table: bool


def rows_of_report(
    model: Model | None,
    real: Rows,
    holdout: Rows | None,
    synthetic: Rows | None,
    seed: int,
) -> ReportRows:
    """Reads the tables, tells members from the others, and draws rows where none are given.

    Of each sort at most `MOST_REPORT_ROWS` are taken, at random. A table in a file stays there:
    memory holds a column of it at a time, and the rows that are taken.

    Raises:
        TableError: A table can not be read, lacks a column of the model, or has too few rows.
        UnknownColumnError: A table has a column that the model does not know.
        OSError: The disk is full.
    """
    if model is None and synthetic is None:
        raise TableError("a report needs a model or a synthetic table")
    schema = _inferred(real) if model is None else model.schema
    record = {} if model is None else model.training_record
    with _typed(real, schema, "the real table") as typed:
        sizes, sorts = {"real": len(typed)}, _sorts(typed, record, seed)
        numbers = sorts.members, sorts.reference, sorts.held_back
        members, reference, held_back = (_taken(typed, rows, seed) for rows in numbers)
    unseen = held_back if len(held_back) else None
    if holdout is not None:
        with _typed(holdout, schema, "the holdout") as typed:
            sizes["holdout"] = len(typed)
            unseen = _taken(typed, np.arange(len(typed)), seed)
    n_seen = len(sorts.members) + len(sorts.reference)
    with _typed(_drawn(model, synthetic, n_seen, seed), schema, "the synthetic table") as typed:
        sizes |= {} if synthetic is None else {"synthetic": len(typed)}
        drawn = _taken(typed, np.arange(len(typed)), seed)
        kept = _rules_kept(record, schema, typed)
    tables = members, reference, unseen, drawn
    of_model = sorts.is_training_table, synthetic is None, kept
    moved = record.get("constraint_acceptance", {}).get("moved", ())
    return ReportRows(
        schema,
        *tables,
        *of_model,
        sizes,
        bool(record.get("is_minimal")),
        moved,
        _rare_rows(record, n_seen / max(sizes["real"], 1)),
        model is not None,
    )


def _rare_rows(record: Mapping[str, Any], share: float) -> int:
    """Returns a text that fewer of the rows have is rare: as the model was told, else one of few
    rows of the real table, of which a share was taken."""
    settings = record.get("settings")
    if settings is None:
        return max(int(LEAST_SHARED_ROWS * share), 1)
    return int(settings["rare_level_rows"]) if settings["levels"] == "learned" else 1


def _inferred(real: Rows) -> TableSchema:
    with source_columns(real) as source:
        return complete_schema(source, None, rules=False).schema


def _drawn(model: Model | None, synthetic: Rows | None, n_seen: int, seed: int) -> Rows:
    """Returns the table to judge: rows of the model where none is given."""
    if model is None or synthetic is not None:
        return synthetic
    return model.sample(min(n_seen, MOST_REPORT_ROWS), seed, frames="pandas")


@contextmanager
def _typed(rows: Rows, schema: TableSchema, what: str) -> Iterator[TypedTable]:
    """Yields the values of a table; its problems name which table it is."""
    with ExitStack() as files:
        try:
            source = files.enter_context(source_columns(rows))
            check_columns(source.names, schema)
            present = tuple(column for column in schema if column.name in set(source.names))
            typed = files.enter_context(typed_columns(source, TableSchema(present)))
        except (TableError, UnknownColumnError) as error:
            problems = [replace(p, message=f"{what}: {p.message}") for p in error.problems]
            raise type(error)(*problems) from None
        if len(typed) < 2:
            raise TableError(f"{what} has {len(typed)} rows; a report needs at least 2")
        yield typed


def _sorts(typed: TypedTable, record: Mapping[str, Any], seed: int) -> _Sorts:
    """Which rows training learned from, which decided when to stop, and which it held back.

    The table of the training is known by its digest: as it is, or without the rows that were held
    back of it. Of any other all rows count as members, but for those set aside as reference.
    """
    every, digest = np.arange(len(typed)), record.get("table_sha256")
    if digest is not None:
        share, held_out = (
            record["settings"].get(k, 0.0) for k in ("report_share", "held_out_share")
        )
        for held_back in (report_rows(len(typed), share, record["seed"]), every[:0]):
            if table_digest(typed, without=held_back) == digest:
                seen = np.delete(every, held_back)
                train, stopping = split(len(seen), held_out, record["seed"])
                return _Sorts(seen[train.numpy()], seen[stopping.numpy()], held_back, True)
    order = torch.randperm(len(typed), generator=generator_for(seed, "report reference")).numpy()
    n_reference = max(1, round(_REFERENCE_SHARE * len(typed)))
    return _Sorts(order[n_reference:], order[:n_reference], every[:0], False)


def _taken(typed: TypedTable, rows: RowNumbers, seed: int) -> pd.DataFrame:
    """At most `MOST_REPORT_ROWS` of the rows, in an order without meaning: the first are any."""
    order = torch.randperm(len(rows), generator=generator_for(seed, "report order")).numpy()
    return rows_at(typed, rows[order[:MOST_REPORT_ROWS]]).reset_index(drop=True)


def _rules_kept(
    record: Mapping[str, Any], schema: TableSchema, drawn: TypedTable
) -> tuple[KeptRule, ...]:
    """How many of the drawn rows keep each rule that the model was made with."""
    shares = {found["formula"]: found.get("share") for found in record.get("rules", ())}
    rules = [rule for rule in schema.rules or () if shares.get(str(rule)) is not None]
    findings = measured(rules, drawn, schema) if rules else []
    return tuple(
        KeptRule(str(rule), shares[str(rule)], found.kept / found.rows, found.rows, len(drawn))
        for rule, found in zip(rules, findings, strict=True)
        if found.rows
    )
