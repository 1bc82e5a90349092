"""Webhooks under faults: an API process is killed, receivers hang, refuse and answer late."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import httpx

from tests.servers.servers import free_port
from tests.servers.webhook_receiver import receiver

ROOT = Path(__file__).parents[3]
N_JOBS, N_KILLS = 8, 4
CSV = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 9, i % 2) for i in range(60))


class Api:
    """A service process that is killed and started again on the same data."""

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

    def _run(self, *words: str) -> None:
        database = {
            "GCVAE_DATABASE_URL": f"sqlite:///{self._environment['GCVAE_HOME_DIR']}/catalog.sqlite"
        }
        command = [sys.executable, "-m", "gcvae_cli", *words]
        subprocess.run(command, env=self._environment | database, check=True, capture_output=True)


def test_every_event_arrives_at_least_once_and_in_order(tmp_path: Path) -> None:
    api, chance = Api(tmp_path), random.Random(0)

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
            jobs = [
                http.post("/v1/models", json={"dataset_id": dataset}).json()["job_id"]
                for _ in range(N_JOBS)
            ]
            for n in range(N_KILLS):
                for job in jobs:
                    if n:
                        http.post(f"/v1/jobs/{job}/retry").raise_for_status()
                    http.post(f"/v1/jobs/{job}/cancel").raise_for_status()
                time.sleep(chance.random())
                api.kill()
                api.start()
            n_events = N_JOBS * N_KILLS
            target.wait_for(n_events, "/calm", seconds=180)
            target.wait_for(n_events, "/hook", seconds=180)

            for path in ("/hook", "/calm"):
                by_job: dict[str, list[str]] = defaultdict(list)
                for event in target.events(path):
                    by_job[event["data"]["job_id"]].append(event["id"])
                assert set(by_job) == set(jobs)
                for ids in by_job.values():
                    assert ids == sorted(ids), "a later event never comes before an earlier one"
                    assert len(set(ids)) == N_KILLS
            # Only attempts that a kill interrupted are repeated where the receiver is well.
            assert len(target.events("/calm")) <= n_events + 4 * N_KILLS
    finally:
        api.kill()
