"""What the allocator does with memory that tensors have left."""

from __future__ import annotations

import torch

_BYTES = 33_000_000
"""Just under the 32 MiB up to which the GNU allocator learns."""


def keep_freed_memory() -> None:
    """Has the process keep up to 64 MiB of freed memory, instead of asking for it anew each time.

    A training step or a block of rows frees what it has allocated. The GNU allocator gives such
    memory back, and the kernel clears each page that is asked for again: a seventh of a step's
    time. It keeps twice the largest block that was ever freed, so one that is never touched is
    freed here. Other allocators take no notice.
    """
    torch.empty(_BYTES, dtype=torch.uint8)
