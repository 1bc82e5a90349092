"""The rows of a table in which rules are looked for, and how one is judged by rows that did not
find it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask, Numbers
from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.rules.predictions import Prediction, quantities
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.rules import Rule

SAMPLE_ROWS = 5_000
LEAST_ROWS = 20
"""In which all columns of a rule are known: of fewer, nothing is said."""
_LARGEST = 1e100
"""Of the numbers of columns that rules are looked for in: their products are float64's too."""
_SHIFTS = 16
_LEAST_NATS = 12.0
"""That a rule has to gain over chance, beside the logarithm of how many were tried."""


@dataclass(frozen=True)
class Half:
    """Rows of the sample, typed."""

    frame: pd.DataFrame

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.frame)

    @cached_property
    def numbers(self) -> dict[str, Numbers]:
        """The columns of numbers and dates as `quantities`. Shape: (n,) each."""
        kinds = "iufM"
        return {
            str(name): quantities(self.frame[name])
            for name in self.frame
            if self.frame[name].dtype.kind in kinds
        }

    @cached_property
    def codes(self) -> dict[str, npt.NDArray[np.int64]]:
        """Which distinct value stands in each row, -1 for none. Shape: (n,) each."""
        return {str(name): pd.factorize(self.frame[name])[0] for name in self.frame}


@dataclass(frozen=True)
class RowSample:
    """Some rows of a table in two halves: one finds rules, the other judges them."""

    schema: TableSchema
    columns: tuple[Column, ...]
    finding: Half
    judging: Half

    @classmethod
    def of(cls, table: TypedTable, schema: TableSchema, seed: int = 0) -> Self:
        """Returns rows drawn without replacement, of the columns that are modelled."""
        random = np.random.default_rng(seed)
        chosen = random.permutation(len(table))[:SAMPLE_ROWS]
        columns = tuple(c for c in schema if c.is_modelled and c.name in table.columns)
        places = np.sort(chosen)
        frame = rows_at(table, places, [column.name for column in columns])
        frame = frame.iloc[np.argsort(np.argsort(chosen))].reset_index(drop=True)
        middle = len(frame) // 2
        return cls(schema, columns, Half(frame[:middle]), Half(frame[middle:]))

    @cached_property
    def codes(self) -> dict[str, npt.NDArray[np.int64]]:
        """Which distinct value stands in each row of both halves, -1 for none. Shape: (n,) each."""
        both = pd.concat([self.finding.frame, self.judging.frame])
        return {str(name): pd.factorize(both[name])[0] for name in both}

    @cached_property
    def numeric(self) -> tuple[Column, ...]:
        """The columns of numbers whose values differ."""
        return tuple(column for column in self._varied if column.has_numbers)

    @cached_property
    def dates(self) -> tuple[Column, ...]:
        """The columns of dates that differ."""
        return tuple(column for column in self._varied if column.has_times)

    @cached_property
    def _varied(self) -> tuple[Column, ...]:
        """The columns of numbers and dates of which both halves have enough that differ."""
        halves = (self.finding.numbers, self.judging.numbers)
        return tuple(
            column
            for column in self.columns
            if column.has_numbers or column.has_times
            if all(_is_varied(half.get(column.name)) for half in halves)
        )


def _is_varied(values: Numbers | None) -> bool:
    known = np.empty(0) if values is None else values[~np.isnan(values)]
    if len(known) < LEAST_ROWS:
        return False
    return bool(known.min() < known.max() and np.abs(known).max() < _LARGEST)


@dataclass(frozen=True)
class Candidate:
    """A rule, and what it does for rows that did not find it.

    Attributes:
        nats: Gained in a row.
        share: Share of those rows, that keep it.
    """

    rule: Rule
    nats: float
    share: float


@dataclass(frozen=True)
class Agreement:
    """Rows in which a column agrees with a rule, and the agreement expected by chance.

    Attributes:
        share: Share of the rows in which all is known.
        chance: That share, were the column independent of what the rule says.
        unusual: That share among rows where the column, or what the rule says, is not the most
            frequent value.
        rows: In which all is known.
    """

    share: float
    chance: float
    unusual: float
    rows: int

    @property
    def nats(self) -> float:
        """What the rule says of a row more than chance does: Σ s log(s / p), 0 if it is rarer."""
        s, p = self.share, self.chance
        if s <= p:
            return 0.0
        rest = (1 - s) * math.log((1 - s) / (1 - p)) if s < 1 else 0.0
        return s * math.log(s / p) + rest

    def is_news(self, n_tried: int) -> bool:
        """Returns whether so much agreement is not what chance gives one of so many rules."""
        return self.rows >= LEAST_ROWS and self.rows * self.nats > _LEAST_NATS + math.log(n_tried)


def agreement_with(
    values: npt.NDArray[Any], said: npt.NDArray[Any], agree: Callable[..., Mask]
) -> Agreement:
    """Returns the agreement of a column with a rule's prediction.

    Shape: (n,), (n,); NaN or None for unknown.
    """
    known = ~(pd.isna(values) | pd.isna(said))
    values, said = values[known], said[known]
    n = len(values)
    if n < LEAST_ROWS:
        return Agreement(0.0, 1.0, 0.0, n)
    agrees = agree(values, said)
    shifts = {1 + k * (n - 1) // _SHIFTS for k in range(_SHIFTS)}
    by_chance = float(np.mean([agree(values, np.roll(said, shift)).mean() for shift in shifts]))
    unusual = (values != most_frequent(values)) | (said != most_frequent(said))
    n_unusual = int(unusual.sum())
    return Agreement(
        float(agrees.mean()),
        min(max(by_chance, 0.5 / (n * _SHIFTS)), 1.0),
        float(agrees[unusual].mean()) if n_unusual else 0.0,
        n,
    )


def most_frequent(values: npt.NDArray[Any]) -> Any:
    """Returns the value that most cells have. Shape: (n,), n > 0."""
    codes, found = pd.factorize(values)
    return found[np.bincount(codes).argmax()]


def judged(
    rule: Rule, sample: RowSample, n_tried: int, least_share: float, *, finding: bool = False
) -> Candidate | None:
    """Returns the rule as a candidate, if rows that did not find it keep it, and not by chance."""
    half = sample.finding if finding else sample.judging
    found = agreement_of(rule, half.frame, sample.schema)
    if found.share < least_share or found.unusual < least_share / 2 or not found.is_news(n_tried):
        return None
    return Candidate(rule, found.nats, found.share)


def agreement_of(rule: Rule, frame: pd.DataFrame, schema: TableSchema) -> Agreement:
    """Returns the agreement of a column with its formula in some rows."""
    formula = Prediction.of(rule, schema)
    values = formula.values(frame[rule.column])
    return agreement_with(values, formula.said(frame), formula.agrees)
