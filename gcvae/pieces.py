"""Pieces of a file that is made in several places: joined in order they are the file."""

from __future__ import annotations

from dataclasses import dataclass

SHARD_UNIT_ROWS = 4096
"""A run of rows that is made in a place of its own begins at a multiple of this many: the blocks in
which rows are drawn, completed and scored all divide it."""


@dataclass(frozen=True)
class Piece:
    """Whether a run of a table's rows begins its file, and whether it ends it."""

    is_first: bool = True
    is_last: bool = True


WHOLE = Piece()
"""The rows are all."""
