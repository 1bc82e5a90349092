"""The Python client of the service: it needs httpx and nothing else.

with Client("http://127.0.0.1:8000") as client:
    dataset = client.upload("table.csv")
    model = client.train(dataset)
    client.wait(model, on_progress=lambda job: print(job["progress"]["fraction"]))
    client.sample(model, rows=1000, to="synthetic.csv")
    frame = client.sample(model, rows=1000)  # with pandas, a DataFrame
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
    MissingPackageError,
    ModelNotReadyError,
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
    "MissingPackageError",
    "ModelNotReadyError",
    "NotFoundError",
    "ProblemError",
    "ServiceFailedError",
    "UnreachableError",
    "WaitTimeoutError",
]
