"""Selects the rows of a report: training rows, held-out rows and unseen rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch

from gcvae.arrays import Codes
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
"""Share of real rows set aside as reference rows, if training held out none."""


class Model(Protocol):
    """The part of a fitted synthesizer's interface that a report uses."""

    schema: TableSchema
    codec: TableCodec
    training_record: dict[str, Any]
    scoring: str

    def sample(self, rows: int, seed: int, *, frames: str) -> pd.DataFrame:
        """Returns `rows` synthetic rows as a frame of the library `frames`, such as `pandas`."""

    def log_likelihood(
        self, frame: Rows, draws: int, seed: int, *, score_missingness: bool
    ) -> pd.DataFrame:
        """Returns the log-likelihood of each row, with the percentile among held-out rows."""


@dataclass(frozen=True)
class _RealRows:
    """Indices of rows of the real table by their use in a report. Shape: (m,) each.

    Attributes:
        members: Training rows.
        reference: Rows to which reference models are fitted; held out for early stopping.
        held_back: Unseen rows, which training set aside.
        is_training_table: Whether the table is the one the model was trained on.
    """

    members: Codes
    reference: Codes
    held_back: Codes
    is_training_table: bool


def rows_of_report(
    model: Model | None,
    real: Rows,
    holdout: Rows | None,
    synthetic: Rows | None,
    seed: int,
) -> ReportRows:
    """Reads the tables, splits the real rows into groups, and generates synthetic rows if needed;
    the arguments are those of `make_report`.

    Each group is a random sample of at most `MOST_REPORT_ROWS` rows. Files are read column by
    column, so memory holds one column and the sampled rows.

    Raises:
        TableError: A table cannot be read, lacks a column of the model, or has too few rows.
        UnknownColumnError: A table contains a column that is not in the model.
        OSError: The disk is full.
    """
    if model is None and synthetic is None:
        raise TableError("a report needs a model or a synthetic table")
    schema = _inferred(real) if model is None else model.schema
    record = {} if model is None else model.training_record
    with _typed(real, schema, "the real table") as typed:
        sizes, groups = {"real": len(typed)}, _split_real_rows(typed, record, seed)
        numbers = groups.members, groups.reference, groups.held_back
        members, reference, held_back = (_sampled(typed, rows, seed) for rows in numbers)
    set_aside = held_back if len(held_back) else None
    unseen = set_aside
    if holdout is not None:
        with _typed(holdout, schema, "the holdout") as typed:
            sizes["holdout"] = len(typed)
            unseen = _sampled(typed, np.arange(len(typed)), seed)
    n_seen = len(groups.members) + len(groups.reference)
    with _typed(_drawn(model, synthetic, n_seen, seed), schema, "the synthetic table") as typed:
        sizes |= {} if synthetic is None else {"synthetic": len(typed)}
        drawn = _sampled(typed, np.arange(len(typed)), seed)
        kept = _rules_kept(record, schema, typed)
    tables = members, reference, unseen, drawn
    of_model = groups.is_training_table, synthetic is None, kept
    moved = record.get("hard_rule_acceptance", {}).get("moved", ())
    return ReportRows(
        schema,
        *tables,
        *of_model,
        sizes,
        bool(record.get("is_minimal")),
        moved,
        _rare_rows(record, n_seen / max(sizes["real"], 1)),
        model is not None,
        record.get("differential_privacy"),
        set_aside,
    )


def _rare_rows(record: Mapping[str, Any], share: float) -> int:
    """Returns the number of rows below which a text counts as rare. It is the model's setting
    `rare_level_rows`, or 1 if the model does not suppress rare levels. Without a model (`record` is
    empty), it is `LEAST_SHARED_ROWS` times `share`, but at least 1. `share` is the share of the
    table's rows that the report uses."""
    settings = record.get("settings")
    if settings is None:
        return max(int(LEAST_SHARED_ROWS * share), 1)
    return int(settings["rare_level_rows"]) if settings["encoding"] == "quantile" else 1


def _inferred(real: Rows) -> TableSchema:
    with source_columns(real) as source:
        return complete_schema(source, None, rules=False).schema


def _drawn(model: Model | None, synthetic: Rows | None, n_seen: int, seed: int) -> Rows:
    """Returns the synthetic table or, if it is None, as many generated rows as training used
    (`n_seen`), but at most `MOST_REPORT_ROWS`."""
    if model is None or synthetic is not None:
        return synthetic
    return model.sample(min(n_seen, MOST_REPORT_ROWS), seed, frames="pandas")


@contextmanager
def _typed(rows: Rows, schema: TableSchema, what: str) -> Iterator[TypedTable]:
    """Context manager that yields a table's typed cells; `what` names the table in errors."""
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


def _split_real_rows(typed: TypedTable, record: Mapping[str, Any], seed: int) -> _RealRows:
    """Splits the real rows into members (training rows), reference rows and unseen rows.

    The training table is recognised by its digest, with or without the rows that were set aside. In
    any other table all rows are members, except for randomly chosen reference rows.
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
                return _RealRows(seen[train.numpy()], seen[stopping.numpy()], held_back, True)
    order = torch.randperm(len(typed), generator=generator_for(seed, "report reference")).numpy()
    n_reference = max(1, round(_REFERENCE_SHARE * len(typed)))
    return _RealRows(order[n_reference:], order[:n_reference], every[:0], False)


def _sampled(typed: TypedTable, rows: Codes, seed: int) -> pd.DataFrame:
    order = torch.randperm(len(rows), generator=generator_for(seed, "report order")).numpy()
    return rows_at(typed, rows[order[:MOST_REPORT_ROWS]]).reset_index(drop=True)


def _rules_kept(
    record: Mapping[str, Any], schema: TableSchema, drawn: TypedTable
) -> tuple[KeptRule, ...]:
    """Returns, for each rule of the model, the share of synthetic rows that satisfy it."""
    shares = {found["formula"]: found.get("share") for found in record.get("rules", ())}
    rules = [rule for rule in schema.rules or () if shares.get(str(rule)) is not None]
    findings = measured(rules, drawn, schema) if rules else []
    return tuple(
        KeptRule(str(rule), shares[str(rule)], found.kept / found.rows, found.rows, len(drawn))
        for rule, found in zip(rules, findings, strict=True)
        if found.rows
    )
