"""The errors of the worker."""

from __future__ import annotations


class WorkerError(Exception):
    """Base class of the worker's errors."""


class DeletedTableError(WorkerError):
    """A dataset that a job reads was deleted."""

    def __init__(self, dataset_id: str) -> None:
        super().__init__(
            f"dataset {dataset_id}, which the job reads, was deleted; use another dataset"
        )


class GpuMemoryError(WorkerError):
    """The GPU has too little memory for training.

    Attributes:
        batch_size: Number of rows in the batch that did not fit.
    """

    def __init__(self, batch_size: int, reason: str) -> None:
        super().__init__(f"GPU memory is too small for batches of {batch_size} rows: {reason}")
        self.batch_size = batch_size


class MetricsPortError(WorkerError):
    """The port on which the worker should serve its metrics is not available."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"port {port} of {host} is not available for metrics ({reason}); "
            "choose another port with GCVAE_METRICS_PORT, or leave it unset"
        )
