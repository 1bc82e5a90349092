"""The users: they upload, train, sample and score by the API, and ask again when it is away."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import httpx

from tests.faults.deployment import SHARD_ROWS, WORKSPACES, Deployment

_TRAININGS = [{"preset": "paper-vae", "device": "cpu", "max_steps": 300, "seed": seed}
              for seed in (0, 1)]  # fmt: skip
_SAMPLES = [{"rows": rows, "seed": seed, "format": "csv"}
            for seed, rows in enumerate((700, 1500, 2 * SHARD_ROWS + 300))]  # fmt: skip
_SCORES = [{"seed": seed, "draws": 5, "format": "csv"} for seed in (0, 1)]
_PATIENCE_SECONDS = 180.0
_AGAIN_SECONDS = 0.3


class ImpatientError(Exception):
    """The API did not take a request for so long that its users gave up."""


@dataclass(frozen=True)
class Order:
    """What a user asks for; two of the same kind and number have the same outcome."""

    kind: str
    number: int


@dataclass
class Workload:
    """The orders of one workspace of a deployment.

    Attributes:
        paths: what the workspace owns: tables, models and jobs, by path.
        jobs: the accepted orders, by job id.
        slowest_refusal_seconds: the longest that a 503 took to come.
    """

    deployment: Deployment
    workspace: str
    random: Random
    paths: list[str] = field(default_factory=list)
    jobs: dict[str, Order] = field(default_factory=dict)
    slowest_refusal_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._http = client_of(self.deployment, self.workspace)
        self._dataset_id = ""
        self._table = _table(self.workspace)
        self._model_id = ""
        self._numbers = count()
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Upload a table, order one of everything, and wait until all are done."""
        self.upload()
        first, *trainings = [Order("train", number) for number in range(len(_TRAININGS))]
        self._model_id = self._wait_for(self.order(first))
        samples = [Order("sample", number) for number in range(len(_SAMPLES))]
        scores = [Order("score", number) for number in range(len(_SCORES))]
        for job_id in [self.order(order) for order in (*trainings, *samples, *scores)]:
            self._wait_for(job_id)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def order_any(self) -> None:
        """Order something; every eighth time, upload a table too."""
        if next(self._numbers) % 8 == 0:
            self.upload()
        kinds = {"train": _TRAININGS, "sample": _SAMPLES, "score": _SCORES}
        kind = self.random.choice(["train", "train", "sample", "score"])
        self.order(Order(kind, self.random.randrange(len(kinds[kind]))))

    def order(self, order: Order) -> str:
        """Have the API take an order; returns the job's id."""
        answer = {"train": self._post_training, "sample": self._post_sample}.get(
            order.kind, self._post_score
        )(order.number)
        with self._lock:
            self.jobs[answer["job_id"]] = order
        self.paths.append(f"/v1/jobs/{answer['job_id']}")
        if order.kind == "train":
            self.paths.append(f"/v1/models/{answer['id']}")
        return str(answer["job_id"])

    def upload(self) -> None:
        """Upload the table."""
        headers = {"Content-Type": "text/csv"}
        answer = self._post_until_accepted(
            "/v1/datasets?name=table", {"content": self._table}, headers
        )
        self._dataset_id = self._dataset_id or str(answer["id"])
        self.paths.append(f"/v1/datasets/{answer['id']}")

    def _post_training(self, number: int) -> dict[str, Any]:
        body = {"dataset_id": self._dataset_id, "training": _TRAININGS[number]}
        return self._post_until_accepted("/v1/models", {"json": body}, {})

    def _post_sample(self, number: int) -> dict[str, Any]:
        path = f"/v1/models/{self._model_id}/samples"
        return self._post_until_accepted(path, {"json": _SAMPLES[number]}, {})

    def _post_score(self, number: int) -> dict[str, Any]:
        query = "&".join(f"{name}={value}" for name, value in _SCORES[number].items())
        path = f"/v1/models/{self._model_id}/scores?{query}"
        return self._post_until_accepted(
            path, {"content": self._table}, {"Content-Type": "text/csv"}
        )

    def _post_until_accepted(
        self, path: str, body: dict[str, Any], headers: dict[str, str]
    ) -> dict[str, Any]:
        """Post until it is taken, under one Idempotency-Key, as a client does."""
        key = {"Idempotency-Key": uuid.uuid4().hex}
        deadline = time.monotonic() + _PATIENCE_SECONDS
        last = ""
        while time.monotonic() < deadline:
            began_at = time.monotonic()
            try:
                response = self._http.post(path, headers=headers | key, **body)
            except httpx.TransportError as error:
                last = repr(error)
            else:
                last = response.text
                if response.is_success:
                    return dict(response.json())
                if response.status_code == 503:
                    self._note_refusal(time.monotonic() - began_at)
                elif response.status_code not in (409, 429):
                    break
            time.sleep(_AGAIN_SECONDS)
        raise ImpatientError(f"POST {path}: {last}")

    def _note_refusal(self, seconds: float) -> None:
        self.slowest_refusal_seconds = max(self.slowest_refusal_seconds, seconds)

    def _wait_for(self, job_id: str) -> str:
        """The model of a job, once it has succeeded."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            job = self._http.get(f"/v1/jobs/{job_id}").json()
            if job["status"] == "succeeded":
                return str(job["model_id"])
            assert job["status"] in ("queued", "running"), job
            time.sleep(_AGAIN_SECONDS)
        raise ImpatientError(f"job {job_id} did not end before any fault was injected")


class Users:
    """The users of all workspaces: whoever comes next orders something."""

    def __init__(self, deployment: Deployment, random: Random) -> None:
        self._random = random
        self.workloads = [Workload(deployment, name, random) for name in WORKSPACES]

    def prepare(self) -> None:
        """One of each order in each workspace, before any fault."""
        for workload in self.workloads:
            workload.prepare()

    def order_any(self) -> None:
        """Somebody orders something."""
        self._random.choice(self.workloads).order_any()

    def job_ids(self) -> list[str]:
        """Every job that was ordered."""
        return [job_id for workload in self.workloads for job_id in list(workload.jobs)]

    def n_jobs(self) -> int:
        """How many jobs were ordered."""
        return len(self.job_ids())

    def slowest_refusal_seconds(self) -> float:
        """The longest that a 503 took to come."""
        return max(workload.slowest_refusal_seconds for workload in self.workloads)

    def close(self) -> None:
        """Close the connections."""
        for workload in self.workloads:
            workload.close()


def client_of(deployment: Deployment, workspace: str) -> httpx.Client:
    """A connection with the key of a workspace."""
    headers = {"Authorization": f"Bearer {deployment.keys[workspace]}"}
    return httpx.Client(base_url=deployment.url, headers=headers, timeout=30)


def _table(workspace: str) -> bytes:
    """A table of the workspace's own: what is made of another one's is told by its bytes."""
    step = 7 + WORKSPACES.index(workspace)
    rows = (
        f"{i % 37 / 10:.1f},{'yes' if i * step % 11 < 4 else 'no'},{i * i % 101}"
        for i in range(300)
    )
    return ("height,smoker,weight\n" + "\n".join(rows) + "\n").encode()
