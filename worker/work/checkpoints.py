"""Checkpoints of a training job: bytes in the store, and the newest key in the job's record."""

from __future__ import annotations

import structlog
from sqlalchemy.exc import SQLAlchemyError

from catalog import Catalog, Claim
from catalog.errors import LeaseLostError
from catalog.job_kinds import TrainSpec
from catalog.object_keys import checkpoint_prefix
from catalog.records import PrivacyCost
from gcvae.training.differential_privacy.composition import privacy_cost, require_within
from models_store import Store
from models_store.errors import CorruptedError, MissingObjectError, UnavailableError
from worker.settings import JobSettings

_log = structlog.get_logger(__name__)


class JobCheckpoints:
    """Training checkpoints of one attempt; implements the library's `CheckpointStore`.

    Attributes:
        interval_seconds: Time from one checkpoint to the next; shorter until the attempt has saved
            its first one.
    """

    def __init__(self, catalog: Catalog, store: Store, claim: Claim, settings: JobSettings) -> None:
        self._catalog = catalog
        self._store = store
        self._claim = claim
        self._newest_key = claim.job.checkpoint_key
        self._later_seconds = settings.checkpoint_seconds
        self.interval_seconds = min(settings.first_checkpoint_seconds, self._later_seconds)
        self._saved = 0

    def before_private_queries(self) -> None:
        """Records the privacy cost of the training, because it is about to query its table.

        Raises:
            LeaseLostError: The attempt no longer owns the job and must not query the table.
            BudgetError: An earlier attempt has already queried the table, and another query would
                exceed a privacy cap.
        """
        setting = TrainSpec.from_json(self._claim.job.spec).training["differential_privacy"]
        cost = privacy_cost(setting)
        assert cost is not None, "only private runs query the table"
        self._catalog.leases.record_privacy_spending(
            self._claim, PrivacyCost(**cost), require_within
        )

    def load(self) -> bytes | None:
        """Returns the newest checkpoint of all attempts; None if there is none, or it is lost."""
        job = self._claim.job
        if job.checkpoint_key is None or job.checkpoint_sha256 is None:
            return None
        try:
            data = self._store.read(job.checkpoint_key, job.checkpoint_sha256)
        except (MissingObjectError, CorruptedError) as error:
            # Training from the beginning gives the same weights, but takes longer.
            _log.error("the checkpoint is lost, training begins anew", error=str(error))
            return None
        return data

    def restored(self, *, is_continued: bool) -> None:
        """Logs whether training resumes from the loaded checkpoint or begins anew."""
        key = self._claim.job.checkpoint_key
        if is_continued:
            _log.info("training resumes", checkpoint=key)
        else:
            reason = "it was saved by another version, or for another table or other settings"
            _log.warning(
                "training begins anew, not from the checkpoint", checkpoint=key, why=reason
            )

    def save(self, data: bytes) -> None:
        """Stores a checkpoint, records it for the next attempt, and deletes the previous one.

        If the store or the database is unavailable, training continues without this checkpoint; its
        bytes are deleted when the job ends.

        Raises:
            LeaseLostError: The attempt no longer owns the job; the checkpoint was deleted.
        """
        try:
            self._save(data)
        except (UnavailableError, SQLAlchemyError) as error:
            _log.warning(
                "no checkpoint: the database or the store does not respond", error=str(error)
            )

    def _save(self, data: bytes) -> None:
        self._saved += 1
        prefix = checkpoint_prefix(self._claim.job_id, self._claim.attempt)
        published = self._store.publish(f"{prefix}{self._saved:06d}", data)
        try:
            self._catalog.leases.record_checkpoint(self._claim, published.key, published.sha256)
        except LeaseLostError:
            self._store.delete(published.key)
            raise
        if self._newest_key is not None:
            self._store.delete(self._newest_key)
            self._catalog.orphans.forget(self._newest_key)
        self._newest_key = published.key
        self.interval_seconds = self._later_seconds
        _log.info("checkpoint", key=published.key, size_bytes=published.size_bytes)
