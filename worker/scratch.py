"""The folder that an attempt works in, and its removal when nobody was left to remove it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog import Claim


@contextmanager
def scratch_folder(claim: Claim) -> Iterator[Path]:
    """An empty folder for the attempt; what killed attempts before it left goes first."""
    for attempt in range(1, claim.attempt):
        _remove(claim.job_id, attempt)
    with tempfile.TemporaryDirectory(prefix=_prefix(claim.job_id, claim.attempt)) as folder:
        yield Path(folder)


def remove_scratch(claim: Claim) -> None:
    """Remove what the attempt left on this machine, if its process could not."""
    _remove(claim.job_id, claim.attempt)


def _remove(job_id: str, attempt: int) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix(job_id, attempt)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(job_id: str, attempt: int) -> str:
    return f"gcvae-{job_id}-{attempt}-"
