"""Makes a private table: rows sampled from an estimate that was fitted to noisy counts.

All later steps (training, scores, maps, rules, schema) are post-processing of these rows and keep
the privacy guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import torch

from gcvae.arrays import Codes
from gcvae.cells.values import format_table, placed_values
from gcvae.errors import HardRuleError, TableError
from gcvae.files.source_columns import source_columns
from gcvae.files.table_reader import Rows
from gcvae.numerics.generators import generator_for
from gcvae.sampling.hard_rules import HardRules
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.training.differential_privacy.bins import Bins, column_bins
from gcvae.training.differential_privacy.budget import Budget
from gcvae.training.differential_privacy.cell_codes import MISSING, UNFIT, column_codes
from gcvae.training.differential_privacy.counts import BinnedRows, candidate_pairs
from gcvae.training.differential_privacy.declared import DeclaredTable, ValueLine, declared_table
from gcvae.training.differential_privacy.discovery import discovered_levels
from gcvae.training.differential_privacy.estimate import MOST_COMPONENTS, Estimate
from gcvae.training.differential_privacy.ledger import Ledger, variance_of
from gcvae.training.differential_privacy.selection import Selection, first_deviation

FEW_ROWS = 5_000
"""Tables with fewer rows get a warning that noise hides most of their structure."""
LEAST_ROWS = 50
_LEFT_OUT_SHARE, _LEVELS_SHARE = Fraction(1, 200), Fraction(1, 20)
_BINS_SHARE, _ONE_WAY_SHARE = Fraction(1, 20), Fraction(1, 10)
_FIRST_STEPS, _LAST_STEPS = 100, 400
_MOST_DRAWS = 20

PhaseReport = Callable[[str, float], None]
"""Receives the phase, `counting` or `estimating`, and the share of it that is done."""


@dataclass(frozen=True)
class PrivateTable:
    """Private rows, for training in place of the table.

    Attributes:
        cells: Cells as text, with the columns of the real table in their order.
        document: The declared schema, with discovered levels.
        record: The privacy ledger, for the training record.
        notes: Data-quality warnings.
    """

    cells: pd.DataFrame
    document: dict[str, Any]
    record: dict[str, Any]
    notes: tuple[str, ...]


def private_table(
    table: Rows,
    schema: TableSchema | Mapping[str, Any] | None,
    budget: Budget,
    seed: int,
    report: PhaseReport = lambda phase, share: None,
    on_first_query: Callable[[], None] = lambda: None,
) -> PrivateTable:
    """Returns the private rows of a real table.

    Args:
        table: Real table.
        schema: Declarations of its columns.
        budget: Privacy budget; all of it is spent.
        seed: Seed of the post-processing. The noise has none.
        report: Receives the progress, which depends on noisy counts only.
        on_first_query: Is called after the declarations were checked, before the first query.

    Raises:
        SchemaError: Declarations are missing; the problems have the lines to add.
        SettingError: The target is not a column with levels.
        TableError: The input is not a table, or hardly any row fits its declarations.
        HardRuleError: Too few rows of the estimate keep the hard rules.
    """
    ledger = Ledger(budget.epsilon, budget.delta, budget.threshold_delta)
    generator = generator_for(seed, "private estimate")
    random = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
    report("counting", 0.0)
    with source_columns(table) as source:
        declared = declared_table([str(name) for name in source.names], schema, budget)
        on_first_query()
        if declared.discovered:
            open_columns = [c for c in declared.columns if c.name in declared.discovered]
            rho = ledger.rho * _LEVELS_SHARE
            declared = declared.with_levels(discovered_levels(source, open_columns, rho, ledger))
        codes = np.stack([column_codes(source, column) for column in declared.columns], axis=1)
    report("counting", 0.5)
    fits = ~(codes == UNFIT).any(axis=1)
    n_left_out = _noisy_count(~fits, ledger)
    counts = _Counts(declared, codes[fits], budget, ledger)
    del codes
    report("counting", 1.0)
    estimate = _estimated(counts, ledger, generator, random, report)
    values = _drawn(estimate, counts, declared.schema, random)
    record = ledger.to_json() | {
        "setting": {"target": budget.target, "discover": list(budget.discover)},
        "rows_estimated": len(values),
        "rows_left_out_estimated": n_left_out,
        "declared": [column.to_json() for column in declared.schema],
    }
    cells = format_table(values, declared.schema)
    blank = {column.name: "" for column in declared.schema if column.drop}
    cells = cells.assign(**blank)[list(declared.schema.names)]
    return PrivateTable(cells, declared.document, record, _notes(len(values), n_left_out))


def _noisy_count(chosen: Any, ledger: Ledger) -> int:
    """Returns the number of true entries of `chosen` with noise, at least 0."""
    [noise] = ledger.noise("rows left out", (), 1, ledger.rho * _LEFT_OUT_SHARE)
    return max(0, int(np.count_nonzero(chosen)) + int(noise))


def private_bins(columns: tuple[Column, ...], codes: Codes, ledger: Ledger) -> list[Bins]:
    """Returns the bins of each column, for their share of the budget. Shape: codes (n, D)."""
    for_pairs = ledger.left - ledger.rho * (_BINS_SHARE + _ONE_WAY_SHARE)
    deviation = first_deviation(for_pairs, len(columns))
    return column_bins(columns, codes, ledger.rho * _BINS_SHARE, ledger, deviation)


class _Counts:
    """Binned rows and their noisy one-way counts.

    Attributes:
        bins: Bins of each column.
        rows: Real rows, as bins.
        one_way: Noisy counts of each column, with their precisions.
        n_rows: Estimated number of rows.
    """

    def __init__(
        self, declared: DeclaredTable, codes: Codes, budget: Budget, ledger: Ledger
    ) -> None:
        columns = declared.columns
        names = [column.name for column in columns]
        self.names = names
        self.bins = private_bins(columns, codes, ledger)
        binned = np.stack([b.of(codes[:, j]) for j, b in enumerate(self.bins)], axis=1)
        sizes = tuple(b.n for b in self.bins)
        target = None if budget.target is None else names.index(budget.target)
        self.rows = BinnedRows(binned, sizes, target)
        rho = ledger.rho * _ONE_WAY_SHARE / len(columns)
        precision = 1 / float(variance_of(rho))
        noise = [
            ledger.noise("one-way", (name,), size, rho)
            for name, size in zip(names, sizes, strict=True)
        ]
        self.one_way = [
            ((self.rows.one_way(j) + noise[j]).astype(np.float64), precision)
            for j in range(len(names))
        ]
        weights = np.array([1.0 / size for size in sizes])  # a sum of n_j noisy counts
        sums = np.array([counts.sum() for counts, _ in self.one_way])
        self.n_rows = float(weights @ sums / weights.sum())


def _estimated(
    counts: _Counts,
    ledger: Ledger,
    generator: torch.Generator,
    random: np.random.Generator,
    report: PhaseReport,
) -> Estimate:
    """Returns the estimate after all rounds of measurement.

    Raises:
        TableError: The estimated number of rows is too small.
    """
    if counts.n_rows < LEAST_ROWS:
        message = f"under {LEAST_ROWS} rows seem to fit the declared schema, as far as noise shows"
        raise TableError(f"{message} (expected: levels and missing cells declared as they are)")
    rows = counts.rows
    n_components = min(MOST_COMPONENTS, max(LEAST_ROWS, round(counts.n_rows / 10)))
    estimate = Estimate(
        rows.sizes, rows.target, counts.n_rows, counts.one_way, generator, n_components
    )
    report("estimating", 0.0)
    estimate.fit(_FIRST_STEPS)
    pairs = candidate_pairs(rows.sizes, rows.target, random)
    selection = Selection(rows, counts.names, pairs, ledger, estimate)
    selection.run(lambda share: report("estimating", 0.8 * share))
    estimate.fit(_LAST_STEPS, anneal=True)
    report("estimating", 1.0)
    return estimate


def _drawn(
    estimate: Estimate, counts: _Counts, schema: TableSchema, random: np.random.Generator
) -> pd.DataFrame:
    """Returns as many sampled rows as the table is estimated to have, all keeping the
    hard rules.

    Raises:
        HardRuleError: Too few rows keep the hard rules.
    """
    n = max(1, round(estimate.n_rows))
    kept: list[pd.DataFrame] = []
    for _ in range(_MOST_DRAWS):
        bins = estimate.draw(n, random)
        frame = values_of_bins(bins, counts.bins, counts.names, schema, random)
        kept.append(_keeping_hard_rules(frame, schema))
        if sum(map(len, kept)) >= n:
            rows = pd.concat(kept, ignore_index=True).iloc[:n]
            return _with_unmodelled(rows, schema)
    n_kept = sum(map(len, kept))
    raise HardRuleError(
        f"{n_kept:,} of {_MOST_DRAWS * n:,} rows of the private estimate keep the hard rules"
        " (expected: hard rules that columns satisfy mostly by themselves)"
    )


def _keeping_hard_rules(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    hard = HardRules.fit(frame, schema)
    return frame.take(np.flatnonzero(hard.kept(frame).all(axis=1)))


def values_of_bins(
    bins: Codes,
    of_columns: list[Bins],
    names: list[str],
    schema: TableSchema,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Returns typed values sampled within the bins."""
    columns = {}
    for j, name in enumerate(names):
        codes = of_columns[j].values(bins[:, j], random.random((len(bins), 2)))
        columns[name] = _column_values(codes, schema[name])
    return pd.DataFrame(columns)


