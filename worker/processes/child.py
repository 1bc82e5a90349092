"""The child process of one attempt, `gcvae-job JOB_ID --attempt N` as `ps` shows it.

It does the work and reports to its supervisor what became of it; the supervisor writes it down.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import structlog
from sqlalchemy.exc import SQLAlchemyError

from catalog import Cancelled, Catalog, Claim, Failed, Outcome
from catalog.errors import LeaseLostError, NotFoundError
from gcvae.errors import CancelledError, GcvaeError, InputError
from models_store import open_store_of
from models_store.errors import CorruptedError, MissingObjectError, UnavailableError
from runtime.logs import log_context, set_up_logs
from runtime.priority import step_back_as_before
from worker.errors import DeletedTableError, GpuMemoryError
from worker.processes.scratch import scratch_folder
from worker.settings import WorkerSettings, read_settings
from worker.work.attempt import Attempt
from worker.work.kinds import work_of
from worker.work.messages import SERVER_AWAY, JobOrder, MessageWriter

_log = structlog.get_logger(__name__)

_AWAY = (UnavailableError, SQLAlchemyError)
"""Troubles of the servers: no fault of the job's, and over when the server is back."""

_PASSING = (CorruptedError, MemoryError, OSError)
"""Troubles of the machine or of a transfer, which another attempt may not meet."""

_GPU_MEMORY = "gpu_out_of_memory"


def do_job(order: JobOrder, descriptor: int) -> int:
    """Make the attempt, and return the process's exit code.

    Args:
        descriptor: of the pipe that the supervisor reads.
    """
    step_back_as_before()
    settings = read_settings()
    set_up_logs(settings.runtime)
    messages = MessageWriter(descriptor)
    catalog = Catalog(settings.catalog.database_url)
    try:
        claim = catalog.leases.find_claim(
            order.job_id, order.owner, order.attempt, settings.jobs.lease_seconds
        )
    except SQLAlchemyError as error:
        messages.try_again(Failed(SERVER_AWAY, str(error).splitlines()[0]))
        return 0
    if claim is not None:
        with log_context(request=claim.job.request_id, job=claim.job_id, attempt=claim.attempt):
            _do(claim, catalog, settings, messages)
    return 0


def _do(claim: Claim, catalog: Catalog, settings: WorkerSettings, messages: MessageWriter) -> None:
    with scratch_folder(claim) as folder:
        store = open_store_of(settings.store)
        attempt = Attempt(catalog, store, claim, settings.jobs, messages, folder)
        signal.signal(signal.SIGTERM, lambda *_: attempt.ask_to_stop())
        report = do_work(attempt, messages)
    report()


def do_work(attempt: Attempt, messages: MessageWriter) -> Callable[[], None]:
    """Do the work; what reports its outcome. The last line of defence against any exception."""
    try:
        work = work_of(attempt.job.kind, joins=attempt.job.n_shards > 0)
        return partial(messages.outcome, work(attempt))
    except LeaseLostError as error:
        _log.warning("stopped", reason=str(error))
        return _nothing
    except _AWAY as error:
        _log.warning("this attempt fails, for a server is away", error=str(error))
        return partial(messages.try_again, Failed(SERVER_AWAY, str(error).splitlines()[0]))
    except GpuMemoryError as error:
        return _smaller_batch_or_failure(attempt, error, messages)
    except _PASSING as error:
        _log.exception("this attempt fails, another may succeed")
        return partial(messages.try_again, Failed("trouble", f"{type(error).__name__}: {error}"))
    except Exception as error:
        return partial(messages.outcome, _final_outcome(error))


def _smaller_batch_or_failure(
    attempt: Attempt, error: GpuMemoryError, messages: MessageWriter
) -> Callable[[], None]:
    """Once, half the batch may do; then it is for the user to say what to give up."""
    if not attempt.job.smaller_batch and error.batch_size > 1:
        _log.warning("the GPU's memory is too small, the next attempt takes half the batch")
        failed = Failed(_GPU_MEMORY, str(error))
        return partial(messages.try_again, failed, smaller_batch=True)
    advice = (
        f"{error}; set training.batch_size below {error.batch_size}, fewer or narrower layers "
        "(n_hidden_layers, d_hidden, d_column), or device cpu"
    )
    return partial(messages.outcome, Failed(_GPU_MEMORY, advice))


def _final_outcome(error: Exception) -> Outcome:
    """What becomes of a job whose work raised this, in every attempt."""
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


def _nothing() -> None:
    """Report nothing: nobody listens to an attempt that lost its job."""
