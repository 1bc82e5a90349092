"""What a process of inline work did since its last report: figures on their way to the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import TypeVar

BlockT = TypeVar("BlockT", bound=Sized)


@dataclass(frozen=True)
class Tally:
    """Counts that travel with each answer, so that one process reports the figures of all.

    Attributes:
        lookups: of loaded models, by `hit` and `miss`.
        rows: that went out without a job, by kind of job.
    """

    lookups: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def looked_up(self, *, was_loaded: bool) -> None:
        """A model was asked of the memory of loaded ones."""
        self.lookups["hit" if was_loaded else "miss"] += 1

    def counted(self, kind: str, blocks: Iterable[BlockT]) -> Iterator[BlockT]:
        """The blocks of an answer; their rows are counted as they pass."""
        for block in blocks:
            self.rows[kind] += len(block)
            yield block

    def take(self) -> Tally:
        """What was counted so far; counting begins anew."""
        taken = Tally(self.lookups.copy(), self.rows.copy())
        self.lookups.clear()
        self.rows.clear()
        return taken
