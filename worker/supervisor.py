"""The supervisor: one attempt at a job, in a child process that may die in any way."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
import uuid

import structlog
from sqlalchemy.exc import DBAPIError

from catalog import Cancelled, Catalog, Claim, Failed
from catalog.errors import LeaseLostError, NotFoundError
from catalog.places import checkpoint_prefix, output_prefix
from models_store import Store
from models_store.errors import StoreError
from worker.messages import MessageReader
from worker.scratch import remove_scratch
from worker.settings import JobSettings
from worker.shutdown import SharedFlag
from worker.sweeping import sweep

_log = structlog.get_logger(__name__)


def run_jobs(catalog: Catalog, store: Store, settings: JobSettings, shutdown: SharedFlag) -> None:
    """Attempt jobs of the settings' queues, each in its turn, until none is to be had.

    A message is only a call to look. Whoever is at work goes on until nothing waits, so that a job
    which had to wait for its workspace's limit needs no message of its own.

    Args:
        shutdown: once set, the attempt is handed back at once, and no other is begun.
    """
    while not shutdown.is_set():
        claim = catalog.leases.claim_next(settings.queues, new_owner(), settings.lease_seconds)
        if claim is None:
            return
        run_attempt(claim, catalog, store, settings, shutdown)


def new_owner() -> str:
    """A name for the owner of a lease that tells where it works; no other has it."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def run_attempt(
    claim: Claim, catalog: Catalog, store: Store, settings: JobSettings, shutdown: SharedFlag
) -> None:
    """Make one attempt at a job; its outcome stands in the records."""
    with structlog.contextvars.bound_contextvars(job=claim.job_id, attempt=claim.attempt):
        _log.info("attempt begins", kind=claim.job.kind.value)
        Supervisor(catalog, store, claim, settings, shutdown).run()
        sweep(catalog, store)


class Supervisor:
    """Watches over the child process of one attempt and writes its outcome."""

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        claim: Claim,
        settings: JobSettings,
        shutdown: SharedFlag,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._claim = claim
        self._settings = settings
        self._shutdown = shutdown
        self._cancelled = False
        self._lost = False
        self._kill_at: float | None = None
        self._alive_until = time.monotonic() + claim.lease_seconds

    def run(self) -> None:
        """Run the child to its end, then write what became of it."""
        child, messages = _start_child(self._claim)
        try:
            self._watch(child, messages)
        finally:
            child.kill()
            child.wait()
            os.close(messages.descriptor)
            remove_scratch(self._claim)
        try:
            self._conclude(child.returncode, messages)
        except LeaseLostError:
            self._lost = True
        if self._lost:
            self._leave_no_bytes()

    def _watch(self, child: subprocess.Popen[bytes], messages: MessageReader) -> None:
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
            _wait(child, self._settings.cancel_grace_seconds)

    def _beat(self, child: subprocess.Popen[bytes], messages: MessageReader) -> None:
        try:
            answer = self._catalog.leases.heartbeat(self._claim, messages.take_progress())
        except DBAPIError as error:
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

    def _conclude(self, returncode: int, messages: MessageReader) -> None:
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
        elif self._cancelled:
            _log.info("attempt ends", outcome="Cancelled")
            leases.finish(self._claim, Cancelled())
        elif self._shutdown.is_set():
            _log.info("attempt is handed back: the worker shuts down")
            leases.hand_back(self._claim)
        else:
            failed = messages.try_again or _death(returncode)
            status = leases.release(self._claim, failed, smaller_batch=messages.smaller_batch)
            _log.warning("attempt fails", error=failed.message, job_status=status.value)

    def _stopped_by_itself(self, messages: MessageReader) -> bool:
        """True where the child obeyed a signal that was meant for a shutdown, not for the job."""
        return isinstance(messages.outcome, Cancelled) and not self._cancelled

    def _leave_no_bytes(self) -> None:
        """Take away what this attempt published, unless its successor still may need it."""
        _log.warning("attempt ends: another attempt owns the job, or it is over")
        claim = self._claim
        prefixes = [output_prefix(claim.job, claim.attempt)]
        if self._is_over():
            prefixes.append(checkpoint_prefix(claim.job_id, claim.attempt))
        try:
            for prefix in prefixes:
                self._store.delete(prefix)
        except StoreError as error:
            _log.warning("the attempt's bytes were not deleted", error=str(error))

    def _is_over(self) -> bool:
        try:
            job = self._catalog.jobs.get(self._claim.job_id, workspace=self._claim.job.workspace)
        except NotFoundError:
            return True
        return job.status.is_final


def _start_child(claim: Claim) -> tuple[subprocess.Popen[bytes], MessageReader]:
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "worker.job", "gcvae-job", claim.job_id]
    command += ["--attempt", str(claim.attempt), "--owner", claim.owner]
    command += ["--parent", str(os.getpid()), "--messages", str(writing)]
    try:
        child = subprocess.Popen(command, pass_fds=[writing], stdin=subprocess.DEVNULL)
    finally:
        os.close(writing)
    return child, MessageReader(reading)


def _wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Give a child that ended without a last word the time to leave its exit code."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        _log.warning("the job's process does not end and is killed")


def _death(returncode: int) -> Failed:
    """What to say of a child that ended without a word."""
    if returncode >= 0:
        return Failed("process_ended", f"the job's process ended with exit code {returncode}")
    name = signal.Signals(-returncode).name
    hint = ": often the machine is out of memory" if name == "SIGKILL" else ""
    return Failed("process_killed", f"the job's process was killed by {name}{hint}")
