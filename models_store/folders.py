"""Operations on local folders that an object store does not offer: sync to the disk, and
removal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def sync_file(path: Path) -> None:
    """Writes a new file and its directory entry from the system's cache to the disk, so that
    database records never refer to a file that a power failure removes."""
    for target in (path, path.parent):
        descriptor = os.open(target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Deletes a folder with its content, if it exists."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
