"""Counters in a child process that runs models, sent to the API process with each answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import TypeVar

BlockT = TypeVar("BlockT", bound=Sized)


@dataclass(frozen=True)
class Tally:
    """Counters of the work of a child process that runs models, since its previous answer.

    Attributes:
        lookups: How often a requested model was in memory ("hit") or had to be loaded ("miss").
        rows: Number of rows returned without a job, by kind of job.
    """

    lookups: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def count_lookup(self, *, was_loaded: bool) -> None:
        """Counts a request for a model; `was_loaded` says whether it was in memory before."""
        self.lookups["hit" if was_loaded else "miss"] += 1

    def count_rows(self, kind: str, blocks: Iterable[BlockT]) -> Iterator[BlockT]:
        """Yields the blocks of rows unchanged, and counts their rows under `kind`."""
        for block in blocks:
            self.rows[kind] += len(block)
            yield block

    def take(self) -> Tally:
        """Returns a copy of the counts and resets them to zero."""
        taken = Tally(self.lookups.copy(), self.rows.copy())
        self.lookups.clear()
        self.rows.clear()
        return taken
