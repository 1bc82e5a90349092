"""Which rows an attempt makes: all that were asked, or those of one shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from catalog.job_kinds import JobSpec, ShardSpec
from gcvae.files.shards import WHOLE, FileShard
from worker.work.attempt import Attempt

SpecT = TypeVar("SpecT", bound=JobSpec)


@dataclass(frozen=True)
class Shard(Generic[SpecT]):
    """The part of a job that one attempt makes; the whole job where it has no shards.

    Attributes:
        spec: what the job is asked.
        place: which of the job's shards it is; None where the attempt makes it all.
    """

    spec: SpecT
    place: ShardSpec | None

    @classmethod
    def of(cls, attempt: Attempt, spec_type: type[SpecT]) -> Shard[SpecT]:
        """The shard of an attempt.

        Raises:
            NotFoundError: the shard's job is gone.
        """
        job = attempt.job
        if job.parent_id is None:
            return cls(spec_type.from_json(job.spec), None)
        parent = attempt.workspace.jobs.get(job.parent_id)
        return cls(spec_type.from_json(parent.spec), ShardSpec.from_json(job.spec))

    @property
    def is_first(self) -> bool:
        """True where the job's first row is in it."""
        return self.place is None or self.place.number == 0

    @property
    def of_file(self) -> FileShard:
        """Where its rows stand in the file that the job makes."""
        if self.place is None:
            return WHOLE
        return FileShard(self.is_first, self.place.number == self.place.shards - 1)

    @property
    def rows(self) -> range | None:
        """The rows of the job's table that are in it; None where all are."""
        return None if self.place is None else self.place.rows
