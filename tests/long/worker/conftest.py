"""The running systems of `tests/running_worker.py`, as fixtures."""

from __future__ import annotations

from tests.running_worker import own_real_system, real_system, shared, start_system, system

__all__ = ["own_real_system", "real_system", "shared", "start_system", "system"]
