"""Temporary files of a command."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from gcvae.files.temporary_files import temporary_files


@contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Directs temporary files in the block to a folder that is deleted at its end.

    torch's compiler, which its optimisers import, would leave a folder. Folders of killed commands
    are deleted first.
    """
    before = tempfile.tempdir
    with temporary_files("gcvae-command-") as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before
