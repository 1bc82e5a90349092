"""One attempt at a job, as the work itself sees it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog import Catalog, Claim, Job, Model
from catalog.errors import LeaseLostError
from catalog.places import output_prefix
from gcvae.errors import CancelledError
from models_store import Published, Store
from worker.messages import MessageWriter
from worker.settings import JobSettings

if TYPE_CHECKING:
    from gcvae import Synthesizer

_TELL_SECONDS = 0.1


@dataclass
class Attempt:
    """What the work is done with. `folder` is empty, and gone after the attempt."""

    catalog: Catalog
    store: Store
    claim: Claim
    settings: JobSettings
    messages: MessageWriter
    folder: Path
    stop_asked: bool = field(default=False, init=False)
    _told: tuple[str, float] = field(default=("", 0.0), init=False)

    @property
    def job(self) -> Job:
        """The job, as it was when this attempt began."""
        return self.claim.job

    def ask_to_stop(self) -> None:
        """Let the next report of progress end the work."""
        self.stop_asked = True

    def tell(self, phase: str, fraction: float, **more: Any) -> None:
        """Report progress.

        Raises:
            CancelledError: the attempt was asked to stop.
        """
        if self.stop_asked:
            raise CancelledError("the job was asked to stop")
        told_phase, told_at = self._told
        now = time.monotonic()
        if phase != told_phase or fraction >= 1.0 or now - told_at >= _TELL_SECONDS:
            self.messages.progress({"phase": phase, "fraction": fraction, **more})
            self._told = (phase, now)

    def publish(self, name: str, data: Path) -> Published:
        """Publish what the attempt made.

        Raises:
            LeaseLostError: the attempt no longer owns the job; nothing was published.
        """
        claim = self.claim
        leases = self.catalog.leases
        if leases.find_claim(claim.job_id, claim.owner, claim.attempt, 0.0) is None:
            raise LeaseLostError(claim.job_id, claim.attempt)
        return self.store.publish(output_prefix(self.job, claim.attempt) + name, data)

    def set_up_threads(self) -> None:
        """Give torch as many threads as the settings say."""
        import torch

        torch.set_num_threads(self.settings.job_threads)

    def load_synthesizer(self) -> Synthesizer:
        """The job's model, its bytes checked.

        Raises:
            NotFoundError, MissingObjectError: it was deleted meanwhile.
        """
        from gcvae import Synthesizer

        model = self._model()
        assert model.artifact_key is not None, "jobs are taken on ready models only"
        assert model.artifact_sha256 is not None
        return Synthesizer.from_bytes(self.store.read(model.artifact_key, model.artifact_sha256))

    def _model(self) -> Model:
        return self.catalog.models.get(str(self.job.model_id), workspace=self.job.workspace)
