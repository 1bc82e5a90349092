"""Division of a job's rows into shards, which several workers process."""

from __future__ import annotations

from gcvae.files.shards import SHARD_UNIT_ROWS


def cut_rows(rows: int, shard_rows: int) -> list[range]:
    """Divides row numbers into ranges for several workers; returns [] if one range suffices.

    Each range but the last has `shard_rows` rows, rounded up to a multiple of `SHARD_UNIT_ROWS`.

    >>> cut_rows(20_000, 8_192)
    [range(0, 8192), range(8192, 16384), range(16384, 20000)]
    >>> cut_rows(8_192, 8_192)
    []
    """
    step = -(-shard_rows // SHARD_UNIT_ROWS) * SHARD_UNIT_ROWS
    if rows <= step:
        return []
    return [range(first, min(first + step, rows)) for first in range(0, rows, step)]
