"""Selects the device for computations, and checks that rows fit into the memory."""

from __future__ import annotations

import os

import pandas as pd
import torch

from gcvae.errors import Problem, SettingError

_GIB = 2.0**30


def device_named(name: str) -> torch.device:
    """Returns the device with this name; `auto` is CUDA if available, otherwise the CPU.

    Raises:
        SettingError: The name is not `auto`, `cpu` or `cuda`, or CUDA is not available.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise SettingError(f"unknown device {name!r}; expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise SettingError("device is cuda, but this machine offers none; expected auto or cpu")
    return torch.device(name)


def refuse_rows_beyond_memory(rows: int, block: pd.DataFrame) -> None:
    """Checks that a number of rows fits into the physical memory, estimated from the size of the
    sample `block`; does nothing if the sample is empty or the memory's size is unknown.

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
