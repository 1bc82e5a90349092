"""The Python client of the service: httpx and nothing else.

with Client("http://127.0.0.1:8000") as client:
    dataset = client.upload("table.csv")
    model = client.train(dataset["id"])
    client.wait(model, on_progress=lambda job: print(job["progress"]["fraction"]))
    client.sample(model["id"], rows=1000, to="synthetic.csv")
"""

from __future__ import annotations

from gcvae_client.client import Client
from gcvae_client.errors import (
    BusyError,
    ClientError,
    ConflictError,
    IncompleteError,
    InvalidError,
    JobCancelledError,
    JobError,
    JobFailedError,
    NotFoundError,
    ProblemError,
    ServiceFailedError,
    UnreachableError,
    WaitTimeoutError,
)

__all__ = [
    "BusyError",
    "Client",
    "ClientError",
    "ConflictError",
    "IncompleteError",
    "InvalidError",
    "JobCancelledError",
    "JobError",
    "JobFailedError",
    "NotFoundError",
    "ProblemError",
    "ServiceFailedError",
    "UnreachableError",
    "WaitTimeoutError",
]
