"""The faults, one function each: it injects, waits as long as the fault lasts, and puts right what
no service can (a server that is down, a disk that is full).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from catalog import Catalog, Queue
from catalog.dispatch.celery import CeleryDispatcher, make_celery, queue_name
from tests.faults.deployment import LEASE_SECONDS, Deployment, Member, jobs_of, signal_all
from tests.servers.store_proxy import StoreMode

_FROZEN_SECONDS = LEASE_SECONDS + 1.5
_HOUR_SECONDS = 3600
_COPIES = 3
_NEWEST = 10
_SCRATCH_BYTES = 64 << 20


@dataclass(frozen=True)
class Scene:
    """Where a fault is injected, and the generator that decides its details."""

    deployment: Deployment
    random: Random
    running: Callable[[], dict[str, int]]
    jobs: Callable[[], list[str]]

    def pause(self) -> None:
        """Let the fault last for a while."""
        time.sleep(self.random.uniform(0.3, 2.5))

    def worker(self) -> Member:
        """A worker that has a job, if any has."""
        workers = self.deployment.workers
        busy = [worker for worker in workers if jobs_of(worker)]
        return self.random.choice(busy or workers)


Victims = Mapping[str, int]
Mark = Callable[[Victims, bool], None]
"""Called at the moment of the fault: the jobs that it hits, and whether it ends their attempts."""


def kill_child(scene: Scene, mark: Mark) -> None:
    _kill(scene, mark, "gcvae-job")


def kill_worker(scene: Scene, mark: Mark) -> None:
    """The Celery process; its children end with it, and the group starts another."""
    worker = scene.worker()
    family = worker.family()
    mark(jobs_of(worker), True)
    parents = [process for process in family if "celeryd: " in _command(process)]
    signal_all(parents[:1], signal.SIGKILL)


def kill_group(scene: Scene, mark: Mark) -> None:
    """Every process of a worker at once, as the loss of a machine does."""
    worker = scene.worker()
    family = worker.family()
    mark(jobs_of(worker), True)
    signal_all(family, signal.SIGKILL)


def kill_api(scene: Scene, mark: Mark) -> None:
    mark({}, False)
    signal_all(scene.deployment.api.family(), signal.SIGKILL)


def _take_away(scene: Scene, mark: Mark, go: Callable[[], None], back: Callable[[], None]) -> None:
    """A server goes, and comes back after a pause."""
    mark(scene.running(), False)
    go()
    scene.pause()
    back()


def kill_redis(scene: Scene, mark: Mark) -> None:
    redis = scene.deployment.servers.redis
    _take_away(scene, mark, redis.kill, redis.start)


def freeze_redis(scene: Scene, mark: Mark) -> None:
    redis = scene.deployment.servers.redis
    _take_away(scene, mark, redis.freeze, redis.thaw)


def flush_redis(scene: Scene, mark: Mark) -> None:
    mark(scene.running(), False)
    scene.deployment.servers.redis.flush()


def kill_postgres(scene: Scene, mark: Mark) -> None:
    postgres = scene.deployment.servers.postgres
    _take_away(scene, mark, postgres.kill, postgres.start)


def restart_postgres(scene: Scene, mark: Mark) -> None:
    postgres = scene.deployment.servers.postgres
    mark(scene.running(), False)
    postgres.stop()
    postgres.start()


def freeze_postgres(scene: Scene, mark: Mark) -> None:
    postgres = scene.deployment.servers.postgres
    _take_away(scene, mark, postgres.freeze, postgres.thaw)


def freeze_worker(scene: Scene, mark: Mark) -> None:
    """Every process of a worker stands still past its lease, and then goes on."""
    worker = scene.worker()
    family = worker.family()
    mark(jobs_of(worker), True)
    signal_all(family, signal.SIGSTOP)
    time.sleep(_FROZEN_SECONDS)
    signal_all(family, signal.SIGCONT)


def double_messages(scene: Scene, mark: Mark) -> None:
    """The newest jobs' messages again, of those that are over too."""
    dispatcher = CeleryDispatcher(make_celery(scene.deployment.servers.redis.url))
    mark(scene.running(), False)
    catalog = Catalog(scene.deployment.database_url)
    newest = catalog.all_jobs.get_many(sorted(scene.jobs())[-_NEWEST:])
    catalog.close()
    for job in [*newest.values()] * _COPIES:
        dispatcher.send(job)


def shuffle_messages(scene: Scene, mark: Mark) -> None:
    mark(scene.running(), False)
    with scene.deployment.servers.redis.client() as client:
        for name in map(queue_name, Queue):
            messages = client.lrange(name, 0, -1)
            scene.random.shuffle(messages)
            with client.pipeline() as pipeline:
                pipeline.delete(name)
                if messages:
                    pipeline.rpush(name, *messages)
                pipeline.execute()


def store_fault(mode: StoreMode) -> Callable[[Scene, Mark], None]:
    """A store that misbehaves for a while."""

    def inject(scene: Scene, mark: Mark) -> None:
        proxy = scene.deployment.servers.proxy
        mark(scene.running(), False)
        proxy.mode = mode
        scene.pause()
        proxy.mode = StoreMode.WELL

    return inject


def fill_disk(scene: Scene, mark: Mark) -> None:
    """The disk that the processes work on is full for a while."""
    mark(scene.running(), False)
    ballast = scene.deployment.scratch / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
    scene.pause()
    ballast.unlink()


def shift_clock(scene: Scene, mark: Mark) -> None:
    """A worker is started anew with a clock that is an hour off, until it starts again."""
    worker = scene.worker()
    worker.clock_seconds = scene.random.choice([-_HOUR_SECONDS, _HOUR_SECONDS])
    mark(jobs_of(worker), True)
    worker.stop()


def deploy(scene: Scene, mark: Mark) -> None:
    """A worker is asked to end in mid-job, and started again with the right clock."""
    worker = scene.worker()
    worker.clock_seconds = 0
    mark(jobs_of(worker), True)
    worker.stop()


FAULTS: dict[str, Callable[[Scene, Mark], None]] = {
    "training child, or other job's process, killed": kill_child,
    "worker killed (Celery process)": kill_worker,
    "worker killed (every process)": kill_group,
    "API killed": kill_api,
    "Redis killed": kill_redis,
    "Redis frozen": freeze_redis,
    "Redis flushed": flush_redis,
    "PostgreSQL killed": kill_postgres,
    "PostgreSQL restarted": restart_postgres,
    "PostgreSQL frozen": freeze_postgres,
    "worker frozen past its lease": freeze_worker,
    "messages doubled": double_messages,
    "messages reordered": shuffle_messages,
    **{f"store {mode}": store_fault(mode) for mode in StoreMode if mode is not StoreMode.WELL},
    "scratch disk full": fill_disk,
    "worker's clock an hour off": shift_clock,
    "deploy (SIGTERM) in mid-job": deploy,
}

DEAD_WORKERS = ("worker killed (Celery process)", "worker killed (every process)")

NEED_A_DISK = ("scratch disk full",)
"""Faults that need a small disk of their own: only root can make one."""


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """`folder` is a disk of a few megabytes as long as the block; nothing where that needs root."""
    if not can_mount():
        yield
        return
    size = f"size={_SCRATCH_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def can_mount() -> bool:
    """Whether this process may make a disk."""
    return os.geteuid() == 0


def _kill(scene: Scene, mark: Mark, words: str) -> None:
    worker = scene.worker()
    family = worker.family()
    mark(jobs_of(worker), True)
    signal_all([process for process in family if words in _command(process)], signal.SIGKILL)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
