"""Checks that data frames can fit into the machine's memory."""

from __future__ import annotations

import os

import pandas as pd

from gcvae.errors import Problem, SettingError

_GIB = 2.0**30


def refuse_rows_beyond_memory(rows: int, block: pd.DataFrame) -> None:
    """Raises an error if `rows` rows like those of a block need more than the physical memory.

    rows * (bytes of the block / its rows) > physical memory. If the memory size is unknown, nothing
    is refused.

    Raises:
        SettingError: The rows do not fit; the message has the number of bytes they need.
    """
    names = getattr(os, "sysconf_names", {})
    if not len(block) or not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(names):
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    needed = rows / len(block) * float(block.memory_usage(deep=True, index=False).sum())
    if needed > memory:
        message = (
            f"{rows:,} rows need about {needed / _GIB:,.0f} GiB of memory, "
            f"and this machine has {memory / _GIB:,.0f}"
        )
        expected = "fewer rows, or sample_blocks, which gives them a block at a time"
        raise SettingError(Problem(message, "/rows", expected=expected))
