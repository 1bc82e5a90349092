"""One sampling job on one worker and on several, and with workers killed: the same bytes.

    python -m benchmarks.shards [--rows 2000000] [--shard-rows 262144] [--workers 4] [--kill 2]

Real worker groups on a database, a queue and a store in one folder. It trains a small model
(preset `fast`), has the same rows drawn by one worker without shards, by one with, by several, and
by several of which some are killed at work (SIGKILL, with all their processes), and compares bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil

from benchmarks.quality.tables import NoTableError, data_folder
from catalog import Catalog, Job, JobKind, JobStatus, Trained, upgrade
from catalog.dispatch.celery import CeleryDispatcher, make_celery, send_soon
from catalog.job_kinds import SampleSpec
from catalog.object_keys import model_prefix
from gcvae import Synthesizer, read_table
from models_store import Store, open_store
from models_store.manifests import Manifest
from service.routes.results import cut_rows

_ROOT = Path(__file__).parents[1]
_LIMIT_SECONDS = 3600.0
_LEASE_SECONDS = 5.0
FoundT = TypeVar("FoundT")


@dataclass(frozen=True)
class Drawn:
    """What came of one job. CPU seconds are those of the workers with all their processes."""

    name: str
    shards: int
    workers: int
    killed: int
    attempts: int
    wall_seconds: float
    cpu_seconds: float
    size_bytes: int
    sha256: str


@dataclass
class Place:
    """Records, queue and bytes in a folder, and the worker groups on them."""

    folder: Path
    lease_seconds: float
    catalog: Catalog
    store: Store
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    cpu_seconds_of_killed: float = 0.0

    def start(self, n_workers: int) -> None:
        """Start worker groups, and wait until each takes messages."""
        environment = os.environ | {
            "PYTHONPATH": str(_ROOT),
            "GCVAE_DATABASE_URL": f"sqlite:///{self.folder}/catalog.db",
            "GCVAE_BROKER_URL": f"filesystem://{self.folder}/queue",
            "GCVAE_STORE_URL": f"file://{self.folder}/store",
            "GCVAE_LEASE_SECONDS": str(self.lease_seconds),
            "GCVAE_HEARTBEAT_SECONDS": str(min(1.0, self.lease_seconds / 5)),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "worker", f"--die-with-parent={os.getpid()}"]
        with (self.folder / "worker.log").open("ab") as log:
            self.workers = [
                subprocess.Popen(command, env=environment, stdout=log, stderr=log)
                for _ in range(n_workers)
            ]
        for worker in self.workers:
            _wait(lambda w=worker: len(_family(w)) >= 3)  # group, Celery process, its pool process

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """End a worker group with all its processes, as a power cut does."""
        family = _family(worker)
        self.cpu_seconds_of_killed += sum(map(_cpu_seconds, family))
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)

    def stop(self) -> float:
        """End all groups in order; the CPU seconds of all, the killed ones included."""
        seconds = self.cpu_seconds_of_killed
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            _, status, usage = os.wait4(worker.pid, 0)
            worker.returncode = os.waitstatus_to_exitcode(status)
            seconds += usage.ru_utime + usage.ru_stime
        self.workers, self.cpu_seconds_of_killed = [], 0.0
        return seconds

    def busy_workers(self, job: Job) -> list[subprocess.Popen[bytes]]:
        """The groups of which a process makes a shard of the job right now."""
        shards = {shard.id for shard in self.catalog.all_jobs.shards(job.id)}
        return [worker for worker in self.workers if shards & set(_words(worker))]


@contextmanager
def place_in(folder: Path, lease_seconds: float = _LEASE_SECONDS) -> Iterator[Place]:
    """A place whose workers end with it."""
    upgrade(f"sqlite:///{folder}/catalog.db")
    catalog = Catalog(f"sqlite:///{folder}/catalog.db")
    place = Place(folder, lease_seconds, catalog, open_store(f"file://{folder}/store"))
    try:
        yield place
    finally:
        for worker in [*place.workers]:
            place.kill(worker)
        catalog.close()


def add_model(place: Place, synthesizer: Synthesizer) -> str:
    """The id of a ready model."""
    model_id = place.catalog.workspace("default").models.new_id()
    place.catalog.orphans.reserve(model_prefix(model_id), 600)
    published = place.store.publish(f"{model_prefix(model_id)}m.gcvae", synthesizer.to_bytes())
    trained = Trained(
        published.key, published.sha256, published.size_bytes, synthesizer.schema.to_json(), {}
    )
    place.catalog.workspace("default").models.add_ready(
        model_id=model_id, name="model", trained=trained, training={}
    )
    return model_id


def draw(
    place: Place,
    name: str,
    model_id: str,
    spec: SampleSpec,
    *,
    shard_rows: int | None,
    workers: int,
    kill: int = 0,
) -> Drawn:
    """Have a job done by so many workers, of which some are killed at work."""
    place.start(workers)
    started_at = time.monotonic()
    shards = () if shard_rows is None else cut_rows(spec.rows, shard_rows)
    job = place.catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=model_id, spec=spec.to_json(), shards=shards
    )
    send_soon(CeleryDispatcher(make_celery(f"filesystem://{place.folder}/queue")), job)
    for _ in range(kill):
        place.kill(_wait(lambda: place.busy_workers(job))[0])
    _wait(lambda: place.catalog.workspace("default").jobs.get(job.id).status.is_final)
    wall_seconds = time.monotonic() - started_at
    cpu_seconds = place.stop()
    done = place.catalog.workspace("default").jobs.get(job.id)
    if done.status is not JobStatus.SUCCEEDED:
        raise RuntimeError(f"the job {name} is {done.status}: {done.error}")
    content = read_result(place, str(done.result_id))
    return Drawn(
        name,
        shards=done.n_shards,
        workers=workers,
        killed=kill,
        attempts=sum(one.attempt for one in (done, *place.catalog.all_jobs.shards(job.id))),
        wall_seconds=round(wall_seconds, 1),
        cpu_seconds=round(cpu_seconds, 1),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def read_result(place: Place, result_id: str) -> bytes:
    """The bytes of a result, as a download gives them; their checksum is the record's."""
    result = place.catalog.workspace("default").results.get(result_id)
    if result.manifest_sha256 is None:
        return place.store.read(result.object_key, result.sha256)
    manifest = Manifest.read(place.store, result.object_key, result.manifest_sha256)
    content = b"".join(manifest.stream(place.store))
    if hashlib.sha256(content).hexdigest() != result.sha256:
        raise RuntimeError(f"the parts of {result_id} are not the table that its record names")
    return content


