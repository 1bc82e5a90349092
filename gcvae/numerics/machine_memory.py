"""Checks that data frames can fit into the machine's memory."""

from __future__ import annotations

import os

import pandas as pd

from gcvae.errors import Problem, SettingError

_GIB = 2.0**30


def refuse_rows_beyond_memory(rows: int, block: pd.DataFrame) -> None:
    """Checks that a number of rows fits into the physical memory, judged by the size of a sample;
    passes if the sample is empty or the memory's size is unknown.

    Raises:
        SettingError: The rows need more than the physical memory; the message says how much.
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
