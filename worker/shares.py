"""Which rows an attempt makes: all that were asked, or those of one shard."""

from __future__ import annotations

from dataclasses import dataclass

from catalog import Document
from catalog.specs import ShardSpec
from gcvae.pieces import WHOLE, Piece
from worker.attempt import Attempt


@dataclass(frozen=True)
class Share:
    """What was asked of the job, and the share of it that this attempt makes.

    Attributes:
        asked: the spec of the job, or of the job that the shard belongs to.
        shard: None where the attempt makes it all.
    """

    asked: Document
    shard: ShardSpec | None

    @classmethod
    def of(cls, attempt: Attempt) -> Share:
        """The share of an attempt.

        Raises:
            NotFoundError: the shard's job is gone.
        """
        job = attempt.job
        if job.parent_id is None:
            return cls(job.spec, None)
        parent = attempt.catalog.jobs.get(job.parent_id, workspace=job.workspace)
        return cls(parent.spec, ShardSpec.from_json(job.spec))

    @property
    def is_first(self) -> bool:
        """True where the first row is in it."""
        return self.shard is None or self.shard.number == 0

    @property
    def piece(self) -> Piece:
        """Of the file that is made."""
        if self.shard is None:
            return WHOLE
        return Piece(self.is_first, self.shard.number == self.shard.shards - 1)

    def rows(self, n_rows: int) -> range:
        """The rows of the share, among so many."""
        return range(n_rows) if self.shard is None else self.shard.rows
