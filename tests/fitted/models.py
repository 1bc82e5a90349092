"""Fitted models that tests begin with: one small file a preset, all of one table.

    python -m tests.fitted.models    # fits them anew: `make fitted`

A test that is not about fitting reads one of these. `test_models.py` finds files of another build.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from gcvae import Synthesizer
from gcvae.training.settings import PRESETS

FOLDER = Path(__file__).parent
SETTINGS = {
    "max_steps": 80,
    "evaluate_every_steps": 20,
    "rare_level_rows": 1,
    "d_hidden": 8,
    "d_latent": 2,
}
AUTOREGRESSIVE = {"d_sum": 8, "d_column": 6}


def mixed_frame(n: int = 300) -> pd.DataFrame:
    """Numbers, whole numbers, levels, dates, blanks, an identifier and a constant."""
    random = np.random.default_rng(0)
    height = random.normal(170.0, 10.0, n).round(1)
    group = np.where(height > 170.0, "tall", "short")
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D")
    frame = pd.DataFrame(
        {
            "key": np.arange(n) + 1000,
            "height": height,
            "weight": (height * 0.5 + random.normal(0.0, 5.0, n)).round().astype(int),
            "group": group,
            "day": days,
            "unit": "cm",
        }
    )
    frame.loc[random.choice(n, 20, replace=False), "weight"] = np.nan
    return frame


def path_of(preset: str) -> Path:
    """The file of a preset's model."""
    return FOLDER / f"{preset}.gcvae"


def fit(preset: str, max_steps: int = SETTINGS["max_steps"]) -> Synthesizer:
    """A preset's model of `mixed_frame()`, fitted here and now."""
    settings = SETTINGS | (AUTOREGRESSIVE if PRESETS[preset].config.refinement else {})
    return Synthesizer.fit(
        mixed_frame(),
        preset=preset,
        settings=settings | {"max_steps": max_steps},
        device="cpu",
        progress=False,
    )


@cache
def fitted(preset: str = "default") -> Synthesizer:
    """A preset's model as it was stored; nobody changes it."""
    return Synthesizer.load(path_of(preset))


def main() -> int:
    """Fits every preset's model anew and stores it."""
    for preset in PRESETS:
        fit(preset).save(path_of(preset))
        print(f"{path_of(preset).name}: {path_of(preset).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
