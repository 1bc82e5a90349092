"""Which numbers are seeds. Loads without torch: the service and the commands look before it."""

from __future__ import annotations

import hashlib
import secrets

from gcvae.numerics.whole_numbers import whole_number

MAX_SEED = 2**63 - 1
"""The largest integer that JSON readers, databases and torch all hold."""
_FRESH_BITS = 53
"""Readers of JSON that have float64 alone, such as a browser's, keep so many exactly."""


def fresh_seed() -> int:
    """Returns a seed that nobody else has, for those who do not say which."""
    return secrets.randbits(_FRESH_BITS)


def derived_seed(*origin: str) -> int:
    """Returns the seed of these texts: the same for the same ones."""
    digest = hashlib.sha256("\x1f".join(origin).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> (64 - _FRESH_BITS)


def check_seed(seed: int) -> int:
    """Returns the seed itself.

    Raises:
        SettingError: It is no whole number, negative or too large.
    """
    return whole_number("seed", seed, 0, MAX_SEED)
