"""Shards of a file that is made in several places: joined in order they are the file."""

from __future__ import annotations

from dataclasses import dataclass

SHARD_UNIT_ROWS = 4096
"""A shard begins at a row whose number is a multiple of this: the blocks in which rows are drawn,
completed and scored all divide it."""


@dataclass(frozen=True)
class FileShard:
    """Whether a shard of a table's rows begins its file, and whether it ends it."""

    is_first: bool = True
    is_last: bool = True


WHOLE = FileShard()
"""The rows are all."""
