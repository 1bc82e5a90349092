"""Privacy measures of synthetic rows: distance to the closest real row, and exact copies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.evaluation.columns import (
    is_number,
    level_codes,
    measured_columns,
    numbers_of,
)
from gcvae.schema.columns import TableSchema

_CHUNK_CELLS = 4_000_000
"""Maximum number of distances in memory."""


@dataclass(frozen=True)
class DcrShare:
    """Share of synthetic rows whose closest real row is a training row (DCR share).

    Attributes:
        value: The share; ties count half. About 0.5 if the model has not memorised training rows.
        standard_error: Standard error of the share, over the synthetic rows.
        n_rows: Number of synthetic rows.
    """

    value: float
    standard_error: float
    n_rows: int


@dataclass(frozen=True)
class ExactCopies:
    """Shares of rows that equal a training row in every measured column.

    Attributes:
        value: Share among the synthetic rows.
        held_out: Share among real rows that were not used in training, for comparison.
    """

    value: float
    held_out: float


def dcr_share(
    seen: pd.DataFrame,
    unseen: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: TableSchema,
    *,
    n_rows: int = 5_000,
    seed: int = 0,
) -> DcrShare:
    """Returns the share of synthetic rows that are closer to a training row than to an unseen row.

    The distance of two rows is a sum over columns: |x − y| / range for numbers, 0 or 1 for equal or
    different levels, and 1 if only one of the two cells is missing. The larger of the two real
    tables is subsampled to the size of the smaller one.

    Args:
        seen: Real rows that the model was trained on.
        unseen: Real rows of the same source that were not used in training.
        n_rows: Maximum number of synthetic rows to examine.

    Source: the DCR share of Zhang et al., TabSyn (2024); distances as in DCROverfittingProtection
    of SDMetrics.
    """
    random = np.random.default_rng(seed)
    n_real = min(len(seen), len(unseen))
    halves = [half.iloc[random.permutation(len(half))[:n_real]] for half in (seen, unseen)]
    looked_at = synthetic.iloc[random.permutation(len(synthetic))[:n_rows]]
    rows = _encoded_rows((*halves, looked_at), schema)
    to_seen, to_unseen = (_distances_to_closest(rows[2], half) for half in rows[:2])
    counts = np.where(to_seen == to_unseen, 0.5, to_seen < to_unseen)
    standard_error = float(counts.std()) / math.sqrt(len(counts))
    return DcrShare(float(counts.mean()), standard_error, len(counts))


def exact_copies(
    seen: pd.DataFrame, unseen: pd.DataFrame, synthetic: pd.DataFrame, schema: TableSchema
) -> ExactCopies:
    """Returns the shares of synthetic rows, and of unseen real rows, that equal a training row.

    The tables may have different numbers of rows, because the expected shares do not depend on
    them.
    """
    known, held_out, made = row_keys((seen, unseen, synthetic), schema)
    return ExactCopies(float(np.isin(made, known).mean()), float(np.isin(held_out, known).mean()))


def row_keys(tables: tuple[pd.DataFrame, ...], schema: TableSchema) -> list[npt.NDArray[Any]]:
    """Returns a hash of each row, as one array for each table.

    Rows of any of the tables that are equal in every measured column have the same hash.
    """
    codes = [level_codes(tables, column) for column in measured_columns(schema)]
    return [
        pd.util.hash_pandas_object(pd.DataFrame(dict(enumerate(parts))), index=False).to_numpy()
        for parts in zip(*codes, strict=True)
    ]


@dataclass(frozen=True)
class _Rows:
    """Rows encoded for distances.

    Attributes:
        numbers: Numbers divided by their range; NaN is missing. Shape: (n, number columns).
        codes: Integer codes of levels. Shape: (n, level columns).
    """

    numbers: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]


def _encoded_rows(tables: tuple[pd.DataFrame, ...], schema: TableSchema) -> list[_Rows]:
    """Encodes tables for distances; the range of a number is taken from all tables but the last."""
    numbers, codes = [], []
    for column in measured_columns(schema):
        if not is_number(column):
            codes.append(level_codes(tables, column))
            continue
        cells = [numbers_of(table, column) for table in tables]
        real = np.concatenate(cells[:-1])
        real = real[~np.isnan(real)]
        width = float(np.ptp(real)) if len(real) else 0.0
        numbers.append([x / (width if width > 0 else 1.0) for x in cells])
    return [
        _Rows(
            np.array([cells[i] for cells in numbers], dtype=np.float32).T.reshape(len(table), -1),
            np.array([cells[i] for cells in codes], dtype=np.int32).T.reshape(len(table), -1),
        )
        for i, table in enumerate(tables)
    ]


def _distances_to_closest(rows: _Rows, real: _Rows) -> npt.NDArray[np.float32]:
    """Returns the distance between each of n rows and its nearest real row. Shape: (n,)."""
    n, n_rows = len(rows.numbers), max(1, _CHUNK_CELLS // len(real.numbers))
    return np.concatenate(
        [
            _distances(_Rows(rows.numbers[i : i + n_rows], rows.codes[i : i + n_rows]), real).min(
                axis=1
            )
            for i in range(0, n, n_rows)
        ]
    )


def _distances(rows: _Rows, real: _Rows) -> npt.NDArray[np.float32]:
    """Returns the distance between each of n rows and each of m real rows. Shape: (n, m)."""
    total = np.zeros((len(rows.numbers), len(real.numbers)), dtype=np.float32)
    for x, y in zip(rows.numbers.T, real.numbers.T, strict=True):
        gap = np.abs(x[:, None] - y[None, :])
        if np.isnan(x).any() or np.isnan(y).any():
            one_missing = np.isnan(x)[:, None] != np.isnan(y)[None, :]
            gap = np.where(np.isnan(gap), one_missing, gap)
        total += gap
    for a, b in zip(rows.codes.T, real.codes.T, strict=True):
        total += a[:, None] != b[None, :]
    return total
