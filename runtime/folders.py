"""The folders of temporary files that processes have of their own: locked while they are in use.

One that nobody locks was left by a process that was killed together with its server.
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
    """An empty folder, and the descriptor that locks it as long as a process has it open."""
    remove_left_folders(temporary_folder())
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary_folder()))
        with suppress(FileNotFoundError):  # taken for a killed process's before it was locked
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def remove_left_folders(within: Path) -> list[Path]:
    """Remove the folders that nobody locks: those of processes that were killed with their server.

    Returns:
        What was removed.
    """
    left = []
    for folder in within.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is another user's, has just gone, or is in use
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
                left.append(folder)
            finally:
                os.close(lock)
    return left
