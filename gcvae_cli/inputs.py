"""Checks that input files exist."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from gcvae_cli.errors import WrongUsageError

_AN_ID = re.compile(r"(ds|mdl)_\w+")
_MOST_COMPARED = 5_000


def existing_file(path: Path | None) -> Path | None:
    """Returns the path unchanged if the file exists, and None for None.

    Raises:
        WrongUsageError: The file does not exist (the message suggests a similar name), or the path
            is a folder.
    """
    if path is None or (path.exists() and not path.is_dir()):
        return path
    if path.is_dir():
        raise WrongUsageError(f"{path} is a folder; give a file")
    if _AN_ID.fullmatch(str(path)):
        raise WrongUsageError(
            f"{path} is not a file; if it is the id of a resource of a service, add --server URL"
        )
    folder = path.parent
    if not folder.is_dir():
        raise WrongUsageError(f"{path}: there is no folder {folder}")
    raise WrongUsageError(f"{path}: there is no such file in {folder.resolve()}{_meant(path)}")


def _meant(path: Path) -> str:
    """Suggests, for an error message, the existing file with the most similar name.

    Extensions are not compared. The suggestion is empty if no name is similar.
    """
    files = islice((found for found in path.parent.iterdir() if found.is_file()), _MOST_COMPARED)
    ranked = sorted(files, key=lambda found: found.suffix == path.suffix)  # the last one is kept
    names = {_stem(found): found.name for found in ranked}
    near = get_close_matches(_stem(path), names, n=1, cutoff=0.7)
    return f"; did you mean {str(path.with_name(names[near[0]]))!r}?" if near else ""


def _stem(path: Path) -> str:
    return path.name.lower().split(".")[0] or path.name
