"""What a local folder needs beyond an object store's calls: durability, and no debris."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def sync_file(path: Path) -> None:
    """Force a new file and its name onto the disk: records point to it from now on."""
    for target in (path, path.parent):
        descriptor = os.open(target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, where it is there."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
