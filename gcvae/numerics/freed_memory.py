"""Configures the allocator to keep freed memory."""

from __future__ import annotations

import torch

_BYTES = 33_000_000
"""Size just below 32 MiB, the upper limit of the GNU allocator's adaptive threshold."""


def keep_freed_memory() -> None:
    """Makes the process keep up to 64 MiB of freed memory for reuse.

    Training steps and blocks of rows free what they allocate. By default the GNU allocator returns
    such memory to the kernel, which clears each page when it is requested again: a seventh of a
    step's time. The allocator keeps twice the largest block that was ever freed, so this function
    allocates and frees one large block. Other allocators are not affected.
    """
    torch.empty(_BYTES, dtype=torch.uint8)
