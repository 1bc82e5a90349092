"""A service says at its start that no socket fits into its folder of temporary files."""

from __future__ import annotations

import sys
import tempfile
from multiprocessing.connection import Listener
from pathlib import Path

import pytest

from service.errors import StartError
from service.inline.pipe import refuse_long_folder
from service.server import run
from tests.running_service import settings_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="others start processes otherwise")


@pytest.fixture
def folder_of() -> object:
    """Makes folders whose paths have a number of bytes."""
    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as base:

        def make(n_bytes: int) -> Path:
            folder = Path(base, "x" * (n_bytes - len(base) - 1))
            (folder / "pymp-12345678").mkdir(parents=True)
            return folder

        yield make


@pytest.mark.parametrize("n_bytes", [60, 74, 75, 76, 90])
def test_a_folder_is_refused_where_a_socket_in_it_could_not_be_bound(
    folder_of: object, monkeypatch: pytest.MonkeyPatch, n_bytes: int
) -> None:
    folder = folder_of(n_bytes)  # type: ignore[operator]
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    address = str(folder / "pymp-12345678" / "listener-12345678")
    try:
        Listener(address, "AF_UNIX").close()
    except OSError:
        with pytest.raises(StartError, match="set TMPDIR"):
            refuse_long_folder()
    else:
        refuse_long_folder()


def test_the_service_does_not_start_then(
    folder_of: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder_of(100)))  # type: ignore[operator]
    with pytest.raises(StartError, match="path of over 75 bytes"):
        run(settings_in(tmp_path))
