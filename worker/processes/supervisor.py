"""The supervisor: one attempt at a job, in a child process that may die in any way."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError

from catalog import Cancelled, Catalog, Claim, Failed, Job, JobStatus
from catalog.errors import LeaseLostError, NotFoundError
from catalog.object_keys import checkpoint_prefix, output_prefix
from models_store import Store
from runtime.logs import log_context
from runtime.traces import NoTraces, Span, Traces
from worker.garbage_collection import collect_garbage
from worker.processes.fork_server import ForkServer, JobProcess
from worker.processes.scratch import remove_scratch
from worker.processes.shutdown import SharedFlag
from worker.settings import JobSettings
from worker.work.messages import SERVER_AWAY, JobOrder, MessageReader

_log = structlog.get_logger(__name__)

T = TypeVar("T")  # what a write gives back

_KEEPING = (JobStatus.SUCCEEDED, JobStatus.RUNNING, JobStatus.QUEUED)


_NO_TRACES = NoTraces()


def run_jobs(
    catalog: Catalog,
    store: Store,
    settings: JobSettings,
    shutdown: SharedFlag,
    server: ForkServer,
    traces: Traces = _NO_TRACES,
) -> None:
    """Attempt jobs of the settings' queues, the next one first, until none is to be had.

    A message is only a call to ask for work. Whoever is at work goes on until nothing waits, so
    that a job which had to wait for its workspace's limit needs no message of its own.

    Args:
        shutdown: once set, the attempt is handed back at once, and no other is begun.
        server: what the jobs' processes are forked from.
        traces: where the attempt's span goes; it belongs to the request's that asked for the job.
    """
    while not shutdown.is_set():
        claim = catalog.leases.claim_next(settings.queues, new_owner(), settings.lease_seconds)
        if claim is None:
            return
        run_attempt(claim, catalog, store, settings, shutdown, server, traces)


def new_owner() -> str:
    """A name for the owner of a lease that says where it works; no other has it."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def run_attempt(
    claim: Claim,
    catalog: Catalog,
    store: Store,
    settings: JobSettings,
    shutdown: SharedFlag,
    server: ForkServer,
    traces: Traces = _NO_TRACES,
) -> None:
    """Make one attempt at a job; its outcome stands in the records."""
    job = claim.job
    with (
        log_context(request=job.request_id, job=job.id, attempt=claim.attempt),
        traces.span(f"attempt at {job.kind}", job.traceparent) as span,
    ):
        span.describe(job=job.id, attempt=claim.attempt, kind=job.kind.value)
        _log.info("attempt begins", kind=job.kind.value)
        ending = Supervisor(catalog, claim, settings, shutdown, server).run()
        _report_ending(span, ending)
        collect_garbage(catalog, store)


