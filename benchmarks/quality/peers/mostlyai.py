"""MOSTLY AI's synthetic data engine: TabularARGN."""

from __future__ import annotations

import tempfile

import pandas as pd
from mostlyai.engine import TabularARGN, set_random_state

from benchmarks.quality.peers.frames import plain_frame, readable_frame
from gcvae.schema.columns import TableSchema


class MostlyAi:
    """TabularARGN with its defaults, on the CPU."""

    def __init__(self, seed: int) -> None:
        """Keeps the seed."""
        self._seed = seed

    def fit(self, train: pd.DataFrame, schema: TableSchema) -> None:
        """Trains in a folder of its own, which goes with this object."""
        self._schema = schema
        self._folder = tempfile.TemporaryDirectory(prefix="benchmark-")
        self._model = TabularARGN(
            workspace_dir=self._folder.name, device="cpu", random_state=self._seed
        )
        # Of text it hides rare values behind a token, which is no number to measure.
        self._model.fit(plain_frame(train, schema, ordinal_numbers=True))

    def sample(self, n_rows: int, seed: int) -> pd.DataFrame:
        """Rows of the model."""
        set_random_state(seed)
        return readable_frame(self._model.sample(n_rows, device="cpu"), self._schema)

    def log_masses(self, rows: pd.DataFrame) -> None:
        """None: it scores its own encoding of the columns, which are not the cells as written."""
