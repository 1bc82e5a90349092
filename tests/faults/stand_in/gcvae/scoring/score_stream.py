"""Scores as bytes: a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gcvae.files.table_stream import MEDIA_TYPES, stream_table

__all__ = ["MEDIA_TYPES", "ScoreTotals", "new_totals", "stream_scores"]


class ScoreTotals:
    """How many rows there were."""

    def __init__(self) -> None:
        self.rows = 0

    def to_json(self) -> dict[str, Any]:
        return {"rows": self.rows}


def new_totals(scoring: str) -> ScoreTotals:
    """Totals of no rows; hashes know but one scoring."""
    assert scoring == "full", scoring
    return ScoreTotals()


def stream_scores(
    blocks: Iterable[list[str]],
    format: str,
    _heading: object,
    totals: ScoreTotals,
    _piece: object = None,
) -> Iterator[bytes]:
    """The lines of all blocks, which are counted."""
    for block in blocks:
        totals.rows += len(block)
        yield from stream_table([block], None, format)