def _column_values(codes: Codes, column: Column) -> pd.Series[Any]:
    """Returns the typed values of a column from their indices. Shape: (n,)."""
    if column.kind.outcomes is not Outcomes.LINE:
        return placed_values(list(column.typed_levels), codes, column.missing.allowed)
    line = ValueLine.of(column)
    known, places = np.unique(codes, return_inverse=True)
    values = line.grid.values(line.first + np.maximum(known, 0) * line.stride)
    of_rows = np.where(codes == MISSING, MISSING, places)
    return placed_values(values.astype(column.kind.dtype), of_rows, column.missing.allowed)


def _with_unmodelled(rows: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Returns the rows with the columns that are not modelled: constants, and keys numbered from
    1."""
    n = len(rows)
    width = len(str(n))
    for column in schema:
        if column.drop or column.is_modelled:
            continue
        if column.kind.outcomes is Outcomes.ONE_VALUE:
            rows = rows.assign(**{column.name: [*column.typed_levels][:1] * n})
        elif column.decimals == 0:
            rows = rows.assign(**{column.name: np.arange(1, n + 1)})
        else:
            rows = rows.assign(**{column.name: [f"{i:0{width}d}" for i in range(1, n + 1)]})
    return rows[[column.name for column in schema if not column.drop]]


def _notes(n_rows: int, n_left_out: int) -> tuple[str, ...]:
    notes = []
    if n_rows < FEW_ROWS:
        notes.append(
            f"about {n_rows:,} rows are few for differential privacy: under {FEW_ROWS:,} the noise"
            " hides most of what there is to learn"
        )
    if n_left_out > max(0.01 * n_rows, 4 * math.sqrt(n_rows)):
        notes.append(
            f"about {n_left_out:,} rows were left out: a cell of each is not what is declared"
        )
    return tuple(notes)
