"""The models that inline work uses: loaded once, the least recently used forgotten first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.errors import ModelNotReadyError
from catalog.records import Model, ModelStatus, Trained
from gcvae.schema.columns import TableSchema
from models_store import Store
from service.inline.single_flight_cache import SingleFlightCache
from service.tallies import Tally

if TYPE_CHECKING:
    from gcvae.synthesizer import Synthesizer


class Synthesizers:
    """At most `limit` loaded models. In processes of inline work only: it loads torch."""

    def __init__(self, store: Store, limit: int, torch_threads: int, tally: Tally) -> None:
        self._store = store
        self._tally = tally
        self._torch_threads = torch_threads
        self._loaded: SingleFlightCache[str, Synthesizer] = SingleFlightCache(limit)

    def get(self, model: Model) -> Synthesizer:
        """The model's synthesizer; its artifact's checksum is verified on the way.

        Raises:
            ModelNotReadyError: the model is not ready.
            CorruptedError: the stored artifact is not the published one.
        """
        require_ready(model)
        was_loaded = True

        def load() -> Synthesizer:
            nonlocal was_loaded
            was_loaded = False
            return self._load(model)

        synthesizer = self._loaded.get(model.id, load)
        synthesizer.restrict_scoring(model.scoring)
        self._tally.looked_up(was_loaded=was_loaded)
        limit_torch_threads(self._torch_threads)
        return synthesizer

    def examine(self, key: str, sha256: str, size_bytes: int) -> Trained:
        """What there is to record of a stored file, once the model in it has shown that it works.

        Raises:
            ArtifactError: it is no model, or one that does not work.
            CorruptedError: the stored bytes are not those that were published.
        """
        from gcvae.trial import try_out

        limit_torch_threads(self._torch_threads)
        synthesizer = self._fetched(key, sha256)
        try_out(synthesizer)
        return Trained(
            artifact_key=key,
            artifact_sha256=sha256,
            artifact_bytes=size_bytes,
            schema=synthesizer.schema.to_json(),
            record=synthesizer.training_record,
            scoring=synthesizer.scoring,
        )

    def forget(self, model_id: str) -> None:
        """Drop a deleted model."""
        self._loaded.forget(model_id)

    def _load(self, model: Model) -> Synthesizer:
        assert model.artifact_key is not None
        assert model.artifact_sha256 is not None
        return self._fetched(model.artifact_key, model.artifact_sha256)

    def _fetched(self, key: str, sha256: str) -> Synthesizer:
        from gcvae.synthesizer import Synthesizer  # torch takes seconds: not before it is needed

        return Synthesizer.from_bytes(self._store.read(key, sha256))


def require_ready(model: Model) -> None:
    """Let ready models pass.

    Raises:
        ModelNotReadyError: the model is not ready.
    """
    if model.status != ModelStatus.READY:
        raise ModelNotReadyError(model.id, model.status)


def schema_of(model: Model) -> TableSchema:
    """The schema of a ready model."""
    assert model.schema is not None, "a ready model has its schema"
    return TableSchema.from_json(model.schema)


def limit_torch_threads(threads: int) -> None:
    """Bound the torch threads that work started from this thread takes."""
    import torch

    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
