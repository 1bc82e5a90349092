"""What several tests need: the folder of real tables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes an empty disk of so many bytes; it is gone after the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a disk: the test needs one that is full")

    with ExitStack() as stack:

        def make(size_bytes: int) -> Path:
            folder = tmp_path / "disk"
            folder.mkdir()
            size = f"size={size_bytes}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True)
            stack.callback(subprocess.run, ["umount", folder], check=True)
            return folder

        yield make
