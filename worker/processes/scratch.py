"""The folder that an attempt works in, and its removal when nobody was left to remove it.

Libraries leave folders of their own in the system's temporary folder, which nobody removes:
torch's compiler on its import (`torchinductor_…`), Celery's pool when it is killed (`pymp-…`).
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from catalog import Claim
from worker.settings import temporary_folder


@contextmanager
def scratch_folder(claim: Claim) -> Iterator[Path]:
    """An empty folder for the attempt; what killed attempts before it left goes first."""
    for attempt in range(1, claim.attempt):
        _remove(_prefix(claim.job_id, attempt))
    prefix = _prefix(claim.job_id, claim.attempt)
    with _folder_of_all(prefix) as folder:
        yield folder


@contextmanager
def fork_server_folder(owner_pid: int) -> Iterator[Path]:
    """An empty folder for what a fork server's imports leave behind, and its removal."""
    with _folder_of_all(_fork_server_prefix(owner_pid)) as folder:
        yield folder


def remove_fork_server_folder(owner_pid: int) -> None:
    """Remove what a fork server left that was killed while it imported."""
    _remove(_fork_server_prefix(owner_pid))


@contextmanager
def _folder_of_all(prefix: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=prefix, dir=temporary_folder()) as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder  # what libraries leave goes with it
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


def keep_no_pool_folder() -> None:
    """Have the pool's shared memory begin in the temporary folder itself: its file has no name.

    Without this multiprocessing makes a folder for it, and leaves that behind when it is killed.
    """
    process: Any = multiprocessing.current_process()
    process._config["tempdir"] = tempfile.gettempdir()


def remove_scratch(claim: Claim) -> None:
    """Remove what the attempt left on this machine, if its process could not."""
    _remove(_prefix(claim.job_id, claim.attempt))


def _remove(prefix: str) -> None:
    for folder in temporary_folder().glob(f"{prefix}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(job_id: str, attempt: int) -> str:
    return f"gcvae-{job_id}-{attempt}-"


def _fork_server_prefix(owner_pid: int) -> str:
    return f"gcvae-fork-server-{owner_pid}-"