def orphans(place: Place) -> list[str]:
    """Keys in the store that no record names."""
    named = {model.artifact_key for model in place.catalog.workspace("default").models.list().items}
    for result in place.catalog.workspace("default").results.list().items:
        named.add(result.object_key)
        if result.manifest_sha256 is not None:
            manifest = Manifest.read(place.store, result.object_key, result.manifest_sha256)
            named |= {part.key for part in manifest.shards}
    return [entry.key for entry in place.store.list() if entry.key not in named]


def main() -> int:
    """Measures and compares. Returns: 0 the same bytes, 1 others, 2 wrong usage."""
    given = _arguments()
    path = given.data / "auto_mpg.csv"
    if not path.is_file():
        print(NoTableError(f"there is no {path}; name its folder with --data"), file=sys.stderr)
        return 2
    spec = SampleSpec(given.rows, 1, given.format)
    with tempfile.TemporaryDirectory(prefix="gcvae-shards-") as name, place_in(Path(name)) as place:
        model_id = add_model(place, Synthesizer.fit(read_table(path), preset="fast", device="cpu"))
        found = [
            draw(place, label, model_id, spec, shard_rows=shard_rows, workers=workers, kill=kill)
            for label, shard_rows, workers, kill in (
                ("whole", None, 1, 0),
                ("in shards", given.shard_rows, 1, 0),
                ("in shards", given.shard_rows, given.workers, 0),
                ("in shards, workers killed", given.shard_rows, given.workers, given.kill),
            )
        ]
    is_same = len({drawn.sha256 for drawn in found}) == 1
    for drawn in found:
        print(json.dumps(asdict(drawn)))
    print("the same bytes" if is_same else "THE BYTES DIFFER")
    return 0 if is_same else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shards", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--shard-rows", type=int, default=262_144)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kill", type=int, default=2, help="fewer than the workers")
    parser.add_argument("--format", default="csv", choices=["csv", "jsonl", "json", "parquet"])
    return parser.parse_args()


def _wait(condition: Callable[[], FoundT]) -> FoundT:
    """The first true answer."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.05)
    raise TimeoutError("it did not happen")


def _family(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        process = psutil.Process(worker.pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _words(worker: subprocess.Popen[bytes]) -> list[str]:
    """The words of the command lines of a group's processes."""
    words: list[str] = []
    for process in _family(worker):
        with suppress(psutil.NoSuchProcess):
            words += process.cmdline()
    return words


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


if __name__ == "__main__":
    sys.exit(main())
