"""Which numbers are seeds. Loads without torch: the service and the commands look before it."""

from __future__ import annotations

from gcvae.errors import Problem, SettingError

MAX_SEED = 2**63 - 1
"""The largest integer that JSON readers, databases and torch all hold."""


def check_seed(seed: int) -> int:
    """The seed itself.

    Raises:
        SettingError: It is negative or too large.
    """
    if not 0 <= seed <= MAX_SEED:
        expected = f"a whole number from 0 to {MAX_SEED}"
        raise SettingError(Problem(f"seed is {seed}", pointer="/seed", expected=expected))
    return seed
