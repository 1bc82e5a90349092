"""Shards of a file that several workers write; concatenated in order they are the file."""

from __future__ import annotations

from dataclasses import dataclass

SHARD_UNIT_ROWS = 4096
"""Shards begin at multiples of this. The block sizes of generation, imputation and scores divide
it."""


@dataclass(frozen=True)
class FileShard:
    """Position of a shard in its file: whether it is the first, and whether it is the last."""

    is_first: bool = True
    is_last: bool = True


WHOLE = FileShard()
"""The shard that is the whole file."""
