"""The rows of a report: which of them training learned from, and which it did not see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch

from gcvae.cells.values import parse_table
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import TableError, UnknownColumnError
from gcvae.evaluation.report.rows import ReportRows
from gcvae.files.source_columns import source_columns
from gcvae.files.table_reader import Rows, given_frame
from gcvae.numerics.generators import generator_for
from gcvae.profiling.infer import complete_schema
from gcvae.rules.search import measured
from gcvae.schema.columns import TableSchema
from gcvae.training.held_back import MOST_REPORT_ROWS, report_rows
from gcvae.training.loop import split
from gcvae.training.preparation import table_digest

_REFERENCE_SHARE = 0.1
"""Share of the real rows that are set aside as reference where no training did."""


class Model(Protocol):
    """What a report asks of a synthesizer."""

    schema: TableSchema
    codec: TableCodec
    training_record: dict[str, Any]

    def sample(self, rows: int, seed: int) -> pd.DataFrame:
        """Synthetic rows."""

    def log_likelihood(
        self, frame: Rows, draws: int = 100, seed: int = 0, **options: Any
    ) -> pd.DataFrame:
        """How likely rows are, a line each."""


def rows_of_report(
    model: Model | None,
    real: Rows,
    holdout: Rows | None,
    synthetic: Rows | None,
    seed: int,
) -> ReportRows:
    """Reads the tables, tells members from the others, and draws rows where none are given.

    Raises:
        TableError: A table can not be read, lacks a column of the model, or has too few rows.
        UnknownColumnError: A table has a column that the model does not know.
    """
    if model is None and synthetic is None:
        raise TableError("there is neither a model nor a synthetic table to judge")
    cells = given_frame(real)
    schema = model.schema if model is not None else _inferred(cells)
    typed = _typed(cells, schema, "the real table")
    unseen = None if holdout is None else _typed(given_frame(holdout), schema, "the holdout")
    record = {} if model is None else model.training_record
    typed, held_back, is_training_table = _training_table(typed, record)
    unseen = held_back if unseen is None else unseen
    members, reference = _members(typed, record if is_training_table else {}, seed)
    members, unseen = (
        _shuffled(members, seed),
        unseen if unseen is None else _shuffled(unseen, seed),
    )
    drawn = (
        model.sample(min(len(typed), MOST_REPORT_ROWS), seed)
        if synthetic is None and model is not None
        else given_frame(synthetic)
    )
    typed_drawn = _typed(drawn, schema, "the synthetic table")
    return ReportRows(
        schema,
        members,
        reference,
        unseen,
        _shuffled(typed_drawn, seed),
        is_training_table,
        are_from_model=synthetic is None,
        rules_kept=_rules_kept(record, schema, typed_drawn),
    )


def _inferred(cells: pd.DataFrame) -> TableSchema:
    with source_columns(cells) as source:
        return complete_schema(source, None, rules=False).schema


def _typed(cells: pd.DataFrame, schema: TableSchema, what: str) -> pd.DataFrame:
    """The values of a table; its problems name which table it is."""
    try:
        typed = parse_table(cells, schema).reset_index(drop=True)
    except (TableError, UnknownColumnError) as error:
        problems = [replace(p, message=f"{what}: {p.message}") for p in error.problems]
        raise type(error)(*problems) from None
    if len(typed) < 2:
        raise TableError(f"{what} has {len(typed)} rows; a report needs two at least")
    return typed


def _training_table(
    typed: pd.DataFrame, record: Mapping[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame | None, bool]:
    """The rows that training saw, those that it held back, and whether it was this table.

    A table is known by its digest: as it is, or without the rows that were held back of it.
    """
    digest = record.get("table_sha256")
    if digest is None:
        return typed, None, False
    share = record["settings"].get("report_share", 0.0)
    if share:
        held_back = np.zeros(len(typed), dtype=bool)
        held_back[report_rows(len(typed), share, record["seed"])] = True
        rest = typed[~held_back].reset_index(drop=True)
        if table_digest(rest) == digest:
            return rest, typed[held_back].reset_index(drop=True), True
    return typed, None, table_digest(typed) == digest


def _members(
    typed: pd.DataFrame, record: Mapping[str, Any], seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(members, reference): by the training's own split where its record is given."""
    if record:
        train, stopping = split(len(typed), record["settings"]["held_out_share"], record["seed"])
    else:
        order = torch.randperm(len(typed), generator=generator_for(seed, "report reference"))
        n_reference = max(1, round(_REFERENCE_SHARE * len(typed)))
        train, stopping = order[n_reference:], order[:n_reference]
    return (
        typed.iloc[train.numpy()].reset_index(drop=True),
        typed.iloc[stopping.numpy()].reset_index(drop=True),
    )


def _shuffled(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The rows in an order that has no meaning, so that the first of them are any."""
    order = torch.randperm(len(frame), generator=generator_for(seed, "report order"))
    return frame.iloc[order.numpy()].reset_index(drop=True)


def _rules_kept(
    record: Mapping[str, Any], schema: TableSchema, drawn: pd.DataFrame
) -> dict[str, float | None]:
    """The share of the drawn rows that keeps each rule that the model was made with."""
    known = {found["formula"] for found in record.get("rules", ())}
    rules = [rule for rule in schema.rules or () if str(rule) in known]
    findings = measured(rules, drawn, schema) if rules else []
    return {str(r): f.rule.share for r, f in zip(rules, findings, strict=True)}
