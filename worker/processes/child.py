"""Child process of one attempt at a job, shown by `ps` as `gcvae-job JOB_ID --attempt N`.

It does the work and reports the outcome to its supervisor (`worker.processes.supervisor`), which
records it.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import structlog
from setproctitle import setproctitle
from sqlalchemy.exc import SQLAlchemyError

from catalog import Cancelled, Catalog, Claim, Failed, JobKind, Outcome
from catalog.errors import LeaseLostError, NotFoundError
from gcvae.errors import CancelledError, GcvaeError, InputError
from models_store import open_store_of
from models_store.errors import CorruptedError, MissingObjectError, UnavailableError
from runtime.logs import log_context, set_up_logs
from runtime.priority import lower_session_priority
from worker.errors import DeletedTableError, GpuMemoryError
from worker.settings import WorkerSettings, read_settings
from worker.work.attempt import Attempt
from worker.work.joining import join_shards
from worker.work.messages import SERVER_AWAY, LastMessage, TryAgain, finite

_log = structlog.get_logger(__name__)

_AWAY = (UnavailableError, SQLAlchemyError)
"""Errors of an unavailable database or store; the attempt is repeated and does not count."""

_PASSING = (CorruptedError, MemoryError, OSError)
"""Errors of the machine or of a transfer, which may not occur in another attempt."""

_GPU_MEMORY = "gpu_out_of_memory"


def do_job(pipe: Connection, job_id: str, attempt: int, owner: str) -> None:
    """Runs one attempt at a job in this process, and sends progress and outcome to the supervisor.

    Args:
        pipe: Pipe to the supervisor.
        owner: Name of the worker that owns the job's lease. If that worker has lost the lease, this
            function does nothing.
    """
    _show(f"gcvae-job {job_id} --attempt {attempt}")
    lower_session_priority()
    settings = read_settings()
    set_up_logs(settings.runtime)
    catalog = Catalog(settings.catalog.database_url)
    try:
        claim = catalog.leases.find_claim(job_id, owner, attempt, settings.jobs.lease_seconds)
    except SQLAlchemyError as error:
        pipe.send(_server_away(error))
        return
    if claim is not None:
        with log_context(request=claim.job.request_id, job=claim.job_id, attempt=claim.attempt):
            _do(claim, catalog, settings, pipe)


def _do(claim: Claim, catalog: Catalog, settings: WorkerSettings, pipe: Connection) -> None:
    store = open_store_of(settings.store)
    folder = Path(tempfile.gettempdir())  # used only by this process
    attempt = Attempt(catalog, store, claim, settings.jobs, pipe.send, folder)
    signal.signal(signal.SIGTERM, lambda *_: attempt.ask_to_stop())
    last = do_work(attempt)
    if last is not None:
        pipe.send(last)


def do_work(attempt: Attempt) -> LastMessage | None:
    """Does the work of an attempt, and returns the final message for the supervisor.

    Returns:
        The final message; None if the attempt lost its lease (ownership of the job).
    """
    try:
        return finite(work_of(attempt.job.kind, joins=attempt.job.n_shards > 0)(attempt))
    except LeaseLostError as error:
        _log.warning("stopped", reason=str(error))
        return None
    except _AWAY as error:
        _log.warning("attempt fails: the database or the store does not respond", error=str(error))
        return _server_away(error)
    except GpuMemoryError as error:
        return _smaller_batch_or_failure(attempt, error)
    except _PASSING as error:
        _log.exception("attempt fails, another may succeed")
        return TryAgain(Failed("trouble", f"{type(error).__name__}: {error}"))
    except Exception as error:
        return finite(_final_outcome(error))


def work_of(kind: JobKind, *, joins: bool) -> Callable[[Attempt], Outcome]:
    """Returns the function that does the work of an attempt at a job.

    Args:
        kind: Kind of the job; the function is `<kind>` in `worker/work/<kind>.py`.
        joins: Whether all shards have succeeded and are to be joined; the function is then `join`
            of that module if it exists, otherwise `join_shards`.

    The function raises `InputError` if a table does not fit the model, `CancelledError` if the
    attempt was asked to stop, and `LeaseLostError` if it no longer owns the job.
    """
    module = import_module(f"worker.work.{kind}")
    work: Callable[[Attempt], Outcome]
    work = getattr(module, "join", join_shards) if joins else getattr(module, kind)
    return work


def _server_away(error: Exception) -> TryAgain:
    return TryAgain(Failed(SERVER_AWAY, str(error).splitlines()[0]))


def _smaller_batch_or_failure(attempt: Attempt, error: GpuMemoryError) -> LastMessage:
    """Returns the final message of a training for which the GPU has too little memory.

    It requests another attempt with half the batch size, unless the batch size was halved before or
    the batch has only one row; the job then fails.
    """
    if not attempt.job.smaller_batch and error.batch_size > 1:
        _log.warning("the GPU's memory is too small, the next attempt takes half the batch")
        return TryAgain(Failed(_GPU_MEMORY, str(error)), smaller_batch=True)
    advice = (
        f"{error}; set training.batch_size below {error.batch_size}, fewer or narrower layers "
        "(n_hidden_layers, d_hidden, d_column), or device cpu"
    )
    return Failed(_GPU_MEMORY, advice)


def _final_outcome(error: Exception) -> Outcome:
    """Returns the outcome of a job after an error that would occur again in every attempt."""
    if isinstance(error, CancelledError):
        return Cancelled()
    if isinstance(error, InputError):
        return Failed("input", str(error), tuple(asdict(problem) for problem in error.problems))
    if isinstance(error, GcvaeError):
        return Failed(type(error).__name__.removesuffix("Error").lower(), str(error))
    if isinstance(error, (NotFoundError, MissingObjectError, DeletedTableError)):
        return Failed("input_deleted", str(error))
    _log.error("the job fails for a reason that nobody foresaw", exc_info=error)
    return Failed("internal", f"{type(error).__name__}: {error}")


def _show(command: str) -> None:
    """Sets the command that `ps` shows, padded with spaces to the original command's length."""
    setproctitle(command.ljust(sum(len(os.fsencode(word)) + 1 for word in sys.orig_argv)))
