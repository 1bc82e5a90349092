"""Where the processor time of a run goes, and how late the API's event loop is."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

_LOOKS = "/v1/jobs/{job_id}"
_PARTS = {"gcvae-job": "jobs", "service.inline.imports": "inline", "gcvae_cli api": "api"}
"""What a process is, by a word of its command line; the rest of the system is `other_parts`."""


@dataclass(frozen=True)
class Measures:
    """Counts at one moment; what happened between two moments is their difference.

    Attributes:
        cpu_seconds: by part of the system, and `machine` for all processes of its cores.
        n_looks: answered looks at jobs.
        lags: the event loop's lags, by the upper bound of their bucket, in seconds.
    """

    cpu_seconds: Counter[str]
    n_looks: float
    lags: Counter[float]

    @classmethod
    def take(cls, url: str, server_pid: int) -> Measures:
        """Now, of the system that the process began."""
        cpu_seconds = _cpu_seconds_of(server_pid)
        figures = httpx.get(f"{url}/metrics", timeout=30).text
        n_looks, cumulative = 0.0, {}
        for family in text_string_to_metric_families(figures):
            for sample in family.samples:
                if sample.name == "gcvae_http_request_duration_seconds_count":
                    n_looks += sample.value if sample.labels["route"] == _LOOKS else 0.0
                if sample.name == "gcvae_event_loop_lag_seconds_bucket":
                    cumulative[float(sample.labels["le"])] = sample.value
        return cls(cpu_seconds, n_looks, _apart(cumulative))

    def since(self, before: Measures, clients_seconds: float) -> dict[str, object]:
        """What happened since then.

        Args:
            clients_seconds: processor time of the clients meanwhile.
        """
        spent = Counter(self.cpu_seconds)
        spent.subtract(before.cpu_seconds)
        spent["clients"] = clients_seconds
        machine = spent.pop("machine")
        spent["processes_of_others"] = max(0.0, machine - spent.total())
        lags = Counter(self.lags)
        lags.subtract(before.lags)
        return {
            "cpu_seconds": {name: round(seconds, 1) for name, seconds in sorted(spent.items())},
            "api_cpu_ms_per_look": round(
                1000 * spent["api"] / max(1.0, self.n_looks - before.n_looks), 3
            ),
            "event_loop_lag_at_most_ms": {
                f"p{percent}": _told(_bound(lags, percent / 100)) for percent in (50, 95, 99)
            },
        }


def _cpu_seconds_of(server_pid: int) -> Counter[str]:
    server = psutil.Process(server_pid)
    seconds: Counter[str] = Counter()
    for process in [server, *server.children(recursive=True)]:
        try:
            command, times = " ".join(process.cmdline()), process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        part = next((part for word, part in _PARTS.items() if word in command), "other_parts")
        seconds[part] += times.user + times.system
    cores = psutil.cpu_times(percpu=True)
    for number in os.sched_getaffinity(0):
        seconds["machine"] += sum(cores[number]) - cores[number].idle - cores[number].iowait
    return seconds


def _apart(cumulative: dict[float, float]) -> Counter[float]:
    found: Counter[float] = Counter()
    below = 0.0
    for bound, n in sorted(cumulative.items()):
        found[bound], below = int(n - below), n
    return found


def _bound(lags: Counter[float], share: float) -> float:
    """The bound of the bucket that the quantile lies in."""
    wanted, passed = share * lags.total(), 0
    for bound in sorted(lags):
        passed += lags[bound]
        if passed >= wanted:
            return bound
    return math.inf


def _told(seconds: float) -> float | None:
    """In milliseconds; JSON has no number for beyond the last bucket."""
    return None if math.isinf(seconds) else 1000 * seconds
