"""Rate limits of keys per minute and per second, and the headers that report them.

    RateLimit-Policy: "minute";q=6000;w=60, "second";q=100;w=1
    RateLimit: "minute";r=5999;t=41

(draft-ietf-httpapi-ratelimit-headers.) The limit per second is the proportional part of the limit
per minute, so that one client can not delay others by a burst. The upload of a table or model
counts as several requests, because it costs as much. Each API process counts separately: with n
processes behind a proxy, a key has about n times the limit.
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
"""Cost of an upload of a table or model, in requests."""
_LEAST_PER_SECOND = 20
"""Requests that one page sends at once."""


@dataclass(frozen=True)
class Allowance:
    """Remaining requests of a key for the next `seconds`."""

    per_minute: int
    per_second: int
    remaining: int
    seconds: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Returns the headers of the response."""
        policies = b'"minute";q=%d;w=60, "second";q=%d;w=1' % (self.per_minute, self.per_second)
        return [
            (b"ratelimit-policy", policies),
            (b"ratelimit", b'"minute";r=%d;t=%d' % (self.remaining, self.seconds)),
        ]


class RateLimits:
    """Counts the requests of each key in sliding windows of a minute and a second."""

    def __init__(self, per_minute: int) -> None:
        per_second = min(per_minute, max(_LEAST_PER_SECOND, math.ceil(per_minute / 60)))
        self._minute = RateLimitItemPerMinute(per_minute)
        self._second = RateLimitItemPerSecond(per_second)
        self._windows = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, key_id: str, cost: int = 1) -> Allowance:
        """Counts a request with its `cost`. Returns the remaining requests.

        Raises:
            TooManyRequestsError: No request remained. A refused request costs nothing.
        """
        minute, second = self._minute, self._second
        if not self._windows.test(second, key_id, cost=min(cost, second.amount)):
            raise TooManyRequestsError("in this second", second.amount, 1)
        if not self._windows.test(minute, key_id, cost=min(cost, minute.amount)):
            _, seconds = self._left(minute, key_id)
            raise TooManyRequestsError("in this minute", minute.amount, seconds)
        for limit in (minute, second):
            self._windows.hit(limit, key_id, cost=min(cost, limit.amount))
        remaining, seconds = self._left(minute, key_id)
        return Allowance(self._minute.amount, self._second.amount, remaining, seconds)

    def _left(self, limit: RateLimitItem, key_id: str) -> tuple[int, int]:
        """Returns (remaining requests, seconds until the window resets)."""
        stats = self._windows.get_window_stats(limit, key_id)
        return stats.remaining, max(1, math.ceil(stats.reset_time - time.time()))
