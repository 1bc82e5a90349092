"""A table and a model for the commands on files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gcvae_cli.__main__ import main
from tests.gcvae_cli.small_table import small_table


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `table.csv` and a briefly trained `model.gcvae`; nobody writes into it."""
    made = tmp_path_factory.mktemp("trained")
    small_table().to_csv(made / "table.csv", index=False)
    trained = ["train", str(made / "table.csv"), "-o", str(made / "model.gcvae")]
    assert main([*trained, "--set", "max_steps=60", "--device", "cpu", "--seed", "5"]) == 0
    return made


@pytest.fixture(scope="module")
def folder(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the module's own with the table and the model."""
    return Path(shutil.copytree(trained, tmp_path_factory.mktemp("files"), dirs_exist_ok=True))
