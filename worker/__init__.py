"""The worker: Celery processes that run each job in a child process, and the reconciler."""

from __future__ import annotations
