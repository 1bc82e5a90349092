"""Discovers the levels that many rows have, by a threshold on noisy counts.

The threshold is so high that a level in two rows passes with probability at most delta. A level in
a single row never passes.

Source: Korolova et al. (2009); Bun and Steinke (2016) for the threshold's part of delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gcvae.cells.levels import read_levels
from gcvae.cells.values import are_missing
from gcvae.files.source_columns import SourceColumns
from gcvae.schema.columns import Column
from gcvae.training.differential_privacy.cell_codes import column_cells
from gcvae.training.differential_privacy.ledger import Entry, Ledger, variance_of
from gcvae.training.differential_privacy.noise import discrete_gaussians

LEAST_ROWS = 2
"""Minimum number of rows with a level for it to pass."""
_FURTHEST = 60.0


def discovered_levels(
    source: SourceColumns, columns: Sequence[Column], rho: Fraction, ledger: Ledger
) -> dict[str, list[str]]:
    """Returns the levels of each column whose noisy counts exceed a threshold, by column name.

    Args:
        source: Columns of the real table.
        columns: Columns whose levels are discovered.
        rho: Privacy budget of all columns together.
        ledger: Record of the privacy costs, to which this one is added.
    """
    found = {}
    for column in columns:
        variance = variance_of(rho / len(columns))
        delta = ledger.threshold_delta / len(columns)
        entry = Entry("levels", (column.name,), 1 / (2 * variance), math.sqrt(variance), delta)
        ledger.spend(entry)
        cells, _ = column_cells(source, column)
        present = cells.select(~are_missing(cells, column))
        counts = dict.fromkeys(map(str, read_levels(column, present)), 0)
        for level, count in zip(read_levels(column, present), present.counts, strict=True):
            counts[str(level)] += int(count)
        found[column.name] = _passing(counts, variance, delta)
    return found


def _passing(counts: dict[str, int], variance: Fraction, delta: float) -> list[str]:
    most = threshold(variance, delta)
    noise = discrete_gaussians(len(counts), variance).tolist()
    return [
        level
        for (level, count), of_noise in zip(counts.items(), noise, strict=True)
        if count >= LEAST_ROWS and count + of_noise > most
    ]


def threshold(variance: Fraction, delta: float) -> int:
    """Returns the smallest threshold that the noisy count of a level in `LEAST_ROWS` (two) rows
    exceeds with probability at most `delta`.

    Args:
        variance: Variance of the noise, which has a discrete Gaussian distribution.
    """
    sigma = math.sqrt(variance)
    y = np.arange(0, math.ceil(_FURTHEST * sigma) + 2)
    masses = np.exp(-(y.astype(np.float64) ** 2) / (2 * float(variance)))
    tails = np.cumsum(masses[::-1])[::-1] / (2 * masses.sum() - 1.0)  # P(noise >= y)
    return LEAST_ROWS - 1 + int(np.argmax(tails <= delta))
