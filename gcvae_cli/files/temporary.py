"""Directs the temporary files of a command to a folder that is deleted when the command ends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from gcvae.files.temporary_files import temporary_files


@contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Context manager that directs temporary files to a new folder, which it deletes at the end.

    torch's compiler, which torch's optimisers import, would otherwise leave a folder behind.
    Folders that killed commands left behind are deleted first.
    """
    before = tempfile.tempdir
    with temporary_files("gcvae-command-") as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before
