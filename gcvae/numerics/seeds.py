"""Validates and derives random seeds, without importing torch."""

from __future__ import annotations

import hashlib
import secrets

from gcvae.numerics.whole_numbers import whole_number

MAX_SEED = 2**63 - 1
"""The largest seed: the largest integer that databases and torch support."""
_FRESH_BITS = 53
"""Number of bits of random seeds; JSON readers that use float64, such as browsers, keep them
exactly."""


def fresh_seed() -> int:
    """Returns a random seed, for use if the caller specifies none."""
    return secrets.randbits(_FRESH_BITS)


def derived_seed(*origin: str) -> int:
    """Returns a seed that is a hash of the given strings."""
    digest = hashlib.sha256("\x1f".join(origin).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> (64 - _FRESH_BITS)


def check_seed(seed: int) -> int:
    """Returns the seed, an integer from 0 to `MAX_SEED`; raises SettingError for any other."""
    return whole_number("seed", seed, 0, MAX_SEED)
