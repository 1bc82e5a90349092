"""Limits on the requests of an API key per minute and per second, and headers that report them.

    RateLimit-Policy: "minute";q=6000;w=60, "second";q=100;w=1
    RateLimit: "minute";r=5999;t=41

The headers follow draft-ietf-httpapi-ratelimit-headers. The limit per second is a sixtieth of the
limit per minute, so that a burst from one client does not delay others; it is at least 20, because
a web page sends this many requests at once. An upload of a table or model counts as several
requests, because it costs as much. Each API process counts separately: with n processes behind a
proxy, a key has about n times the limit.
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
"""Number of requests that an upload of a table or model, or a step of a sign-on, counts as."""
_LEAST_PER_SECOND = 20
"""Minimum of the limit per second, because a web page sends this many requests at once."""


@dataclass(frozen=True)
class Allowance:
    """State of an API key's rate limits after a request.

    Attributes:
        per_minute: Limit of requests per minute.
        per_second: Limit of requests per second.
        remaining: Requests that the limit per minute still allows within the next `seconds`.
        seconds: Seconds until the window of the limit per minute resets.
    """

    per_minute: int
    per_second: int
    remaining: int
    seconds: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Returns the response headers RateLimit-Policy and RateLimit."""
        policies = b'"minute";q=%d;w=60, "second";q=%d;w=1' % (self.per_minute, self.per_second)
        return [
            (b"ratelimit-policy", policies),
            (b"ratelimit", b'"minute";r=%d;t=%d' % (self.remaining, self.seconds)),
        ]


class RateLimits:
    """Counts the requests of each API key in sliding windows of a minute and of a second.

    Args:
        per_minute: Limit of requests per key and minute.
    """

    def __init__(self, per_minute: int) -> None:
        per_second = min(per_minute, max(_LEAST_PER_SECOND, math.ceil(per_minute / 60)))
        self._minute = RateLimitItemPerMinute(per_minute)
        self._second = RateLimitItemPerSecond(per_second)
        self._windows = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, key_id: str, cost: int = 1) -> Allowance:
        """Counts a request. Returns the limits and the remaining requests.

        Args:
            key_id: Id of the API key or person; for a sign-on, the client's IP address.
            cost: Number of requests that this request counts as.

        Raises:
            TooManyRequestsError: The key has reached a limit. A refused request costs nothing.
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
        """Returns (remaining requests of a key, seconds until the window resets) for one limit."""
        stats = self._windows.get_window_stats(limit, key_id)
        return stats.remaining, max(1, math.ceil(stats.reset_time - time.time()))
