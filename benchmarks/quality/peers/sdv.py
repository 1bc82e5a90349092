"""SDV's synthesizers: TVAE, CTGAN and the Gaussian copula.

They take no seed but the global ones, and draw their rows from fixed seeds of their own: the
Gaussian copula, whose fit has no chance in it, makes the same rows for every seed.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from sdv.metadata import Metadata
from sdv.single_table import CTGANSynthesizer, GaussianCopulaSynthesizer, TVAESynthesizer

from benchmarks.quality.peers.frames import plain_frame, readable_frame
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import ColumnKind

_TABLE = "table"


class SdvSynthesizer:
    """One of SDV's synthesizers with its defaults, told the kinds of the columns."""

    synthesizer: ClassVar[Any]
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, seed: int) -> None:
        """Keeps the seed."""
        self._seed = seed

    def fit(self, train: pd.DataFrame, schema: TableSchema) -> None:
        """Trains."""
        _seed_everything(self._seed)
        self._schema = schema
        columns = {c.name: {"sdtype": _sdtype(c)} for c in schema if c.is_modelled}
        metadata = Metadata.load_from_dict(
            {"METADATA_SPEC_VERSION": "V1", "tables": {_TABLE: {"columns": columns}}}
        )
        self._model = self.synthesizer(metadata, **self.options)
        self._model.fit({_TABLE: plain_frame(train, schema)})

    def sample(self, n_rows: int, seed: int) -> pd.DataFrame:
        """Rows of the model."""
        _seed_everything(seed)
        return readable_frame(self._model.sample(n_rows)[_TABLE], self._schema)

    def log_masses(self, rows: pd.DataFrame) -> None:
        """None: it cannot score rows."""


class SdvTvae(SdvSynthesizer):
    """TVAE."""

    synthesizer = TVAESynthesizer
    options: ClassVar = {"enable_gpu": False}


class SdvCtgan(SdvSynthesizer):
    """CTGAN."""

    synthesizer = CTGANSynthesizer
    options: ClassVar = {"enable_gpu": False}


class SdvGaussianCopula(SdvSynthesizer):
    """The Gaussian copula."""

    synthesizer = GaussianCopulaSynthesizer


def _sdtype(column: Column) -> str:
    if column.kind is ColumnKind.DATETIME:
        return "datetime"
    return "numerical" if column.kind.is_real else "categorical"


def _seed_everything(seed: int) -> None:
    np.random.seed(seed)
    torch.manual_seed(seed)
