"""Sample of rows for the search of rules: one half proposes a rule, the other half validates it.

    gain of a rule, in nats per row = s log(s / p) + (1 - s) log((1 - s) / (1 - p))

s is the share of rows that agree with the rule, p the share expected by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Numbers
from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.rules.predictions import Prediction, quantities
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule, Tables

SAMPLE_ROWS = 5_000
LEAST_SHARE = 0.9
"""Minimum share of rows in which a formula holds."""
MOST_LEVELS = 60
"""Maximum number of levels of a column that a condition names, or that is the key of a lookup."""
LEAST_ROWS = 20
"""Minimum number of rows without missing cells in the columns of a rule."""
_LARGEST = 1e100
"""Largest number in columns that are searched, so that products do not overflow."""
_SHIFTS = 16
_LEAST_NATS = 12.0
"""Minimum gain over chance of a rule, in nats summed over rows, to which `least_nats` adds the log
of the number of rules tried."""


@dataclass(frozen=True)
class Half:
    """One half of a sample of rows for the search of rules."""

    frame: pd.DataFrame

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.frame)

    @cached_property
    def numbers(self) -> dict[str, Numbers]:
        """Columns of numbers and dates (in seconds since 1970) of the n rows as float64, by name.
        Shape: (n,) each."""
        kinds = "iufM"
        return {
            str(name): quantities(self.frame[name])
            for name in self.frame
            if self.frame[name].dtype.kind in kinds
        }

    @cached_property
    def codes(self) -> dict[str, npt.NDArray[np.int64]]:
        """For each column, integers that identify the distinct values in the n rows; -1 for
        missing. Shape: (n,) each."""
        return {str(name): pd.factorize(self.frame[name])[0] for name in self.frame}


@dataclass(frozen=True)
class RowSample:
    """Sample of a table's rows in two halves, for the search of rules.

    Attributes:
        columns: Columns among which rules are searched.
        training: Rows that propose rules.
        validation: Rows that validate them.
    """

    schema: TableSchema
    columns: tuple[Column, ...]
    training: Half
    validation: Half

    @classmethod
    def of(cls, table: TypedTable, schema: TableSchema, seed: int = 0) -> Self:
        """Draws up to 5,000 rows of a table without replacement, with the columns that a model
        learns."""
        random = np.random.default_rng(seed)
        chosen = random.permutation(len(table))[:SAMPLE_ROWS]
        named = (c for c in schema if c.name)  # expressions cannot contain the others
        columns = tuple(c for c in named if c.is_modelled and c.name in table.columns)
        indices = np.sort(chosen)
        frame = rows_at(table, indices, [column.name for column in columns])
        frame = frame.iloc[np.argsort(np.argsort(chosen))].reset_index(drop=True)
        middle = len(frame) // 2
        return cls(schema, columns, Half(frame[:middle]), Half(frame[middle:]))

    @property
    def halves(self) -> tuple[Half, Half]:
        """Training and validation rows."""
        return self.training, self.validation

    @cached_property
    def codes(self) -> dict[str, npt.NDArray[np.int64]]:
        """For each column, integers that identify the distinct values in the n rows of both halves;
        -1 for missing. Rows of `training` come first. Shape: (n,) each."""
        return {str(name): pd.factorize(self.frame[name])[0] for name in self.frame}

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Rows of both halves; those of `training` come first."""
        return pd.concat([self.training.frame, self.validation.frame])

    @cached_property
    def numbers(self) -> dict[str, Numbers]:
        """Columns of numbers and dates (in seconds since 1970) of the n rows of both halves as
        float64, by name. Rows of `training` come first. Shape: (n,) each."""
        one, other = self.training.numbers, self.validation.numbers
        return {name: np.concatenate([one[name], other[name]]) for name in one.keys() & other}

    @cached_property
    def of_levels(self) -> tuple[Column, ...]:
        """Columns with 2 to 60 levels (categories)."""
        n_levels = {name: codes.max(initial=-1) + 1 for name, codes in self.codes.items()}
        has_levels = (column for column in self.columns if column.kind.has_levels)
        return tuple(c for c in has_levels if 2 <= n_levels[c.name] <= MOST_LEVELS)

    @cached_property
    def numeric(self) -> tuple[Column, ...]:
        """Columns of numbers that are not constant."""
        return tuple(column for column in self._varied if column.has_numbers)

    @cached_property
    def dates(self) -> tuple[Column, ...]:
        """Columns of dates that are not constant."""
        return tuple(column for column in self._varied if column.has_times)

    @cached_property
    def _varied(self) -> tuple[Column, ...]:
        return tuple(
            column
            for column in self.columns
            if column.has_numbers or column.has_times
            if all(_is_varied(half.numbers.get(column.name)) for half in self.halves)
        )


def _is_varied(values: Numbers | None) -> bool:
    """Returns whether at least 20 numbers are known, they are not all equal, and none is huge."""
    known = np.empty(0) if values is None else values[~np.isnan(values)]
    if len(known) < LEAST_ROWS:
        return False
    return bool(known.min() < known.max() and np.abs(known).max() < _LARGEST)


