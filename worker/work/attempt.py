"""The context of one attempt at a job: records, store, progress and model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog import Catalog, Claim, Job, Model, Workspace
from catalog.errors import LeaseLostError
from catalog.object_keys import output_prefix
from gcvae.errors import CancelledError
from models_store import Published, Store
from worker.settings import JobSettings
from worker.work.messages import Message, finite

if TYPE_CHECKING:
    from gcvae import DatabaseSynthesizer, Synthesizer

_REPORT_SECONDS = 0.1
_WORK = 0.99
"""Fraction reported when the work is done but its result is not published yet; 1 means success."""


@dataclass
class Attempt:
    """Context of one attempt at a job, passed to the function that does the work.

    Attributes:
        claim: Claim of the attempt on the job.
        send: Function that sends a message to the supervisor.
        folder: Folder for temporary files, deleted after the attempt.
        stop_asked: Whether the next report of progress should end the work.
    """

    catalog: Catalog
    store: Store
    claim: Claim
    settings: JobSettings
    send: Callable[[Message], None]
    folder: Path
    stop_asked: bool = field(default=False, init=False)
    _reported: tuple[str, float] = field(default=("", 0.0), init=False)
    _fraction: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Makes the reported fraction begin where the previous attempt ended."""
        self._begun_at = min(self.claim.job.progress.get("fraction") or 0.0, _WORK)

    @property
    def job(self) -> Job:
        """The job's record when this attempt began."""
        return self.claim.job

    @property
    def workspace(self) -> Workspace:
        """Records of the workspace (tenant) to which the job belongs."""
        return self.catalog.workspace(self.job.workspace)

    def ask_to_stop(self) -> None:
        """Requests the end of the work: the next call of `report` raises CancelledError."""
        self.stop_asked = True

    def report(self, phase: str, fraction: float, **more: Any) -> None:
        """Sends the phase of the work and the finished fraction to the supervisor.

        Within a phase, at most ten messages a second are sent. The job's fraction never falls: if
        an earlier attempt has reached a fraction, this attempt's fraction is scaled to the rest.

        Args:
            phase: Name of the phase, such as `training`.
            fraction: Finished fraction of the attempt, 0 to 1.
            **more: Further members of the job's progress.

        Raises:
            CancelledError: The attempt was asked to stop.
        """
        if self.stop_asked:
            raise CancelledError("the job was asked to stop")
        reported_phase, reported_at = self._reported
        now = time.monotonic()
        if phase != reported_phase or fraction >= 1.0 or now - reported_at >= _REPORT_SECONDS:
            grown = self._begun_at + (_WORK - self._begun_at) * min(fraction, 1.0)
            self._fraction = max(grown, self._fraction)
            self.send(finite({"phase": phase, "fraction": self._fraction, **more}))
            self._reported = (phase, now)

    def publish(self, file: Path) -> Published:
        """Stores a file as a result of the attempt, under the attempt's key prefix and its name.

        Raises:
            LeaseLostError: The attempt no longer owns the job; nothing was published.
        """
        claim = self.claim
        leases = self.catalog.leases
        if leases.find_claim(claim.job_id, claim.owner, claim.attempt, 0.0) is None:
            raise LeaseLostError(claim.job_id, claim.attempt)
        return self.store.publish(output_prefix(self.job, claim.attempt) + file.name, file)

    def prepare(self) -> None:
        """Reports that the work begins, and sets torch's number of threads for this process."""
        import torch

        self.report("preparing", 0.0)
        torch.set_num_threads(self.settings.job_threads)

    def load_synthesizer(self) -> Synthesizer:
        """Reports that the work begins, and loads the job's model of a table.

        Raises:
            NotFoundError, MissingObjectError: The model was deleted meanwhile.
        """
        from gcvae import Synthesizer

        self.prepare()
        model = self.model()
        synthesizer = Synthesizer.from_bytes(self._artifact(model))
        synthesizer.restrict_scoring(model.scoring)
        return synthesizer

    def load_database(self) -> DatabaseSynthesizer:
        """Reports that the work begins, and loads the job's model of a database.

        Raises:
            NotFoundError, MissingObjectError: The model was deleted meanwhile.
        """
        from gcvae import DatabaseSynthesizer

        self.prepare()
        return DatabaseSynthesizer.from_bytes(self._artifact(self.model()))

    def model(self) -> Model:
        """Returns the current record of the job's model.

        Raises:
            NotFoundError: The model was deleted meanwhile.
        """
        return self.workspace.models.get(str(self.job.model_id))

    def _artifact(self, model: Model) -> bytes:
        assert model.artifact_key is not None, "jobs are taken on ready models only"
        assert model.artifact_sha256 is not None
        return self.store.read(model.artifact_key, model.artifact_sha256)
