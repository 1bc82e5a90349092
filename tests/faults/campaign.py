"""A campaign: users order jobs, faults come at seeded moments, and everything must end right."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.faults.deployment import LEASE_SECONDS, Deployment, Servers
from tests.faults.injections import FAULTS, NEED_A_DISK, Scene, Victims, can_mount, small_disk
from tests.faults.observer import Hit, Observer
from tests.faults.trespass import Trespasser
from tests.faults.verdict import Judge, Verdict
from tests.faults.workload import ImpatientError, Users

_MOST_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Plan:
    """What a campaign does.

    Attributes:
        faults: how many are injected.
        jobs: how many are ordered at least, beside one of each that nothing disturbs; more while
            faults still come.
        grace_seconds: twice as long after the last fault, and the last order, everything must be
            right.
        with_stand_in: workers have the stand-in for the library, whose jobs need no torch.
        n_workers: two more than jobs at once: the job of a dead worker need not wait, though
            another worker is just being started.
        pause_seconds: between two faults, on average.
        only: inject only faults whose names hold this.
    """

    name: str
    faults: int
    jobs: int
    seed: int
    grace_seconds: float
    with_stand_in: bool
    n_workers: int = 4
    pause_seconds: float = 1.0
    only: str = ""


@dataclass
class Outcome:
    """What came of a campaign."""

    plan: Plan
    hits: list[Hit]
    verdict: Verdict
    n_jobs: int
    n_jobs_before_last_fault: int
    seconds: float
    slowest_refusal_seconds: float
    n_trespasses: int
    troubles: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Everything ended as it must, and every fault was recovered from."""
        is_recovered = all(hit.recovered_at is not None for hit in self.hits)
        return self.verdict.is_right and is_recovered and not self.troubles


Inspect = Callable[[Deployment, Callable[[], Verdict]], None]
"""Looks at a deployment after its campaign, and may have it judged again."""


def run(
    plan: Plan, servers: Servers, *, logs: Path | None = None, inspect: Inspect | None = None
) -> Outcome:
    """Run a campaign on the servers; the processes' logs are kept where a folder is given."""
    began_at = time.monotonic()
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="gcvae-faults-"))
        folder = Path(temporary) if logs is None else logs
        folder.mkdir(parents=True, exist_ok=True)
        deployment = Deployment(
            servers,
            folder,
            plan.name,
            n_workers=plan.n_workers,
            with_stand_in=plan.with_stand_in,
            grace_seconds=plan.grace_seconds,
        )
        stack.enter_context(small_disk(deployment.scratch))
        stack.enter_context(deployment)
        return _disturb(plan, deployment, began_at, inspect)


def _disturb(
    plan: Plan, deployment: Deployment, began_at: float, inspect: Inspect | None
) -> Outcome:
    users = Users(deployment, Random(plan.seed + 1))
    users.prepare()
    judge = Judge(deployment, users.workloads)
    n_before, troubles = users.n_jobs(), list[str]()
    with (
        Observer(deployment, LEASE_SECONDS) as observer,
        Trespasser(deployment, users.workloads, Random(plan.seed + 2)) as trespasser,
    ):
        injected = threading.Event()
        ordering = threading.Thread(
            target=_order,
            args=(plan, users, observer, injected, troubles),
            name="users",
            daemon=True,
        )
        ordering.start()
        try:
            _inject(plan, deployment, observer, users)
        finally:
            injected.set()
        n_hit = users.n_jobs() - n_before
        ordering.join()
        time.sleep(2 * plan.grace_seconds)
        verdict = judge.judge(observer, trespasser)
        if inspect is not None:
            inspect(deployment, lambda: judge.judge(observer, trespasser))
    judge.close()
    users.close()
    return Outcome(
        plan=plan,
        hits=observer.hits,
        verdict=verdict,
        n_jobs=users.n_jobs() - n_before,
        n_jobs_before_last_fault=n_hit,
        seconds=time.monotonic() - began_at,
        slowest_refusal_seconds=users.slowest_refusal_seconds(),
        n_trespasses=trespasser.n_calls,
        troubles=troubles,
    )


def _order(
    plan: Plan,
    users: Users,
    observer: Observer,
    injected: threading.Event,
    troubles: list[str],
) -> None:
    """Keep a few jobs going until the faults are over and enough were ordered."""
    n_before = users.n_jobs()
    while users.n_jobs() - n_before < plan.jobs or not injected.is_set():
        if observer.n_active(users.job_ids()) < plan.n_workers - 2:
            try:
                users.order_any()
            except ImpatientError as error:
                troubles.append(f"users gave up: {error}")
                print(f"{plan.name}: {troubles[-1]}", flush=True)
        time.sleep(0.3)


def _wait_for_orders(n_jobs: int, users: Users) -> None:
    """Let the users keep up: the faults are spread over all jobs, on a slow machine too."""
    deadline = time.monotonic() + _MOST_WAIT_SECONDS
    while users.n_jobs() < n_jobs and time.monotonic() < deadline:
        time.sleep(0.1)


def _inject(plan: Plan, deployment: Deployment, observer: Observer, users: Users) -> None:
    random, n_before = Random(plan.seed), users.n_jobs()
    scene = Scene(deployment, random, observer.running, lambda: list(observer.jobs))
    for number, fault in enumerate(_sequence(plan, random), start=1):
        time.sleep(random.uniform(0.0, 2 * plan.pause_seconds))
        _wait_for_orders(n_before + plan.jobs * (number - 1) // plan.faults, users)
        FAULTS[fault](scene, lambda *told, n=number, f=fault: _note(observer, n, f, *told))
        observer.hits[-1].over_at = time.time()
        _say(plan, observer, number)


def _sequence(plan: Plan, random: Random) -> list[str]:
    """Every kind of fault about equally often, in random order."""
    kinds = [name for name in FAULTS if can_mount() or name not in NEED_A_DISK]
    kinds = [name for name in kinds if plan.only in name]
    random.shuffle(kinds)
    faults = [kinds[i % len(kinds)] for i in range(plan.faults)]
    random.shuffle(faults)
    return faults


def _note(observer: Observer, number: int, fault: str, victims: Victims, kills: bool) -> None:
    observer.hits.append(Hit(number, fault, dict(victims), kills, time.time()))


def _say(plan: Plan, observer: Observer, number: int) -> None:
    hit = observer.hits[-1]
    unwell = sum(other.recovered_at is None for other in observer.hits)
    active = len(observer.running())
    print(
        f"{plan.name} {number}/{plan.faults}: {hit.fault}; hit {len(hit.victims)} jobs; "
        f"{active} run, of {len(observer.jobs)}; {unwell} faults not recovered from",
        flush=True,
    )
