"""The jobs: a Celery worker that runs each in a child process, and the reconciler."""

from __future__ import annotations
