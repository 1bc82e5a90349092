"""Temporary files of a command, removed with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from gcvae.files.temporary_files import temporary_files


@contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Within the block temporary files go to a folder that is removed at its end.

    torch's compiler, which its optimisers import, makes a folder there and leaves it. What commands
    left that were killed is removed first.
    """
    before = tempfile.tempdir
    with temporary_files("gcvae-command-") as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before
