"""Counters of an inline process, sent with each answer to the metrics of the API process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import TypeVar

BlockT = TypeVar("BlockT", bound=Sized)


@dataclass(frozen=True)
class Tally:
    """Counters of an inline process since its last answer.

    Attributes:
        lookups: Lookups of loaded models, by `hit` and `miss`.
        rows: Rows that were returned without a job, by kind of job.
    """

    lookups: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def count_lookup(self, *, was_loaded: bool) -> None:
        """Counts a lookup of a loaded model."""
        self.lookups["hit" if was_loaded else "miss"] += 1

    def count_rows(self, kind: str, blocks: Iterable[BlockT]) -> Iterator[BlockT]:
        """Yields the blocks, and counts their rows."""
        for block in blocks:
            self.rows[kind] += len(block)
            yield block

    def take(self) -> Tally:
        """Returns the counts and resets them."""
        taken = Tally(self.lookups.copy(), self.rows.copy())
        self.lookups.clear()
        self.rows.clear()
        return taken
