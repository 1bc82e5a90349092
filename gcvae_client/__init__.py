"""Python client of a gcvae service; the only package it requires is httpx.

with Client("http://127.0.0.1:8000") as client:
    model = client.upload("table.csv").train().wait()  # shows a progress bar
    frame = model.sample(1000)  # a pandas DataFrame, if pandas is installed
    model.sample(1000, to="synthetic.csv")
"""

from __future__ import annotations

from gcvae_client.async_client import AsyncClient
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
from gcvae_client.objects import Dataset, Job, Model

__all__ = [
    "AsyncClient",
    "BusyError",
    "Client",
    "ClientError",
    "ConflictError",
    "Dataset",
    "IncompleteError",
    "InvalidError",
    "Job",
    "JobCancelledError",
    "JobError",
    "JobFailedError",
    "MissingPackageError",
    "Model",
    "ModelNotReadyError",
    "NotFoundError",
    "ProblemError",
    "ServiceFailedError",
    "UnreachableError",
    "WaitTimeoutError",
]
