"""Temporary folders in which large tables are stored while they are processed."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not a POSIX system: folders of killed processes are not removed
    fcntl = None  # type: ignore[assignment]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOCK = ".in-use"


@contextmanager
def temporary_files(prefix: str = "gcvae-table-") -> Iterator[Path]:
    """Context manager that yields a new folder in the system's temporary directory, and deletes the
    folder at the end.

    A process that is killed cannot delete its folder. Each call therefore first deletes the folders
    that no running process uses: those in which no process locks the lock file.
    """
    _remove_abandoned(prefix)
    # With the prefix new-, `_remove_abandoned` does not find the folder before it is locked.
    new = Path(tempfile.mkdtemp(prefix=f"new-{prefix}"))
    with (new / _LOCK).open("w") as lock:
        _try_lock(lock)
        folder = new.rename(new.with_name(new.name.removeprefix("new-")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*/{_LOCK}"):
        with suppress(OSError), path.open("w") as lock:  # another user's, or already removed
            if fcntl is not None and _try_lock(lock):
                shutil.rmtree(path.parent, ignore_errors=True)


def _try_lock(lock: IO[str]) -> bool:
    """Locks the file until it is closed; returns whether this succeeded."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by another process, or the file system has no locks
        return False
    return True


@contextmanager
def written_to(path: Path) -> Iterator[None]:
    """Context manager that explains what to do if the disk is full while a temporary file is
    written.

    Raises:
        OSError: The disk is full; the message names the folder and how to choose another one.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        message = f"no space left in {path.parents[1]} for the table's columns"
        raise OSError(error.errno, f"{message}; TMPDIR names another folder") from error
