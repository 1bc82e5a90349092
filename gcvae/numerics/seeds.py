"""Validation and derivation of seeds. The module does not import torch."""

from __future__ import annotations

import hashlib
import secrets

from gcvae.numerics.whole_numbers import whole_number

MAX_SEED = 2**63 - 1
"""The largest integer that JSON readers, databases and torch support."""
_FRESH_BITS = 53
"""Bits of random seeds; JSON readers with float64 numbers, such as browsers, keep these exactly."""


def fresh_seed() -> int:
    """Returns a random seed, for callers that give none."""
    return secrets.randbits(_FRESH_BITS)


def derived_seed(*origin: str) -> int:
    """Returns the seed determined by these texts."""
    digest = hashlib.sha256("\x1f".join(origin).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> (64 - _FRESH_BITS)


def check_seed(seed: int) -> int:
    """Returns the seed if it is valid.

    Raises:
        SettingError: It is not an integer, negative or too large.
    """
    return whole_number("seed", seed, 0, MAX_SEED)
