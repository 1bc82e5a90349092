"""Temporary files of a command, removed with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Within the block temporary files go to a folder that is removed at its end.

    torch's compiler, which its optimisers import, makes a folder there and leaves it.
    """
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="gcvae-") as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before
