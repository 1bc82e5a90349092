"""The rows that an attempt processes: all rows of the job, or those of one shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from catalog.job_kinds import JobSpec, ShardSpec
from gcvae.files.shards import WHOLE, FileShard
from worker.work.attempt import Attempt

SpecT = TypeVar("SpecT", bound=JobSpec)


@dataclass(frozen=True)
class Shard(Generic[SpecT]):
    """The part of a job's rows that one attempt processes; all rows if the job has no shards.

    Attributes:
        spec: Specification of the job.
        position: Index and row numbers of the shard; None if the job has no shards.
    """

    spec: SpecT
    position: ShardSpec | None

    @classmethod
    def of(cls, attempt: Attempt, spec_type: type[SpecT]) -> Shard[SpecT]:
        """Returns the part of the rows that an attempt processes.

        Raises:
            NotFoundError: The shard's job was deleted.
        """
        job = attempt.job
        if job.parent_id is None:
            return cls(spec_type.from_json(job.spec), None)
        parent = attempt.workspace.jobs.get(job.parent_id)
        return cls(spec_type.from_json(parent.spec), ShardSpec.from_json(job.spec))

    @property
    def is_first(self) -> bool:
        """Whether this part of the rows contains the first row of the job."""
        return self.position is None or self.position.number == 0

    @property
    def of_file(self) -> FileShard:
        """Position of this shard's result in the job's file: whether it is the first or the last
        part."""
        if self.position is None:
            return WHOLE
        return FileShard(self.is_first, self.position.number == self.position.shards - 1)

    @property
    def rows(self) -> range | None:
        """Range of row numbers in the job's table; None for all rows."""
        return None if self.position is None else self.position.rows
