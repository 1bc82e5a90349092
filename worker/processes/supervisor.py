"""Supervises attempts at jobs; each runs in a child process, which may crash or stop responding."""

from __future__ import annotations

import os
import queue
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError

from catalog import Cancelled, Catalog, Claim, Document, Failed, JobStatus
from catalog.errors import LeaseLostError, NotFoundError
from catalog.object_keys import checkpoint_prefix, output_prefix
from models_store import Store
from runtime.logs import log_context
from runtime.processes import ForkServer, Process
from runtime.traces import Traces
from worker.processes.child import do_job
from worker.settings import JobSettings
from worker.upkeep import collect_garbage
from worker.work.messages import SERVER_AWAY, LastMessage, Message, TryAgain

JOB_IMPORTS = "worker.processes.imports"
"""Module that the fork server imports."""

_log = structlog.get_logger(__name__)

T = TypeVar("T")  # result of a write

_KEEPING = (JobStatus.SUCCEEDED, JobStatus.RUNNING, JobStatus.QUEUED)


_NO_TRACES = Traces()


def run_jobs(
    catalog: Catalog,
    store: Store,
    settings: JobSettings,
    shutdown: threading.Event,
    server: ForkServer,
    traces: Traces = _NO_TRACES,
) -> None:
    """Takes and runs jobs of the queues in `settings`, until none is available.

    A message to a worker is only a request to look for jobs. A job that has to wait because too
    many jobs of its workspace are running needs no message later, because a worker continues until
    no job is available.

    Args:
        shutdown: Once set, the running job is given back at once, and no other begins.
        server: Fork server that starts the jobs' processes.
        traces: Creates a trace span for each attempt, as a child of the request's span.
    """
    while not shutdown.is_set():
        claim = catalog.leases.claim_next(settings.queues, new_owner(), settings.lease_seconds)
        if claim is None:
            return
        run_attempt(claim, catalog, store, settings, shutdown, server, traces)


