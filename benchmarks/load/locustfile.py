"""The clients: pollers of one job's status, samplers of 1,000 rows each, and who streams many.

    locust -f benchmarks/load/locustfile.py --headless -u 210 -r 50 -t 5m --host URL

with LOAD_JOB, LOAD_MODEL and LOAD_SAMPLE in the environment; `python -m benchmarks.load` sets up
all of it.
"""

from __future__ import annotations

import os
import random
from typing import Any, ClassVar

import gevent
from locust import between, constant_pacing, task
from locust.contrib.fasthttp import FastHttpUser

from benchmarks.load.system import STREAMED_ROWS

POLLERS = int(os.environ.get("LOAD_POLLERS", "200"))
SAMPLERS = int(os.environ.get("LOAD_SAMPLERS", "10"))
STREAMERS = int(os.environ.get("LOAD_STREAMERS", "0"))
ROWS = 1000
CHUNK_BYTES = 1 << 20
CHUNKS_PER_SECOND = 20
"""At full speed the one process of all clients has no time left to look at the clock."""


class Poller(FastHttpUser):
    """Looks at the job once a second, as the answer's Retry-After says, with the tag it has.

    Each by a clock of its own: clients that keep an exact pace are brought into step by the first
    delay of a second, and from then on all of them ask in the same instant.
    """

    fixed_count = POLLERS
    wait_time = between(0.8, 1.2)

    def on_start(self) -> None:
        """Nothing was seen yet."""
        self.tag: str | None = None

    @task
    def look(self) -> None:
        """Look at the job: 200 where it has news, else 304."""
        headers = {} if self.tag is None else {"If-None-Match": self.tag}
        path = f"/v1/jobs/{os.environ['LOAD_JOB']}"
        with self.client.get(path, headers=headers, name="status", catch_response=True) as answer:
            if answer.status_code in (200, 304):
                self.tag = answer.headers.get("ETag", self.tag)
                answer.success()
            else:
                answer.failure(f"status {answer.status_code}: {answer.text}")


class Sampler(FastHttpUser):
    """Draws 1,000 rows, and draws again as soon as it has them."""

    fixed_count = SAMPLERS
    wait_time = constant_pacing(float(os.environ.get("LOAD_SAMPLING_SECONDS", "0")))
    headers: ClassVar[dict[str, str]] = {"Content-Type": "application/json"}

    @task
    def draw(self) -> None:
        """Draw rows; all of them must come."""
        body = {"rows": ROWS, "seed": random.randrange(2**31)}
        path = f"/v1/models/{os.environ['LOAD_MODEL']}/samples"
        with self.client.post(path, json=body, name="sample", catch_response=True) as answer:
            if answer.status_code != 200:
                answer.failure(f"status {answer.status_code}: {answer.text}")
            elif answer.text.count("\n") != ROWS + 1:
                answer.failure(f"{answer.text.count(chr(10)) - 1} rows")
            else:
                answer.success()


class Streamer(FastHttpUser):
    """Reads 10,000,000 rows that were drawn before, again and again; a job draws as many beside."""

    fixed_count = STREAMERS
    network_timeout = 600.0

    def on_start(self) -> None:
        """Nothing is being drawn."""
        self.drawing = ""

    @task
    def stream(self) -> None:
        """See that a job draws, and read the rows that are there."""
        self._draw_beside()
        path = f"/v1/samples/{os.environ['LOAD_SAMPLE']}/content"
        with self.client.get(path, name="stream", stream=True, catch_response=True) as answer:
            n_lines, body = 0, answer._response
            while chunk := _next(body):
                n_lines += chunk.count(b"\n")
                gevent.sleep(1 / CHUNKS_PER_SECOND)
            if n_lines == STREAMED_ROWS + 1:
                answer.success()
            else:
                answer.failure(f"status {answer.status_code}: {n_lines - 1} rows")

    def _draw_beside(self) -> None:
        if self.drawing:
            sample = self.client.get(f"/v1/samples/{self.drawing}", name="is it drawn").json()
            if sample["status"] in ("queued", "running"):
                return
        body = {"rows": STREAMED_ROWS, "seed": random.randrange(2**31)}
        path = f"/v1/models/{os.environ['LOAD_MODEL']}/samples"
        self.drawing = self.client.post(path, json=body, name="draw beside").json()["id"]


def _next(body: Any) -> bytes:
    chunk: bytes = body.read(CHUNK_BYTES)
    return chunk
