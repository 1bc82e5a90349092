"""Ids such as `job_01k4…`: a type prefix and a unique part that grows with time."""

from __future__ import annotations

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_RANDOM_BITS = 80
_LENGTH = 26  # 48 bits of milliseconds and 80 random bits, 5 bits a letter

_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """Returns a new id that begins with `prefix`.

    It sorts after all ids with the same prefix that this process has made before.
    """
    number = _next_number()
    shifts = range(5 * (_LENGTH - 1), -1, -5)
    return f"{prefix}_{''.join(_ALPHABET[(number >> shift) & 31] for shift in shifts)}"


def _next_number() -> int:
    global _last
    milliseconds = time.time_ns() // 1_000_000
    number = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    with _lock:
        # Ids are in order also within one millisecond, and after the clock was set back.
        _last = max(number, _last + 1)
        return _last
