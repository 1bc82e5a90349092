"""Shards of a file: parts that several workers write, and that form the file when concatenated."""

from __future__ import annotations

from dataclasses import dataclass

SHARD_UNIT_ROWS = 4096
"""The first row of every shard is a multiple of this number. It is itself a multiple of the block
sizes with which rows are generated, imputed and scored."""


@dataclass(frozen=True)
class FileShard:
    """Position of a part of a file that several workers write: whether it is the first part, with
    the header, and whether it is the last one, with the end of the file."""

    is_first: bool = True
    is_last: bool = True


WHOLE = FileShard()
"""Shard that consists of the complete file."""
