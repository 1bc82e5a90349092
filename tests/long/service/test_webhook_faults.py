"""Webhooks under faults: API and worker are killed; receivers hang, refuse and answer late."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import httpx
import psutil

from tests.servers.servers import free_port
from tests.servers.webhook_receiver import receiver

ROOT = Path(__file__).parents[3]
N_JOBS, N_KILLS = 8, 4
CSV = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))


class Api:
    """A service process that is killed and started again on the same data, and its workers."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = os.environ | {
            "GCVAE_HOME_DIR": str(folder),
            "GCVAE_OUTSIDE_HOSTS": "127.0.0.1",
            "GCVAE_OUTSIDE_NETWORKS": "127.0.0.0/8",
            "GCVAE_OUTSIDE_TIMEOUT_SECONDS": "0.5",
            "GCVAE_PRELOAD_TORCH": "false",
            "GCVAE_MAX_QUEUED_JOBS": "1000",
            "GCVAE_LEASE_SECONDS": "3",
            "GCVAE_RECONCILE_SECONDS": "0.5",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
        }
        self._run("db", "upgrade")
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "gcvae_cli", "api", "--port", str(self.port)]
        self._process = subprocess.Popen(
            command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 60
        while True:
            try:
                if httpx.get(f"{self.url}/healthz").is_success:
                    return
            except httpx.HTTPError:
                assert time.monotonic() < until, "the service does not start"
                time.sleep(0.1)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker on the same data; it ends with this process."""
        command = [sys.executable, "-m", "gcvae_cli", "worker", "--parent", str(os.getpid())]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=self._environment, stdout=quiet, stderr=quiet)

    def _run(self, *words: str) -> None:
        database = {
            "GCVAE_DATABASE_URL": f"sqlite:///{self._environment['GCVAE_HOME_DIR']}/catalog.sqlite"
        }
        command = [sys.executable, "-m", "gcvae_cli", *words]
        subprocess.run(command, env=self._environment | database, check=True, capture_output=True)


def test_every_event_arrives_at_least_once_and_in_order(tmp_path: Path) -> None:
    api, chance = Api(tmp_path), random.Random(0)
    worker = None

    def sometimes_bad() -> int:
        what = chance.random()
        if what < 0.15:
            time.sleep(0.8)  # longer than the service waits
        return 500 if what > 0.85 else 204

    try:
        with receiver() as target, httpx.Client(base_url=api.url, timeout=60) as http:
            target.answers["/hook"] = sometimes_bad
            http.post("/v1/webhooks", json={"url": f"{target.url}/hook"}).raise_for_status()
            http.post("/v1/webhooks", json={"url": f"{target.url}/calm"}).raise_for_status()
            headers = {"Content-Type": "text/csv"}
            dataset = http.post("/v1/datasets", content=CSV, headers=headers).json()["id"]

            def train(**training: object) -> str:
                body = {"dataset_id": dataset, "training": {"device": "cpu"} | training}
                return str(http.post("/v1/models", json=body).raise_for_status().json()["job_id"])

            jobs, done = [train() for _ in range(N_JOBS)], []
            for n in range(N_KILLS):
                for job in jobs:
                    if n:
                        http.post(f"/v1/jobs/{job}/retry").raise_for_status()
                    http.post(f"/v1/jobs/{job}/cancel").raise_for_status()
                done += [train(preset="fast", max_steps=5) for _ in range(2)]
                worker = api.start_worker()
                _until_some_ended(http, done, 2 * n + 1)
                time.sleep(chance.random() / 2)
                kill_all(worker)
                api.kill()
                api.start()
            worker = api.start_worker()
            _until_some_ended(http, done, len(done))
            n_events = (N_JOBS + 2) * N_KILLS
            target.wait_for(n_events, "/calm", seconds=180)
            target.wait_for(n_events, "/hook", seconds=180)

            for path in ("/hook", "/calm"):
                by_job: dict[str, list[str]] = defaultdict(list)
                for event in target.events(path):
                    by_job[event["data"]["job_id"]].append(event["id"])
                assert set(by_job) == {*jobs, *done}
                for job, ids in by_job.items():
                    assert ids == sorted(ids), "a later event never comes before an earlier one"
                    assert len(set(ids)) == (N_KILLS if job in jobs else 1)
                assert len(target.events(path)) <= 2 * n_events
            # Only attempts that a kill interrupted are repeated where the receiver is well.
            assert len(target.events("/calm")) <= n_events + 4 * N_KILLS
    finally:
        api.kill()
        if worker is not None:
            kill_all(worker)


def _until_some_ended(http: httpx.Client, jobs: list[str], n_jobs: int) -> None:
    until = time.monotonic() + 180
    while sum(http.get(f"/v1/jobs/{job}").json()["status"] == "succeeded" for job in jobs) < n_jobs:
        assert time.monotonic() < until, "the jobs do not end"
        time.sleep(0.05)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its children."""
    for member in (*psutil.Process(process.pid).children(recursive=True), process):
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()
