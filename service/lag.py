"""Measures the lag of the event loop, which delays all requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.metrics import Metrics

_INTERVAL_SECONDS = 0.1


async def watch_lag(metrics: Metrics) -> None:
    """Reports every 0.1 s, until cancelled, how many seconds late the event loop resumes a task."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL_SECONDS
        await asyncio.sleep(_INTERVAL_SECONDS)
        metrics.lagged(max(0.0, loop.time() - due))
