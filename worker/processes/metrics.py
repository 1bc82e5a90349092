"""Prometheus metrics of one worker group, served on a separate port.

They describe only the loop of the worker group. Outcomes of jobs are counted in the database and
reported by the API, because counts in a killed process would be lost.
"""

from __future__ import annotations

import threading
import time
from http.server import HTTPServer

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, start_http_server

from worker.errors import MetricsPortError
from worker.settings import JobSettings

_log = structlog.get_logger(__name__)


class WorkerMetrics:
    """Prometheus metrics: rounds of the worker group's loop, and starts of Celery processes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._looks = Counter(
            "gcvae_worker_looks",
            "Rounds of the worker's loop, by result",
            ["result"],
            registry=self.registry,
        )
        for result in ("done", "failed"):
            self._looks.labels(result)
        self._last_look = Gauge(
            "gcvae_worker_last_look_timestamp_seconds",
            "Time at which database, queue and store last responded",
            registry=self.registry,
        )
        self._starts = Counter(
            "gcvae_worker_celery_starts",
            "Starts of Celery processes; more than one for each slot shows a crash",
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)

    def count_round(self, *, failed: bool) -> None:
        """Counts one round of the worker's loop.

        Args:
            failed: Whether the database, the queue or the store was unavailable.
        """
        self._looks.labels("failed" if failed else "done").inc()
        if not failed:
            self._last_look.set(time.time())

    def celery_started(self) -> None:
        """Counts one start of a Celery process."""
        self._starts.inc()


class MetricsServer:
    """HTTP server of the worker's metrics; it does nothing if no port is configured."""

    def __init__(self, settings: JobSettings, metrics: WorkerMetrics) -> None:
        """Opens the port and starts serving.

        Raises:
            MetricsPortError: The port is not available.
        """
        self._server: HTTPServer | None = None
        self._thread: threading.Thread | None = None
        if settings.metrics_port is None:
            return
        address = settings.metrics_host, settings.metrics_port
        try:
            self._server, self._thread = start_http_server(
                address[1], address[0], registry=metrics.registry
            )
        except OSError as error:
            raise MetricsPortError(*address, str(error.strerror)) from error
        _log.info("metrics are served", host=address[0], port=address[1])

    def close(self) -> None:
        """Stops the HTTP server and closes its port."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
