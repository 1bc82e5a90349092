"""A Celery process that runs jobs, one at a time, in one slot of the worker.

The worker group starts it by `python -m worker.processes.app --parent PID`.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from contextlib import closing
from typing import Any

import structlog
from celery import Celery
from celery.signals import setup_logging, worker_shutting_down

from catalog import Catalog
from catalog.dispatch.celery import RUN_JOBS, make_celery, queue_name
from models_store import open_store_of
from runtime.logs import set_up_logs
from runtime.parentage import die_with_parent
from runtime.processes import ForkServer
from runtime.traces import make_traces
from worker.processes.supervisor import JOB_IMPORTS, run_jobs
from worker.settings import WorkerSettings, read_settings

_log = structlog.get_logger(__name__)

_BROKER_SECONDS = 10.0


def make_worker_app(
    settings: WorkerSettings, shutdown: threading.Event, server: ForkServer
) -> Celery:
    """Returns the Celery application of a worker; its only task runs jobs until none is waiting.

    Args:
        shutdown: Once set, no further job begins.
        server: Fork server that starts the jobs' processes.
    """
    app = make_celery(settings.catalog.broker_url, _BROKER_SECONDS)

    @app.task(name=RUN_JOBS, ignore_result=True)  # type: ignore[untyped-decorator]
    def run(_job_id: str) -> None:
        catalog = open_catalog(settings)
        traces = make_traces(settings.runtime, "worker")
        try:
            store = open_store_of(settings.store)
            run_jobs(catalog, store, settings.jobs, shutdown, server, traces)
        finally:
            traces.close()
            catalog.close()

    return app


def open_catalog(settings: WorkerSettings) -> Catalog:
    """Opens the database at the URL in the worker's settings."""
    return Catalog(
        settings.catalog.database_url,
        attempts_limit=settings.catalog.attempts_limit,
        resend_seconds=settings.catalog.resend_seconds,
        resend_limit_seconds=settings.catalog.resend_limit_seconds,
        running_jobs_limit=settings.catalog.running_jobs_limit,
    )


def serve(settings: WorkerSettings) -> int:
    """Runs jobs as messages arrive, until asked to stop; returns the exit code."""
    # Celery warns of running as root because of pickle; our messages are only JSON.
    warnings.filterwarnings("ignore", message=".*superuser privileges.*")
    shutdown = threading.Event()
    server = ForkServer(JOB_IMPORTS)
    app = make_worker_app(settings, shutdown, server)
    setup_logging.connect(_keep_our_logs, weak=False)
    worker_shutting_down.connect(lambda **_: shutdown.set(), weak=False)
    worker = app.Worker(
        queues=[queue_name(queue) for queue in settings.jobs.queues],
        concurrency=1,
        pool="threads",  # jobs run in child processes
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel=settings.runtime.log_level.upper(),
    )
    with closing(server):
        if settings.jobs.preload_torch:  # so that the first job need not wait for imports
            server.start()
        worker.start()
    return int(worker.exitcode or 0)


def _keep_our_logs(**_: Any) -> None:
    """Does nothing; as a receiver of Celery's signal, it keeps Celery from configuring logging."""


def main() -> int:
    """Runs the Celery process until its parent ends or asks it to stop; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m worker.processes.app", description=__doc__)
    parser.add_argument("--parent", type=int, required=True, help="pid; end when it does")
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    settings = read_settings()
    set_up_logs(settings.runtime)
    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
