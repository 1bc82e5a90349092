"""gcvae's own presets, used as `gcvae train` and `gcvae sample` use them: on text, untold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.quality.written_cells import cell_width
from gcvae.cells.values import format_table, parse_table
from gcvae.errors import TableError
from gcvae.schema.columns import TableSchema
from gcvae.synthesizer import Synthesizer


class GcvaePreset:
    """A synthesizer of one preset."""

    def __init__(self, preset: str, seed: int, settings: Mapping[str, Any]) -> None:
        """Keeps what `fit` needs."""
        self._preset, self._seed, self._settings = preset, seed, settings

    def fit(self, train: pd.DataFrame, schema: TableSchema) -> None:
        """Trains; the schema is left to inference."""
        self._synthesizer = Synthesizer.fit(
            train, preset=self._preset, settings=self._settings, seed=self._seed, device="cpu"
        )

    def sample(self, n_rows: int, seed: int) -> pd.DataFrame:
        """Rows as they would be written."""
        return format_table(self._synthesizer.sample(n_rows, seed), self._synthesizer.schema)

    def log_masses(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """The importance-weighted bound on log P(row): what it says is no more than the truth.

        A row that the inferred schema has no place for is impossible. The paper's marginals are
        densities even where the cells are whole numbers or pile up in one value: there f × width
        can exceed the probability of the cell.
        """
        rows = rows.reset_index(drop=True)
        possible = self._readable(rows)
        scores = np.full(len(rows), -np.inf)
        scored = self._synthesizer.log_likelihood(possible, draws=100)["log_likelihood"].to_numpy()
        scores[possible.index] = scored + self._log_widths(possible)
        return scores

    def _readable(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows that the synthesizer's schema can read."""
        schema = self._synthesizer.schema
        try:
            parse_table(rows, schema)
        except TableError:
            return rows[[_is_readable(rows[i : i + 1], schema) for i in range(len(rows))]]
        return rows

    def _log_widths(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """The sum of log widths over the cells of a row that were scored by a density."""
        synthesizer = self._synthesizer
        typed = parse_table(rows, synthesizer.schema)
        encoded = synthesizer.codec.encode(typed, blanks_unknown=True)
        owners = synthesizer.codec.reduction.owners
        total = np.zeros(len(rows))
        for name in set(owners.values()):  # all their cells count per unit
            column = synthesizer.schema[name]
            if column.kind.is_real:
                total += typed[name].notna().to_numpy() * np.log(cell_width(column))
        for j, codec in enumerate(synthesizer.codec.columns):
            if codec.is_real and codec.name not in owners:
                is_density = encoded.observed[:, j] & (encoded.codes[:, j] == codec.n_codes - 1)
                total += is_density.numpy() * np.log(cell_width(codec.column))
        return total


def _is_readable(row: pd.DataFrame, schema: TableSchema) -> bool:
    try:
        parse_table(row, schema)
    except TableError:
        return False
    return True
