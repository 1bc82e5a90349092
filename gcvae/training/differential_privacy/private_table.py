"""Makes a private table: rows sampled from a distribution that was fitted to noisy counts.

All later steps (training, scores, maps, rules, schema) use only these rows, so the privacy
guarantee applies to their results.
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
"""Number of rows below which a warning says that noise hides most of the table's structure."""
LEAST_ROWS = 50
_LEFT_OUT_SHARE, _LEVELS_SHARE = Fraction(1, 200), Fraction(1, 20)
_BINS_SHARE, _ONE_WAY_SHARE = Fraction(1, 20), Fraction(1, 10)
_FIRST_STEPS, _LAST_STEPS = 100, 400
_MOST_DRAWS = 20

PhaseReport = Callable[[str, float], None]
"""Function (phase, share) that is called with the progress: the phase, `counting` or `estimating`,
and its finished share, from 0 to 1."""


@dataclass(frozen=True)
class PrivateTable:
    """Differentially private rows, on which a model is trained instead of the real table.

    Attributes:
        cells: The rows, with cells as strings and the columns of the real table in their order.
        document: The user's schema with discovered levels, as a JSON-compatible dict.
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
    """Returns differentially private rows that resemble those of a real table.

    Args:
        schema: The user's schema, which must specify limits and levels of every column.
        budget: Privacy budget, which is spent completely.
        report: Function that is called with the progress, which depends only on noisy counts.
        on_first_query: Function that is called before the first query, once the schema is checked.

    Raises:
        SchemaError: The schema lacks limits or levels; the problems contain the lines to add.
        SettingError: The target is not a column with levels.
        TableError: The input is not a table, or hardly any row fits the schema.
        HardRuleError: Too few of the private rows satisfy the hard rules.
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
    [noise] = ledger.noise("rows left out", (), 1, ledger.rho * _LEFT_OUT_SHARE)
    return max(0, int(np.count_nonzero(chosen)) + int(noise))


def private_bins(columns: tuple[Column, ...], codes: Codes, ledger: Ledger) -> list[Bins]:
    """Returns the bins of each column, which cost a twentieth of the privacy budget.

    Args:
        codes: Value index of each cell of n rows and D columns, or `MISSING`. Shape: (n, D).
        ledger: Privacy budget and record of its costs.
    """
    for_pairs = ledger.left - ledger.rho * (_BINS_SHARE + _ONE_WAY_SHARE)
    deviation = first_deviation(for_pairs, len(columns))
    return column_bins(columns, codes, ledger.rho * _BINS_SHARE, ledger, deviation)


class _Counts:
    """Real rows in bins, and noisy counts of each column's bins.

    Attributes:
        names: Names of the columns.
        bins: Bins of each column.
        rows: Real rows, with cells replaced by bins.
        one_way: Noisy counts of each column's bins, with their precision (inverse variance).
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
    """Returns the estimated distribution, fitted to noisy counts that spend the remaining budget.

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
    """Samples as many rows as the table is estimated to have; all satisfy the hard rules.

    Raises:
        HardRuleError: Too few sampled rows satisfy the hard rules.
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
    """Returns rows with a value sampled from each cell's bin, converted to the columns' dtypes.

    Args:
        bins: Bin index of each cell of n rows and D columns. Shape: (n, D).
        of_columns: Bins of each column.
    """
    columns = {}
    for j, name in enumerate(names):
        codes = of_columns[j].values(bins[:, j], random.random((len(bins), 2)))
        columns[name] = _column_values(codes, schema[name])
    return pd.DataFrame(columns)


def _column_values(codes: Codes, column: Column) -> pd.Series[Any]:
    """Returns the values with the given indices, in the column's dtype. Shape: (n,)."""
    if column.kind.outcomes is not Outcomes.REAL:
        return placed_values(list(column.typed_levels), codes, column.missing.allowed)
    line = ValueLine.of(column)
    known, places = np.unique(codes, return_inverse=True)
    values = line.grid.values(line.first + np.maximum(known, 0) * line.stride)
    of_rows = np.where(codes == MISSING, MISSING, places)
    return placed_values(values.astype(column.kind.dtype), of_rows, column.missing.allowed)


def _with_unmodelled(rows: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Adds the columns that are not modelled: constants, and identifiers numbered from 1."""
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
