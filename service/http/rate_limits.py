"""How many requests a key may send in a minute, and what its holder is told of that.

    RateLimit-Policy: "minute";q=6000;w=60        RateLimit: "minute";r=5999;t=41

(draft-ietf-httpapi-ratelimit-headers.) Each API process counts by itself: behind a proxy that deals
requests out evenly, a key has that many times their number.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import TooManyRequestsError


@dataclass(frozen=True)
class Allowance:
    """What is left to a key: `remaining` requests, for `seconds`."""

    per_minute: int
    remaining: int
    seconds: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        """For the answer."""
        return [
            (b"ratelimit-policy", b'"minute";q=%d;w=60' % self.per_minute),
            (b"ratelimit", b'"minute";r=%d;t=%d' % (self.remaining, self.seconds)),
        ]


class RateLimits:
    """Counts the requests of each key over the last minute."""

    def __init__(self, per_minute: int) -> None:
        self._limit = RateLimitItemPerMinute(per_minute)
        self._window = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, key_id: str) -> Allowance:
        """What is left after this request.

        Raises:
            TooManyRequestsError: nothing was left before it.
        """
        passes = self._window.hit(self._limit, key_id)
        stats = self._window.get_window_stats(self._limit, key_id)
        seconds = max(1, math.ceil(stats.reset_time - time.time()))
        if not passes:
            raise TooManyRequestsError(self._limit.amount, seconds)
        return Allowance(self._limit.amount, stats.remaining, seconds)
