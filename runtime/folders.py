"""Temporary folders of processes, locked while they are in use.

An unlocked folder was left by a process that was killed together with its fork server, and can be
removed.
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
    """Creates a temporary folder for a process, after removing those of killed processes.

    Returns:
        The path, and an open file descriptor that keeps the folder locked until it is closed.
    """
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
    """Removes the folders that killed processes have left in `within`; returns their paths."""
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
