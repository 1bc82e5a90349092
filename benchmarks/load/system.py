"""The system under load: `gcvae serve` in a folder of its own, a model, and a job that trains."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

from gcvae_client import Client

STREAMED_ROWS = 10_000_000
_START_SECONDS = 120
_LONG = {"preset": "fast", "seed": 1, "max_steps": 10_000_000, "patience_steps": 10_000_000}


@dataclass(frozen=True)
class System:
    """What the clients ask for."""

    url: str
    server_pid: int
    model_id: str
    job_id: str
    sample_id: str | None

    def job_status(self) -> str:
        """Of the job that trains."""
        with Client(self.url) as client:
            return str(client.job(self.job_id)["status"])


@contextmanager
def running_system(folder: Path, streamers: int = 0) -> Iterator[System]:
    """The embedded system with a trained model and a job in training; ended with the block.

    Args:
        streamers: for whom `STREAMED_ROWS` rows lie ready, and each of whom has a job that draws.
    """
    command = [sys.executable, "-m", "gcvae_cli", "serve", "--port", "0"]
    with (folder / "serve.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--data-dir", str(folder / "data")],
            env=os.environ | {"GCVAE_CPU_SLOTS": str(1 + streamers)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        url = _wait_for_url(folder / "serve.log", server)
        yield _set_up(url, server.pid, folder, streamers)
    finally:
        server.terminate()
        server.wait()


def example_table(rows: int = 5000) -> pd.DataFrame:
    """Numbers, levels and blanks that hang together."""
    generator = np.random.default_rng(0)
    age = generator.integers(18, 90, rows)
    income = np.round(np.exp(generator.normal(9 + age / 60, 0.4)), 2)
    levels = np.array(["primary", "secondary", "tertiary"])
    education = levels[np.clip((income / 15000).astype(int), 0, 2)]
    table = pd.DataFrame({"age": age, "income": income, "education": education})
    table["city"] = generator.choice(["Rome", "Paris", "Lyon", "Bonn"], rows)
    table["savings"] = np.where(generator.random(rows) < 0.1, np.nan, np.round(income / 7, 1))
    return table


def _set_up(url: str, server_pid: int, folder: Path, streamers: int) -> System:
    example_table().to_csv(folder / "table.csv", index=False)
    with Client(url) as client:
        dataset = client.upload(folder / "table.csv")
        model = client.train(dataset["id"], preset="fast", seed=0, max_steps=200)
        client.wait(model)
        client.sample(model["id"], rows=10, to=folder / "first.csv")
        sample_id = _drawn(url, model["id"]) if streamers else None
        training = client.train(dataset["id"], **_LONG)
        job_id = str(training["job_id"])
        while not (job := client.job(job_id))["progress"].get("epoch"):
            if job["status"] not in ("queued", "running"):
                raise RuntimeError(f"the training job is {job['status']}: {job['error']}")
            time.sleep(0.2)
    return System(url, server_pid, str(model["id"]), job_id, sample_id)


def _drawn(url: str, model_id: str) -> str:
    """The id of a sample of `STREAMED_ROWS` rows, once they are drawn."""
    with httpx.Client(base_url=url, timeout=60) as client:
        asked = client.post(f"/v1/models/{model_id}/samples", json={"rows": STREAMED_ROWS})
        place = f"/v1/samples/{asked.json()['id']}"
        while (sample := client.get(place).json())["status"] in ("queued", "running"):
            time.sleep(1.0)
    if sample["status"] != "succeeded":
        raise RuntimeError(f"the rows to be streamed were not drawn: {sample}")
    return str(sample["id"])


def _wait_for_url(log: Path, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if found := re.search(r"ready at (http://\S+)", log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"gcvae serve did not start:\n{log.read_text()}")