@dataclass(frozen=True)
class Candidate:
    """A rule that is proposed, and its gain on validation rows.

    Attributes:
        rule: The rule.
        nats: Mean gain in log-likelihood per row over chance, in nats.
        share: Share of validation rows that satisfy the rule.
        cost: Number by which solutions of the same relation for different columns are compared;
            lower is better, and 0 for most rules. See `gcvae.rules.plan`.
        others: The same relation solved for other columns, each with its cost.
        is_reversible: Whether a rule y == x or y >= x between two columns may also be used as a
            rule for x.
    """

    rule: Rule
    nats: float
    share: float
    cost: float = 0.0
    others: tuple[tuple[float, Rule], ...] = ()
    is_reversible: bool = True

    @property
    def sides(self) -> tuple[tuple[float, Rule], ...]:
        """The rule, followed by the same relation solved for other columns, each with its cost."""
        sides = self.rule.sides if self.is_reversible else [self.rule]
        return (*((self.cost, side) for side in sides), *self.others)


@dataclass(frozen=True)
class Agreement:
    """How often a column agrees with the prediction of a rule, and how often it would by chance.

    Attributes:
        share: Share of agreement among rows in which no column of the rule is missing.
        chance: Expected share if the column were independent of the prediction.
        unusual: Share of agreement among rows in which the column or the prediction is not its most
            frequent value.
        rows: Number of rows in which no column of the rule is missing.
    """

    share: float
    chance: float
    unusual: float
    rows: int

    @property
    def nats(self) -> float:
        """Kullback-Leibler divergence of `share` from `chance`, as probabilities of agreement in a
        row, in nats; 0 if agreement is less frequent than by chance."""
        s, p = self.share, self.chance
        if s <= p:
            return 0.0
        rest = (1 - s) * math.log((1 - s) / (1 - p)) if s < 1 else 0.0
        return s * math.log(s / p) + rest

    def is_significant(self, n_tried: int) -> bool:
        """Returns whether the gain in nats, summed over rows, exceeds what the best of `n_tried`
        rules gains by chance."""
        return self.rows >= LEAST_ROWS and self.rows * self.nats > least_nats(n_tried)


def least_nats(n_tried: int) -> float:
    """Returns the gain over chance, in nats summed over rows, that the best of `n_tried` rules
    reaches by chance with probability exp(-12) at most."""
    return _LEAST_NATS + math.log(max(n_tried, 1))


def equality(column: Column, text: str, tables: Tables | None = None) -> Rule:
    """Returns the rule that a column equals an expression, with the lookup tables used in it."""
    return Rule(f"{quoted_name(column.name)} == {text}", source="found", tables=tables or {})


def most_frequent(values: npt.NDArray[Any]) -> Any:
    """Returns the most frequent of n > 0 values. Shape: (n,)."""
    codes, found = pd.factorize(values)
    return found[np.bincount(codes).argmax()]


def column_medians(values: Numbers) -> Numbers:
    """Returns the lower median of the finite numbers in each of the T columns of a matrix; NaN if
    there are none. Shape: (n, T) -> (T,)."""
    ordered = np.sort(np.where(np.isfinite(values), values, np.nan), axis=0)  # NaN comes last
    middle = np.maximum(np.isfinite(ordered).sum(axis=0) - 1, 0) // 2
    return np.asarray(ordered[middle, np.arange(ordered.shape[1])])


def validated(
    rules: Iterable[Rule], sample: RowSample, n_tried: int, least_share: float = LEAST_SHARE
) -> Iterator[Candidate]:
    """Yields, as candidates, the formulas that enough validation rows satisfy, far beyond chance.

    Args:
        rules: Formulas that the training half proposed.
        n_tried: Number of rules tried.
        least_share: Minimum share of rows that satisfy a rule.
    """
    for rule in rules:
        found = agreement_of(rule, sample.validation.frame, sample.schema)
        is_usual_only = found.unusual < least_share / 2
        if found.share >= least_share and not is_usual_only and found.is_significant(n_tried):
            yield Candidate(rule, found.nats, found.share)


def agreement_of(rule: Rule, frame: pd.DataFrame, schema: TableSchema) -> Agreement:
    """Returns how often a column y agrees with the prediction of a rule, such as f(x) in y == f(x).
    Chance agreement is that of y with the predictions for other rows."""
    formula = Prediction.of(rule, schema)
    values, predicted = formula.values(frame[rule.column]), formula.evaluated(frame)
    known = ~(pd.isna(values) | pd.isna(predicted) | formula.exempts(values))
    values, predicted = values[known], predicted[known]
    n = len(values)
    if n < LEAST_ROWS:
        return Agreement(0.0, 1.0, 0.0, n)
    agrees = formula.agrees(values, predicted)
    shifts = {1 + k * (n - 1) // _SHIFTS for k in range(_SHIFTS)}
    shifted = [formula.agrees(values, np.roll(predicted, shift)).mean() for shift in shifts]
    chance = min(max(float(np.mean(shifted)), 0.5 / (n * _SHIFTS)), 1.0)
    unusual = (values != most_frequent(values)) | (predicted != most_frequent(predicted))
    share_unusual = float(agrees[unusual].mean()) if unusual.any() else 0.0
    return Agreement(float(agrees.mean()), chance, share_unusual, n)
