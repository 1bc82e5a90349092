"""What the records say, looked at all the time: how soon what was hit goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg

from catalog.records import JobStatus
from tests.faults.deployment import Deployment

_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Sight:
    """A job at one moment; the expiry is in seconds since 1970."""

    status: JobStatus
    attempt: int
    expires_at: float | None
    is_shard: bool = False


@dataclass
class Hit:
    """One injected fault, and what has to go on after it.

    Attributes:
        victims: jobs that ran when it came, with their attempts.
        kills: whether those attempts cannot go on: others must.
        over_at: when the fault itself was over (time.time).
        recovered_at: when its victims were well again, and the API too unless a worker was hit;
            None until then.
    """

    number: int
    fault: str
    victims: Mapping[str, int]
    kills: bool
    injected_at: float
    over_at: float | None = None
    recovered_at: float | None = None

    def recovery_seconds(self) -> float | None:
        """From the fault to the recovery from it."""
        return None if self.recovered_at is None else self.recovered_at - self.injected_at


@dataclass
class Observer:
    """Looks at the records of a deployment; a context in which a thread does so."""

    deployment: Deployment
    lease_seconds: float
    hits: list[Hit] = field(default_factory=list)
    jobs: dict[str, Sight] = field(default_factory=dict)
    changed_after_the_end: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ready_at = 0.0
        self._ended = threading.Event()
        # Two threads: an API that is slow to answer must not delay the look at the records.
        self._threads = [
            threading.Thread(target=look_on, name="observer", daemon=True)
            for look_on in (self._look_at_records, self._look_at_api)
        ]

    def __enter__(self) -> Observer:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def running(self) -> dict[str, int]:
        """The jobs that are worked on now, with their attempts; one in shards waits for them."""
        return {
            job_id: sight.attempt
            for job_id, sight in dict(self.jobs).items()
            if sight.status is JobStatus.RUNNING and sight.expires_at is not None
        }

    def n_active(self, ordered: list[str]) -> int:
        """How many of these jobs are not over, as far as was seen."""
        seen = dict(self.jobs)
        return sum(job_id not in seen or not seen[job_id].status.is_final for job_id in ordered)

    def _look_at_api(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            asked_at = time.time()
            if self.deployment.is_ready():
                self._ready_at = asked_at

    def _look_at_records(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self._look()
            except psycopg.Error:
                continue  # it is down, which is what some faults are
            self._judge()

    def _look(self) -> None:
        query = "SELECT id, status, attempt, lease_expires_at, parent_id IS NOT NULL FROM jobs"
        with psycopg.connect(self.deployment.database_url, connect_timeout=2) as connection:
            rows = connection.execute(query).fetchall()
        for job_id, status, attempt, expires_at, is_shard in rows:
            sight = Sight(JobStatus(status), attempt, expires_at, is_shard)
            before = self.jobs.get(job_id)
            # A shard whose part was lost is made again; what users see never changes.
            is_over = before is not None and before.status.is_final and not is_shard
            if is_over and before != sight:
                self.changed_after_the_end.append(f"{job_id}: {before} became {sight}")
            self.jobs[job_id] = sight

    def _judge(self) -> None:
        for hit in list(self.hits):
            if hit.recovered_at is not None or hit.over_at is None:
                continue
            is_ready = hit.kills or self._ready_at > hit.over_at
            if is_ready and all(self._goes_on(hit, *victim) for victim in hit.victims.items()):
                hit.recovered_at = time.time()

    def _goes_on(self, hit: Hit, job_id: str, attempt: int) -> bool:
        """Whether a victim is over, or shows a sign of life from after the fault."""
        sight = self.jobs[job_id]
        if sight.status.is_final:
            return True
        if sight.expires_at is None or (hit.kills and sight.attempt == attempt):
            return False
        assert hit.over_at is not None, "judged after it was over"
        return sight.expires_at - self.lease_seconds > hit.over_at
