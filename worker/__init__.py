"""The worker: Celery processes that run each job in a child process.

It also sends lost messages to workers again, closes abandoned jobs and deletes bytes without a
record.
"""

from __future__ import annotations
