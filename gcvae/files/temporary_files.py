"""Files that work on a large table needs, and that go with it."""

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
except ImportError:  # not a POSIX system: what killed processes leave stays there
    fcntl = None  # type: ignore[assignment]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOCK = ".in-use"


@contextmanager
def temporary_files(prefix: str = "gcvae-table-") -> Iterator[Path]:
    """A folder, where the system has temporary files; it is gone at the block's end.

    Those of processes that were killed are removed first: a folder is in use as long as its
    process, which holds a lock in it, lives.
    """
    _remove_abandoned(prefix)
    # Unlike those that are looked for, until it is locked.
    new = Path(tempfile.mkdtemp(prefix=f"new-{prefix}"))
    with (new / _LOCK).open("w") as lock:
        _take(lock)
        folder = new.rename(new.with_name(new.name.removeprefix("new-")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*/{_LOCK}"):
        with suppress(OSError), path.open("w") as lock:  # another user's, or just gone
            if fcntl is not None and _take(lock):
                shutil.rmtree(path.parent, ignore_errors=True)


def _take(lock: IO[str]) -> bool:
    """Whether nobody had the lock; it is then ours as long as the file is open."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or the file system has no locks
        return False
    return True


@contextmanager
def written_to(path: Path) -> Iterator[None]:
    """Within the block a temporary file is written.

    Raises:
        OSError: The disk is full; the text names the folder and what would help.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        message = f"no space left in {path.parents[1]} for the table's columns"
        raise OSError(error.errno, f"{message}; TMPDIR names another folder") from error
