"""What the benchmark can fit: gcvae's presets, two baselines, and the peers that are installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.schema.columns import TableSchema
from gcvae.training.settings import PRESETS


class Model(Protocol):
    """A generative model of a table. Made with a seed, and of gcvae's presets also with settings.

    `log_masses` gives each row's log probability in nats as `written_cells` defines it, or None
    where the model cannot score rows.
    """

    def fit(self, train: pd.DataFrame, schema: TableSchema) -> None:
        """Learns a table of text cells."""
        ...

    def sample(self, n_rows: int, seed: int) -> pd.DataFrame:
        """Synthetic rows that `parse_table` can read with the same schema."""
        ...

    def log_masses(self, rows: pd.DataFrame) -> npt.NDArray[np.float64] | None:
        """log P(row) of text rows, as written. Shape: (n,)."""
        ...


@dataclass(frozen=True)
class Entry:
    """Where a model is.

    Attributes:
        module: Under `benchmarks.quality`.
        name: Of the class.
        package: The distribution that it needs beside gcvae's own.
    """

    module: str
    name: str
    package: str | None = None

    @property
    def package_version(self) -> str | None:
        """Of the package that is installed; None where there is none or none is needed."""
        try:
            return version(self.package) if self.package else None
        except PackageNotFoundError:
            return None


OTHERS = {
    "independent": Entry("independent", "IndependentColumns"),
    "plain-copula": Entry("plain_copula", "PlainGaussianCopula"),
    "mostlyai": Entry("peers.mostlyai", "MostlyAi", "mostlyai-engine"),
    "sdv-gaussian-copula": Entry("peers.sdv", "SdvGaussianCopula", "sdv"),
    "sdv-tvae": Entry("peers.sdv", "SdvTvae", "sdv"),
    "sdv-ctgan": Entry("peers.sdv", "SdvCtgan", "sdv"),
    "arfpy": Entry("peers.arf", "AdversarialForest", "arfpy"),
}
PRESET_NAMES = tuple(PRESETS)
MODEL_NAMES = (*PRESET_NAMES, *OTHERS)


def absent_package(name: str) -> str | None:
    """The package that a model needs and that is not installed, or None."""
    entry = OTHERS.get(name)
    if entry is None or entry.package is None or entry.package_version is not None:
        return None
    return entry.package


def make_model(name: str, seed: int, settings: Mapping[str, Any]) -> Model:
    """An unfitted model. Its package is imported here, and not by naming it."""
    if name in PRESET_NAMES:
        from benchmarks.quality.presets import GcvaePreset

        return GcvaePreset(name, seed, settings)
    entry = OTHERS[name]
    module = import_module(f"benchmarks.quality.{entry.module}")
    model: Model = getattr(module, entry.name)(seed)
    return model
