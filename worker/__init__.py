"""Celery worker that runs each job in a child process, and the reconciler."""

from __future__ import annotations
