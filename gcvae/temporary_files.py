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
    """An empty folder, in the system's folder for temporary files; it is gone at the block's end.

    Raises:
        OSError: The disk is full; the text names the folder and what would help.
    """
    with tempfile.TemporaryDirectory(prefix="gcvae-table-") as folder:
        try:
            yield Path(folder)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            where = tempfile.gettempdir()
            message = f"no space left in {where} for the table's columns; TMPDIR names another"
            raise OSError(error.errno, f"{message} folder") from error
