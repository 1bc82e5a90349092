"""Temporary folders: gone at their end, and those of killed processes at the next beginning."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gcvae.files.temporary_files import temporary_files

HOLDER = """
import sys
from gcvae.files.temporary_files import temporary_files
with temporary_files() as folder:
    (folder / "codes").write_bytes(b"rows")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_block_also_after_an_error(place: Path) -> None:
    def work() -> None:
        with temporary_files() as folder:
            assert folder.parent == place
            (folder / "codes").write_bytes(b"rows")
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        work()
    assert list(place.iterdir()) == []


def test_a_killed_process_folder_goes_with_the_next_and_a_living_ones_stays(place: Path) -> None:
    command = [sys.executable, "-c", HOLDER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, **pipes) as killed,  # type: ignore[call-overload]
        subprocess.Popen(command, **pipes) as living,  # type: ignore[call-overload]
    ):
        folders = [Path(process.stdout.readline().strip()) for process in (killed, living)]
        killed.kill()
        killed.wait()
        assert all((folder / "codes").exists() for folder in folders)
        with temporary_files() as own:
            assert not folders[0].exists()
            assert (folders[1] / "codes").exists()
            assert own.exists()
        living.communicate("")
    assert list(place.iterdir()) == []
