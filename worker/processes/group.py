"""The worker group: a main process, and a Celery process for each slot (room for one running job).

The main process restarts Celery processes that have ended. In regular rounds, it also sends lost
messages again, closes abandoned jobs and deletes bytes without a record.

    worker group ── Celery process of each slot ── fork server ── gcvae-job

A thread of the Celery process supervises the job. Each process ends when the one to its left does.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from types import FrameType

import structlog
from sqlalchemy.exc import SQLAlchemyError

from catalog import Catalog
from catalog.database.migrate import check
from catalog.dispatch.celery import CeleryDispatcher, make_celery
from catalog.dispatch.reconciler import Reconciler
from models_store import Store, open_store_of
from models_store.errors import StoreError
from runtime.deadline import end_within
from runtime.logs import set_up_logs
from runtime.traces import make_traces
from worker.processes.app import open_catalog
from worker.processes.metrics import MetricsServer, WorkerMetrics
from worker.processes.slots import Slot, find_gpus, make_slots
from worker.settings import WorkerSettings
from worker.upkeep import collect_garbage

_log = structlog.get_logger(__name__)

_RESTART_SECONDS = 2.0
_FORGET_SECONDS = 3600.0
_SEEN_SECONDS = 5.0


def run_worker(settings: WorkerSettings) -> int:
    """Runs the worker group until SIGTERM or SIGINT; returns the exit code.

    On a signal the worker gives its running jobs back to the queue, to be resumed by another
    worker. Processes that have not ended after `shutdown_seconds` are killed.

    Raises:
        SchemaVersionError: The database's tables have an older or newer version.
        MissingExtraError: Traces are configured, and OpenTelemetry is not installed.
        MetricsPortError: The port for metrics is not available.
    """
    set_up_logs(settings.runtime)
    make_traces(settings.runtime, "worker")  # fails at the start instead of in each job
    check(settings.catalog.database_url)
    stop = threading.Event()
    _stop_on_signals(stop, settings.jobs.shutdown_seconds)
    group = WorkerGroup(settings)
    try:
        group.run(stop)
    finally:
        group.close()
    return 0


class WorkerGroup:
    """Runs a Celery process for each slot, and the regular maintenance of queues and store."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._catalog: Catalog = open_catalog(settings)
        self._store: Store = open_store_of(settings.store)
        dispatcher = CeleryDispatcher(make_celery(settings.catalog.broker_url))
        self._reconciler = Reconciler(self._catalog, dispatcher)
        self._metrics = WorkerMetrics()
        self._metrics_server = MetricsServer(settings.jobs, self._metrics)
        slots = make_slots(settings.jobs, find_gpus())
        self._slot_names = [str(slot) for slot in slots]
        self._slots = [SlotProcess(slot, settings, self._metrics) for slot in slots]
        self._name = f"{socket.gethostname()}/{os.getpid()}"
        self._forget_at = self._seen_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Restarts ended Celery processes and does maintenance, in rounds, until `stop` is set.

        Maintenance sends lost messages again, closes abandoned jobs, and deletes bytes without a
        record and old results.
        """
        self._try(self._reconciler.start)
        while not stop.is_set():
            for slot in self._slots:
                slot.keep()
            self._try(self._tick)
            stop.wait(self._settings.jobs.reconcile_seconds)

    def close(self) -> None:
        """Asks the Celery processes to give their jobs back, and waits until they have ended."""
        for slot in self._slots:
            slot.ask_to_stop()
        for slot in self._slots:
            slot.stop()
        self._try(lambda: self._catalog.workers.gone(self._name))
        self._metrics_server.close()
        self._catalog.close()

    def _tick(self) -> None:
        if time.monotonic() >= self._seen_at:
            self._catalog.workers.seen(self._name, version("gcvae"), self._slot_names)
            self._seen_at = time.monotonic() + _SEEN_SECONDS
        self._reconciler.run_once()
        collect_garbage(self._catalog, self._store)
        if time.monotonic() >= self._forget_at:
            self._reconciler.forget_old_keys()
            seconds = self._settings.jobs.keep_results_seconds
            retention = self._catalog.retention
            if seconds is not None and (n := retention.delete_results_older_than(seconds)):
                _log.info("old results are deleted", results=n)
            self._forget_at = time.monotonic() + _FORGET_SECONDS

    def _try(self, action: Callable[[], object]) -> None:
        failed = False
        try:
            action()
        except (SQLAlchemyError, StoreError, OSError) as error:
            failed = True
            _log.warning("could not reconcile, will try again", error=str(error))
        self._metrics.count_round(failed=failed)


class SlotProcess:
    """Celery process of one slot; `keep` restarts it when it has ended."""

    def __init__(self, slot: Slot, settings: WorkerSettings, metrics: WorkerMetrics) -> None:
        self._slot = slot
        self._settings = settings
        self._metrics = metrics
        self._celery: subprocess.Popen[bytes] | None = None
        self._restart_at = 0.0

    def keep(self) -> None:
        """Starts the Celery process if it is not running, at most once in two seconds."""
        if self._celery is not None and self._celery.poll() is not None:
            _log.warning("the Celery process ended", exit_code=self._celery.returncode)
            self._celery = None
        if self._celery is None and time.monotonic() >= self._restart_at:
            self._celery = self._start()
            self._metrics.celery_started()
            self._restart_at = time.monotonic() + _RESTART_SECONDS

    def ask_to_stop(self) -> None:
        """Asks the Celery process to give its job back and end."""
        if self._celery is not None:
            self._celery.terminate()

    def stop(self) -> None:
        """Waits until the Celery process has ended, then kills processes that it has left behind.

        These are the remaining processes of its process group. The processes of jobs do not belong
        to this group; they end when the Celery process ends.
        """
        if self._celery is not None:
            self._celery.wait()
            with suppress(ProcessLookupError):
                os.killpg(self._celery.pid, signal.SIGKILL)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "worker.processes.app", "--parent", str(os.getpid())]
        environment = self._settings.child_environment() | self._slot.variables
        environment.pop("GCVAE_QUEUES_FILE", None)  # the slot's GCVAE_QUEUES replaces it
        _log.info("slot starts", queues=self._slot.queues, gpu=self._slot.gpu)
        # In a separate session, a terminal's Ctrl-C reaches only the group, which then stops
        # its processes in order.
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
        )


def _stop_on_signals(stop: threading.Event, limit_seconds: float) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():
            end_within(limit_seconds)
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
