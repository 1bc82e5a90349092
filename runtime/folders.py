"""Temporary folders of processes, locked while they are in use.

An unlocked folder was left by a process that was killed together with its server.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from runtime.settings import temporary_folder

_PREFIX = "gcvae-process-"


def make_folder() -> tuple[Path, int]:
    """Creates an empty folder; returns (path, descriptor that locks it while it is open)."""
    remove_left_folders(temporary_folder())
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary_folder()))
        with suppress(FileNotFoundError):  # removed by another process before it was locked
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def remove_left_folders(within: Path) -> list[Path]:
    """Removes unlocked folders and returns their paths."""
    left = []
    for folder in within.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, already removed, or in use
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
                left.append(folder)
            finally:
                os.close(lock)
    return left