class Supervisor:
    """Watches over the child process of one attempt and writes its outcome."""

    def __init__(
        self,
        catalog: Catalog,
        claim: Claim,
        settings: JobSettings,
        shutdown: SharedFlag,
        server: ForkServer,
    ) -> None:
        self._catalog = catalog
        self._claim = claim
        self._settings = settings
        self._shutdown = shutdown
        self._server = server
        self._cancelled = False
        self._lost = False
        self._kill_at: float | None = None
        self._alive_until = time.monotonic() + claim.lease_seconds

    def run(self) -> str:
        """Run the child to its end, then write what became of it, and return it in a word."""
        child, messages = _start_child(self._claim, self._server)
        try:
            self._watch(child, messages)
        finally:
            child.kill()
            child.wait()
            os.close(messages.descriptor)
            remove_scratch(self._claim)
        try:
            return self._insist(lambda: self._conclude(child.exit_code, messages))
        except LeaseLostError:
            self._insist(self._leave_no_bytes)
            return "lost"

    def _watch(self, child: JobProcess, messages: MessageReader) -> None:
        next_beat = 0.0
        while not (messages.at_end or self._lost or self._shutdown.is_set()):
            if time.monotonic() >= next_beat:
                self._beat(child, messages)
                next_beat = time.monotonic() + self._settings.heartbeat_seconds
            pause_seconds = max(0.0, next_beat - time.monotonic())
            readable, _, _ = select.select([messages.descriptor], [], [], pause_seconds)
            if readable:
                messages.read()
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                _log.warning("the job did not stop by itself and is killed")
                return
        if messages.at_end and not messages.has_last_word:
            _await_exit_code(child, self._settings.cancel_grace_seconds)

    def _beat(self, child: JobProcess, messages: MessageReader) -> None:
        try:
            answer = self._catalog.leases.heartbeat(self._claim, messages.take_progress())
        except SQLAlchemyError as error:
            # The database may come back before the lease runs out; nobody else owns the job yet.
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

    def _insist(self, write: Callable[[], T]) -> T:
        """Write, again and again while the database is away: nobody can take the job meanwhile.

        Raises:
            LeaseLostError: another attempt owns the job, or it is over.
            SQLAlchemyError: the worker shuts down before the database is back.
        """
        while True:
            try:
                return write()
            except SQLAlchemyError as error:
                if self._shutdown.is_set():
                    raise
                _log.warning("not written yet: the database does not answer", error=str(error))
            time.sleep(self._settings.heartbeat_seconds)

    def _conclude(self, exit_code: int | None, messages: MessageReader) -> str:
        """Write the outcome.

        Raises:
            LeaseLostError: another attempt owns the job; nothing was written.
        """
        leases = self._catalog.leases
        if self._lost:
            raise LeaseLostError(self._claim.job_id, self._claim.attempt)
        if messages.outcome is not None and not self._stopped_by_itself(messages):
            _log.info("attempt ends", outcome=type(messages.outcome).__name__)
            leases.finish(self._claim, messages.outcome, messages.take_progress())
            return type(messages.outcome).__name__.lower()
        if self._cancelled:
            _log.info("attempt ends", outcome="Cancelled")
            leases.finish(self._claim, Cancelled())
            return "cancelled"
        if self._shutdown.is_set():
            _log.info("attempt is handed back: the worker shuts down")
            leases.hand_back(self._claim)
            return "handed back"
        failed = messages.try_again or _death(exit_code)
        status = leases.release(
            self._claim,
            failed,
            is_counted=failed.code != SERVER_AWAY,
            smaller_batch=messages.smaller_batch,
        )
        _log.warning("attempt fails", error=failed.message, job_status=status.value)
        return failed.code

    def _stopped_by_itself(self, messages: MessageReader) -> bool:
        """True where the child obeyed a signal that was meant for a shutdown, not for the job."""
        return isinstance(messages.outcome, Cancelled) and not self._cancelled

    def _leave_no_bytes(self) -> None:
        """Take away what this attempt published, unless somebody may still need it."""
        claim, job = self._claim, self._job()
        if job is not None and job.attempt == claim.attempt and job.status in _KEEPING:
            # Its outcome was written, though the database's answer did not arrive; or nobody took
            # the job yet, and whoever ends it leaves these bytes as orphans.
            _log.warning("attempt ends: it is over, or gave its job up")
            return
        _log.warning("attempt ends: another attempt owns the job, or it is deleted")
        prefixes = [output_prefix(claim.job, claim.attempt)]
        if job is None or job.status.is_final:
            prefixes.append(checkpoint_prefix(claim.job_id, claim.attempt))
        self._catalog.orphans.add(prefixes)

    def _job(self) -> Job | None:
        try:
            job = self._claim.job
            return self._catalog.workspace(job.workspace).jobs.get(job.id)
        except NotFoundError:
            return None


def _report_ending(span: Span, ending: str) -> None:
    span.describe(ending=ending)
    if ending not in ("trained", "produced", "cancelled", "handed back"):
        span.fail(ending)


def _start_child(claim: Claim, server: ForkServer) -> tuple[JobProcess, MessageReader]:
    reading, writing = os.pipe()
    try:
        child = server.fork(JobOrder(claim.job_id, claim.attempt, claim.owner), writing)
    finally:
        os.close(writing)
    return child, MessageReader(reading)


def _await_exit_code(child: JobProcess, seconds: float) -> None:
    """Give a child that ended without a last word the time to leave its exit code."""
    if not child.wait(seconds):
        _log.warning("the job's process does not end and is killed")


def _death(exit_code: int | None) -> Failed:
    """What to say of a child that ended without a word."""
    assert exit_code is not None, "it was waited for"
    if exit_code >= 0:
        return Failed("process_ended", f"the job's process ended with exit code {exit_code}")
    name = signal.Signals(-exit_code).name
    hint = ": often the machine is out of memory" if name == "SIGKILL" else ""
    return Failed("process_killed", f"the job's process was killed by {name}{hint}")
