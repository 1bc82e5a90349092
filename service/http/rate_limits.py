"""How many requests a key may send in a minute and in a second, and what its holder is told.

    RateLimit-Policy: "minute";q=6000;w=60, "second";q=100;w=1
    RateLimit: "minute";r=5999;t=41

(draft-ietf-httpapi-ratelimit-headers.) A second has its even part of the minute: who sends a
minute's requests at once would have the others wait for them. A table or a model that is sent
counts as several requests: it costs as much. Each API process counts by itself:
behind a proxy that deals requests out evenly, a key has that many times their number.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import TooManyRequestsError

FILE_COST = 5
"""Requests that one counts as which brings a table or a model."""
_LEAST_PER_SECOND = 20
"""A page asks for so many things at once."""


@dataclass(frozen=True)
class Allowance:
    """What is left to a key: `remaining` requests, for `seconds`."""

    per_minute: int
    per_second: int
    remaining: int
    seconds: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        """For the answer."""
        policies = b'"minute";q=%d;w=60, "second";q=%d;w=1' % (self.per_minute, self.per_second)
        return [
            (b"ratelimit-policy", policies),
            (b"ratelimit", b'"minute";r=%d;t=%d' % (self.remaining, self.seconds)),
        ]


class RateLimits:
    """Counts the requests of each key over the last minute, and over the last second."""

    def __init__(self, per_minute: int) -> None:
        per_second = min(per_minute, max(_LEAST_PER_SECOND, math.ceil(per_minute / 60)))
        self._minute = RateLimitItemPerMinute(per_minute)
        self._second = RateLimitItemPerSecond(per_second)
        self._windows = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, key_id: str, cost: int = 1) -> Allowance:
        """What is left after this request, which counts as `cost`.

        Raises:
            TooManyRequestsError: nothing was left before it.
        """
        if not self._windows.hit(self._second, key_id, cost=min(cost, self._second.amount)):
            raise TooManyRequestsError("in this second", self._second.amount, 1)
        passes = self._windows.hit(self._minute, key_id, cost=min(cost, self._minute.amount))
        remaining, seconds = self._left(self._minute, key_id)
        if not passes:
            raise TooManyRequestsError("in this minute", self._minute.amount, seconds)
        return Allowance(self._minute.amount, self._second.amount, remaining, seconds)

    def _left(self, limit: RateLimitItem, key_id: str) -> tuple[int, int]:
        stats = self._windows.get_window_stats(limit, key_id)
        return stats.remaining, max(1, math.ceil(stats.reset_time - time.time()))
