"""The clients: pollers of one job's status, and samplers of 1,000 rows each.

    locust -f benchmarks/load/locustfile.py --headless -u 210 -r 50 -t 5m --host URL

with LOAD_JOB and LOAD_MODEL in the environment; `python -m benchmarks.load` sets up all of it.
"""

from __future__ import annotations

import os
import random
from typing import ClassVar

from locust import between, constant_pacing, task
from locust.contrib.fasthttp import FastHttpUser

POLLERS = int(os.environ.get("LOAD_POLLERS", "200"))
SAMPLERS = int(os.environ.get("LOAD_SAMPLERS", "10"))
ROWS = 1000


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
