"""Outputs are whole or not there."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from gcvae_cli.errors import OutputError
from gcvae_cli.outputs import opened_output, require_space
from tests.wordings import refuses


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    with opened_output(str(tmp_path / "rows.csv")) as stream:
        stream.write(b"a,b\n")
        stream.flush()
        assert not (tmp_path / "rows.csv").exists()
    assert (tmp_path / "rows.csv").read_bytes() == b"a,b\n"


def write_half(destination: Path) -> None:
    """Fails after some bytes."""
    with opened_output(str(destination)) as stream:
        stream.write(b"half")
        raise RuntimeError("the disk is on fire")


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_half(tmp_path / "rows.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    assert (tmp_path / "rows.csv").read_bytes() == b"old"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").symlink_to(tmp_path / "elsewhere.csv")
    with opened_output(str(tmp_path / "rows.csv")) as stream:
        stream.write(b"new")
    assert (tmp_path / "rows.csv").is_symlink()
    assert (tmp_path / "elsewhere.csv").read_bytes() == b"new"


def test_a_device_is_written_directly() -> None:
    with opened_output("/dev/null") as stream:
        stream.write(b"gone")
    assert Path("/dev/null").is_char_device()


def test_a_folder_can_not_be_written(tmp_path: Path) -> None:
    with refuses(OutputError), opened_output(str(tmp_path)):
        pass


def run_out_of_space(destination: Path) -> None:
    """Fails as a full disk does: the system names no file."""
    with opened_output(str(destination)):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with refuses(OutputError):
        run_out_of_space(tmp_path / "rows.csv")
    with refuses(OutputError), opened_output(str(tmp_path / "no" / "rows.csv")):
        pass


def test_an_error_of_another_file_stays_what_it_is(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError),
        opened_output(str(tmp_path / "rows.csv")),
        open(tmp_path / "table.csv"),
    ):
        pass


def test_what_the_disk_can_not_hold_is_refused(tmp_path: Path) -> None:
    require_space(str(tmp_path / "rows.csv"), 10)
    require_space("-", 1e30)
    require_space("/dev/null", 1e30)
    with refuses(OutputError):
        require_space(str(tmp_path / "rows.csv"), 1e30)