def new_owner() -> str:
    """Returns a unique name for a lease owner, with host and process id."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def run_attempt(
    claim: Claim,
    catalog: Catalog,
    store: Store,
    settings: JobSettings,
    shutdown: threading.Event,
    server: ForkServer,
    traces: Traces = _NO_TRACES,
) -> None:
    """Runs one attempt at a claimed job and records its outcome, then deletes garbage in the store.

    Args:
        shutdown: Once set, the job is given back to the queue.
        server: Fork server that starts the job's process.
        traces: Creates a trace span for the attempt.
    """
    job = claim.job
    with (
        log_context(request=job.request_id, job=job.id, attempt=claim.attempt),
        traces.span(f"attempt at {job.kind}", job.traceparent) as span,
    ):
        span.describe(job=job.id, attempt=claim.attempt, kind=job.kind.value)
        _log.info("attempt begins", kind=job.kind.value)
        ending = Supervisor(catalog, claim, settings, shutdown, server).run()
        span.describe(ending=ending)
        if ending not in ("trained", "produced", "cancelled", "handed back"):
            span.fail(ending)
        collect_garbage(catalog, store)


class Supervisor:
    """Runs the child process of one attempt, sends heartbeats, and records the outcome."""

    def __init__(
        self,
        catalog: Catalog,
        claim: Claim,
        settings: JobSettings,
        shutdown: threading.Event,
        server: ForkServer,
    ) -> None:
        self._catalog = catalog
        self._claim = claim
        self._settings = settings
        self._shutdown = shutdown
        self._server = server
        self._inbox: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._progress: Document | None = None
        self._last: LastMessage | None = None
        self._at_end = False
        self._cancelled = False
        self._lost = False
        self._kill_at: float | None = None
        self._alive_until = time.monotonic() + claim.lease_seconds

    def run(self) -> str:
        """Runs the child process to its end and records the outcome.

        Returns:
            How the attempt ended: `trained`, `produced`, `failed`, `cancelled`, `handed back`,
            `lost`, or the error code of an attempt that may be repeated.
        """
        claim = self._claim
        child = self._server.fork(do_job, claim.job_id, claim.attempt, claim.owner)
        # In a thread, so that heartbeats continue if the child stops in the middle of a message.
        listener = threading.Thread(target=self._listen, args=(child,), daemon=True)
        listener.start()
        try:
            self._watch(child)
        finally:
            child.kill()
            listener.join()
            child.close()
        while not self._at_end:
            self._take(0.0)
        try:
            return self._retry_until_available(lambda: self._conclude(child.exit_code))
        except LeaseLostError:
            self._retry_until_available(self._leave_no_bytes)
            return "lost"

    def _listen(self, child: Process) -> None:
        """Puts the child's messages into the inbox, then None when the child has ended."""
        try:
            while True:
                self._inbox.put(child.pipe.recv())
        except (EOFError, OSError):  # it may end in the middle of a message
            self._inbox.put(None)

    def _take(self, seconds: float) -> None:
        try:
            message = self._inbox.get(timeout=seconds)
        except queue.Empty:
            return
        if message is None:
            self._at_end = True
        elif isinstance(message, dict):
            self._progress = message
        else:
            self._last = message

    def _watch(self, child: Process) -> None:
        next_beat = 0.0
        while not (self._at_end or self._lost or self._shutdown.is_set()):
            if time.monotonic() >= next_beat:
                self._beat(child)
                next_beat = time.monotonic() + self._settings.heartbeat_seconds
            self._take(max(0.0, next_beat - time.monotonic()))
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                _log.warning("the job did not stop by itself and is killed")
                return
        is_silent = self._at_end and self._last is None  # its exit code says why
        if is_silent and not child.wait(self._settings.cancel_grace_seconds):
            _log.warning("the job's process does not end and is killed")

    def _take_progress(self) -> Document | None:
        progress, self._progress = self._progress, None
        return progress

    def _beat(self, child: Process) -> None:
        try:
            answer = self._catalog.leases.heartbeat(self._claim, self._take_progress())
        except SQLAlchemyError as error:
            # The lease is valid until `_alive_until`, and the database may respond again by then.
            _log.warning("no heartbeat: the database does not answer", error=str(error))
            self._lost = time.monotonic() >= self._alive_until
            return
        self._alive_until = time.monotonic() + self._claim.lease_seconds
        self._lost = not answer.alive
        if answer.cancel_requested and not self._cancelled:
            _log.info("the job is asked to stop")
            self._cancelled = True
            self._kill_at = time.monotonic() + self._settings.cancel_grace_seconds
            child.terminate()

    def _retry_until_available(self, write: Callable[[], T]) -> T:
        """Returns the result of `write()`, repeating it while the database is unavailable.

        During that time, no other worker can take the job. When the worker shuts down, the
        database's exception is raised.
        """
        while True:
            try:
                return write()
            except SQLAlchemyError as error:
                if self._shutdown.is_set():
                    raise
                _log.warning("not written yet: the database does not answer", error=str(error))
            time.sleep(self._settings.heartbeat_seconds)

    def _conclude(self, exit_code: int | None) -> str:
        """Records the outcome of the attempt, and returns how it ended, in the words of `run`."""
        leases, last = self._catalog.leases, self._last
        if self._lost:
            raise LeaseLostError(self._claim.job_id, self._claim.attempt)
        # SIGTERM at a shutdown also makes a job end as `Cancelled`, though nobody cancelled it.
        was_stopped = isinstance(last, Cancelled) and not self._cancelled
        if last is not None and not isinstance(last, TryAgain) and not was_stopped:
            _log.info("attempt ends", outcome=type(last).__name__)
            leases.finish(self._claim, last, self._take_progress())
            return type(last).__name__.lower()
        if self._cancelled:
            _log.info("attempt ends", outcome="Cancelled")
            leases.finish(self._claim, Cancelled())
            return "cancelled"
        if self._shutdown.is_set():
            _log.info("attempt is handed back: the worker shuts down")
            leases.hand_back(self._claim)
            return "handed back"
        failure = last if isinstance(last, TryAgain) else TryAgain(_death(exit_code))
        failed = failure.failed
        status = leases.release(
            self._claim,
            failed,
            is_counted=failed.code != SERVER_AWAY,
            smaller_batch=failure.smaller_batch,
        )
        _log.warning("attempt fails", error=failed.message, job_status=status.value)
        return failed.code

    def _leave_no_bytes(self) -> None:
        """Marks the bytes of this attempt as due for deletion, after it has lost its lease.

        They are kept if this is the job's latest attempt and the job is queued, is running or has
        succeeded.
        """
        claim, job = self._claim, None
        with suppress(NotFoundError):
            job = self._catalog.workspace(claim.job.workspace).jobs.get(claim.job_id)
        if job is not None and job.attempt == claim.attempt and job.status in _KEEPING:
            # The outcome was written although the database's response was lost; or no other attempt
            # has begun, and the one that ends the job marks these bytes for deletion.
            _log.warning("attempt ends: its outcome is recorded, or the job is queued again")
            return
        _log.warning("attempt ends: another attempt owns the job, or it is deleted")
        prefixes = [output_prefix(claim.job, claim.attempt)]
        if job is None or job.status.is_final:
            prefixes.append(checkpoint_prefix(claim.job_id, claim.attempt))
        self._catalog.orphans.add(prefixes)


def _death(exit_code: int | None) -> Failed:
    """Returns the error to record if the child process ended without a final message."""
    assert exit_code is not None, "it was waited for"
    if exit_code >= 0:
        return Failed("process_ended", f"the job's process ended with exit code {exit_code}")
    name = signal.Signals(-exit_code).name
    hint = "; the machine may be out of memory" if name == "SIGKILL" else ""
    return Failed("process_killed", f"the job's process was killed by {name}{hint}")
