"""Files that work on a large table needs, and that go with it."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def temporary_files() -> Iterator[Path]:
    """An empty folder, where the system has temporary files; it is gone at the block's end."""
    with tempfile.TemporaryDirectory(prefix="gcvae-table-") as folder:
        yield Path(folder)


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
