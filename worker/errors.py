"""The errors of the worker.

WorkerError
├── ParentGoneError    the process that this one belongs to has ended
└── MetricsPortError   the port of the worker's figures can not be taken
"""

from __future__ import annotations


class WorkerError(Exception):
    """Root of the worker's errors."""


class ParentGoneError(WorkerError):
    """The process that this one belongs to has ended."""


class MetricsPortError(WorkerError):
    """The port of the worker's figures can not be taken."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"port {port} of {host} can not be taken for metrics ({reason}); "
            "choose another by GCVAE_METRICS_PORT, or leave it unset"
        )
        self.host = host
        self.port = port
