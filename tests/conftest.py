"""What several tests need: the folder of real tables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real tables, `GCVAE_DATA_DIR` or ../shared/data beside the repository."""
    given = os.environ.get("GCVAE_DATA_DIR")
    folder = Path(given) if given else _REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there are no real tables in {folder}; set GCVAE_DATA_DIR to their folder")
    return folder
