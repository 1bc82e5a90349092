"""How late the event loop is: what every request waits for before it is begun."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.metrics import Metrics

_LOOK_SECONDS = 0.1


async def watch_lag(metrics: Metrics) -> None:
    """Tell the metrics again and again how late this very task comes, until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LOOK_SECONDS
        await asyncio.sleep(_LOOK_SECONDS)
        metrics.lagged(max(0.0, loop.time() - due))
