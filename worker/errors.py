"""The errors of the worker.

WorkerError
└── ParentGoneError   the process that this one belongs to has ended
"""

from __future__ import annotations


class WorkerError(Exception):
    """Root of the worker's errors."""


class ParentGoneError(WorkerError):
    """The process that this one belongs to has ended."""
