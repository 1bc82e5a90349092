"""Measures the lag of the event loop, by which every request is delayed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.metrics import Metrics

_INTERVAL_SECONDS = 0.1


async def watch_lag(metrics: Metrics) -> None:
    """Reports the lag of a periodic task to the metrics, until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL_SECONDS
        await asyncio.sleep(_INTERVAL_SECONDS)
        metrics.lagged(max(0.0, loop.time() - due))
