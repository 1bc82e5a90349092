"""arfpy: adversarial random forests."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pandas as pd
from arfpy import arf

from benchmarks.quality.peers.frames import plain_frame, readable_frame
from gcvae.schema.columns import TableSchema

_MISSING = "(missing)"
if not hasattr(np, "in1d"):
    np.in1d = np.isin  # the package calls a name that numpy 2.4 took away


class AdversarialForest:
    """An adversarial random forest with its defaults; numbers are rounded as the table's are."""

    def __init__(self, seed: int) -> None:
        """Keeps the seed."""
        self._seed = seed

    def fit(self, train: pd.DataFrame, schema: TableSchema) -> None:
        """Grows the forest and estimates its leaves' densities.

        Raises:
            ValueError: A number is missing, which the package cannot take.
        """
        _seed_everything(self._seed)
        self._schema = schema
        frame = plain_frame(train, schema)
        levels = [name for name in frame if frame[name].dtype == object]
        frame[levels] = frame[levels].fillna(_MISSING)
        if frame.isna().any(axis=None):
            raise ValueError("arfpy takes no missing numbers")
        self._model = arf.arf(frame, verbose=False, random_state=self._seed)
        self._model.forde()

    def sample(self, n_rows: int, seed: int) -> pd.DataFrame:
        """Rows of the forest."""
        _seed_everything(seed)
        rows = self._model.forge(n=n_rows).astype(dict.fromkeys(self._model.levels, object))
        return readable_frame(rows.replace({_MISSING: None}), self._schema)

    def log_masses(self, rows: pd.DataFrame) -> None:
        """None: the package has no function for it."""


def _seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    warnings.simplefilter("ignore")  # thousands, of pandas' coming changes
