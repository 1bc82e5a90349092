"""A table and a model for the commands on files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcvae_cli.__main__ import main
from tests.gcvae_cli.small_table import small_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `table.csv` and a briefly trained `model.gcvae`."""
    made = tmp_path_factory.mktemp("files")
    small_table().to_csv(made / "table.csv", index=False)
    trained = ["train", str(made / "table.csv"), "-o", str(made / "model.gcvae")]
    assert main([*trained, "--set", "max_steps=60", "--device", "cpu", "--seed", "5"]) == 0
    return made
