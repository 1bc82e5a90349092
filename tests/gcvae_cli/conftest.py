"""A table and a model for the commands on files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae_cli.__main__ import main

N_ROWS = 120


def small_table() -> pd.DataFrame:
    """A table with a number, a whole number, levels and missing cells."""
    generator = np.random.default_rng(3)
    size = generator.normal(10.0, 2.0, N_ROWS)
    return pd.DataFrame(
        {
            "size": size.round(2),
            "count": generator.poisson(40.0, N_ROWS),
            "colour": np.where(size > 10, "red", "blue"),
            "grade": generator.choice(["a", "b", "?"], N_ROWS, p=[0.6, 0.3, 0.1]),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `table.csv` and a briefly trained `model.gcvae`."""
    made = tmp_path_factory.mktemp("files")
    small_table().to_csv(made / "table.csv", index=False)
    trained = ["train", str(made / "table.csv"), "-o", str(made / "model.gcvae")]
    assert main([*trained, "--set", "max_steps=60", "--device", "cpu", "--seed", "5"]) == 0
    return made
