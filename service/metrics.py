"""Prometheus metrics at `/metrics`, about this process and about the records in the database.

Job events are counted in the database, in the transaction that causes them
(`catalog/database/counts.py`). All API processes therefore report the same job metrics, and no
count is lost with a process. In Prometheus, aggregate job metrics over processes by `max by (…)`,
not by a sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from catalog.database.counts import BUCKETS_SECONDS, Counted
from catalog.job_kinds import JobKind, Queue
from catalog.records import JobStatus
from catalog.statistics import Count, KindState, Statistics
from service.tallies import Tally

_REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Metrics:
    """Prometheus metrics of one API process; labels never contain ids.

    Args:
        statistics: Reads job and storage statistics from the database, at each scrape.
    """

    def __init__(self, statistics: Statistics) -> None:
        self.registry = CollectorRegistry()
        self._requests = Histogram(
            "gcvae_http_request_duration_seconds",
            "Time from a request to the start of its response",
            ["method", "route", "status"],
            buckets=_REQUEST_BUCKETS,
            registry=self.registry,
        )
        self.in_progress = Gauge(
            "gcvae_http_requests_in_progress",
            "Requests whose response is not complete",
            registry=self.registry,
        )
        self._lookups = Counter(
            "gcvae_model_cache_requests",
            "Lookups of models in memory; a miss loads the model",
            ["result"],
            registry=self.registry,
        )
        self._inline_rows = Counter(
            "gcvae_inline_rows",
            "Rows returned without a job",
            ["kind"],
            registry=self.registry,
        )
        self._deaths = Counter(
            "gcvae_inline_process_deaths",
            "Processes of inline work that died",
            registry=self.registry,
        )
        self._lag = Histogram(
            "gcvae_event_loop_lag_seconds",
            "Delay of a periodic task in the event loop",
            buckets=_LAG_BUCKETS,
            registry=self.registry,
        )
        for result in ("hit", "miss"):
            self._lookups.labels(result)
        for kind in JobKind:
            if kind is not JobKind.TRAIN:
                self._inline_rows.labels(kind.value)
        ProcessCollector(registry=self.registry)
        self.registry.register(RecordsCollector(statistics))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Records a request: its response began after `seconds`; `route` is its path template."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).observe(seconds)

    def add(self, tally: Tally) -> None:
        """Increases the metrics by the counts that a child process has sent to this process."""
        for result, n in tally.lookups.items():
            self._lookups.labels(result).inc(n)
        for kind, n_rows in tally.rows.items():
            self._inline_rows.labels(kind).inc(n_rows)

    def process_died(self) -> None:
        """Counts the death of a child process that runs models."""
        self._deaths.inc()

    def lagged(self, seconds: float) -> None:
        """Records how many seconds too late the event loop resumed a periodic task."""
        self._lag.observe(seconds)


class RecordsCollector(Collector):
    """Prometheus collector that reads its metrics from the database at each scrape."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics

    def describe(self) -> list[Metric]:
        """Returns no metrics, so that registering the collector does not query the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics; if the database does not respond, only `gcvae_records_up` as 0."""
        up = GaugeMetricFamily("gcvae_records_up", "1 if the database responded to this scrape")
        try:
            kinds = self._statistics.kinds()
            counts = self._statistics.counts()
            orphans = self._statistics.n_orphans()
        except SQLAlchemyError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from _queue_gauges(kinds)
        yield from _kind_gauges(kinds)
        yield GaugeMetricFamily(
            "gcvae_leftovers_due", "Prefixes in the store that are due for deletion", orphans
        )
        yield from _counters(counts)
        yield from _histograms(counts)


def _queue_gauges(kinds: list[KindState]) -> Iterator[Metric]:
    depth = GaugeMetricFamily("gcvae_queue_depth", "Waiting jobs", labels=["queue"])
    age = GaugeMetricFamily(
        "gcvae_queue_oldest_age_seconds", "Waiting time of the oldest waiting job", labels=["queue"]
    )
    for queue in Queue:
        states = [state for state in kinds if state.kind.queue is queue]
        depth.add_metric([queue], sum(state.queued for state in states))
        age.add_metric([queue], max(state.oldest_seconds for state in states))
    yield from (depth, age)


def _kind_gauges(kinds: list[KindState]) -> Iterator[Metric]:
    running = GaugeMetricFamily("gcvae_jobs_running", "Running jobs", labels=["kind"])
    abandoned = GaugeMetricFamily(
        "gcvae_jobs_abandoned", "Running jobs whose lease has expired", labels=["kind"]
    )
    speed = GaugeMetricFamily(
        "gcvae_rows_per_second", "Rows per second of all running jobs, as reported", labels=["kind"]
    )
    for state in kinds:
        running.add_metric([state.kind.value], state.running)
        abandoned.add_metric([state.kind.value], state.abandoned)
        speed.add_metric([state.kind.value], state.rows_per_second)
    yield from (running, abandoned, speed)


_KINDS = [{"kind": kind.value} for kind in JobKind]
_ENDINGS = [
    labels | {"outcome": status.value}
    for labels in _KINDS
    for status in JobStatus
    if status.is_final
]
_COUNTERS = {
    Counted.CREATED: ("Created jobs", ["kind"], _KINDS),
    Counted.ATTEMPTS: ("Started attempts", ["kind"], _KINDS),
    Counted.RETRIES: (
        "Attempts that ended without an outcome and are repeated",
        ["kind", "reason"],
        [labels | {"reason": "lease_lost"} for labels in _KINDS],
    ),
    Counted.LEASE_LOSSES: ("Attempts whose lease expired", ["kind"], _KINDS),
    Counted.FINISHED: ("Finished jobs", ["kind", "outcome"], _ENDINGS),
    Counted.ROWS: ("Rows in the results of jobs", ["kind"], _KINDS[1:]),
}
"""For each counter (help text, label names, label values that are reported as 0 until counted)."""

_HISTOGRAMS = {
    Counted.DURATION: (
        "Time from a job's first start to its end",
        ["kind", "outcome"],
        _ENDINGS,
    ),
    Counted.WAIT: ("Time from queueing a job to the start of an attempt", ["kind"], _KINDS),
}


def _counters(counts: list[Count]) -> Iterator[Metric]:
    for name, (text, labels, known) in _COUNTERS.items():
        family = CounterMetricFamily(f"gcvae_{name}", text, labels=labels)
        values = {_key(each, labels): 0.0 for each in known}
        values |= {
            _key(found.labels, labels): found.value for found in counts if found.name == name
        }
        for key, value in sorted(values.items()):
            family.add_metric(list(key), value)
        yield family


def _histograms(counts: list[Count]) -> Iterator[Metric]:
    bounds = [*(str(bound) for bound in BUCKETS_SECONDS), "+Inf"]
    for name, (text, labels, known) in _HISTOGRAMS.items():
        family = HistogramMetricFamily(f"gcvae_{name}", text, labels=labels)
        values: dict[tuple[str, ...], dict[str, float]] = {_key(each, labels): {} for each in known}
        for found in counts:
            if found.name == name:
                key = _key(found.labels, labels)
                values.setdefault(key, {})[found.labels["le"]] = found.value
        for key, by_bound in sorted(values.items()):
            n = [by_bound.get(bound, 0.0) for bound in bounds]
            cumulative = [sum(n[: place + 1]) for place in range(len(n))]
            buckets = list(zip(bounds, cumulative, strict=True))
            family.add_metric(list(key), buckets, by_bound.get("sum", 0.0))
        yield family


def _key(labels: dict[str, str], names: list[str]) -> tuple[str, ...]:
    return tuple(labels[name] for name in names)
