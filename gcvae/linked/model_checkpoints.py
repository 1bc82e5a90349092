"""Checkpoints of a database's fit: finished models, and the checkpoint of the model in training.

Each model is stored under a digest of everything that determines it, so that a fit uses only models
of the same tables, settings and seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from gcvae.artifact.file import pack_tensors, packed_bytes, unpack_tensors, unpacked_bytes
from gcvae.artifact.versions import VERSION
from gcvae.synthesizer import Synthesizer
from gcvae.training.checkpoints import CheckpointStore

_IN_TRAINING = " in training"


class ModelCheckpoints:
    """Stores the finished models of a database's fit, and serves as the `CheckpointStore` of the
    model in training.

    Attributes:
        interval_seconds: Minimum time between two checkpoints of a model.
    """

    def __init__(self, store: CheckpointStore) -> None:
        """Loads the models in `store`, if there are any."""
        self._store, self._digest = store, ""
        data = store.load()
        tensors = {} if data is None else unpack_tensors(data)[0]
        self._stored = {name: unpacked_bytes(tensor) for name, tensor in tensors.items()}
        self._finished: dict[str, bytes] = {}
        self._is_reported = data is None
        self.interval_seconds = store.interval_seconds

    def model(
        self, digest: str, train: Callable[[CheckpointStore | None], Synthesizer]
    ) -> Synthesizer:
        """Returns the stored model with this digest; if there is none, trains and stores it.

        Args:
            digest: Digest of everything that determines the model (`digest_of`).
            train: Function that trains the model, given a store for its checkpoints: this object.
        """
        self._digest = digest
        if digest in self._stored:
            self.restored(is_continued=True)
            found = Synthesizer.from_bytes(self._stored[digest])
        else:
            if self.load() is None:
                self.restored(is_continued=False)
            found = train(self)
        self._finished[digest] = found.to_bytes()
        self._save(self._finished)
        return found

    def before_private_queries(self) -> None:
        """Does nothing: databases are not trained with differential privacy."""

    def load(self) -> bytes | None:
        """Returns the stored checkpoint of the model in training; None if there is none."""
        return self._stored.get(self._digest + _IN_TRAINING)

    def restored(self, *, is_continued: bool) -> None:
        """Tells the store of the whole fit whether the fit continues from its content. Models make
        this call one by one; only the first call is passed on, as the store is loaded only once."""
        if not self._is_reported:
            self._store.restored(is_continued=is_continued)
        self._is_reported = True

    def save(self, data: bytes) -> None:
        """Stores the checkpoint of the model in training beside the finished models."""
        self._save(self._finished | {self._digest + _IN_TRAINING: data})

    def _save(self, models: Mapping[str, bytes]) -> None:
        tensors = {name: packed_bytes(data) for name, data in models.items()}
        self._store.save(pack_tensors(tensors, {}))
        self.interval_seconds = self._store.interval_seconds


def digest_of(frames: Mapping[str, pd.DataFrame], settings: Mapping[str, object]) -> str:
    """Returns a digest of the frames and settings that determine a model, and of the version of
    model files."""
    texts = {name: str(setting) for name, setting in settings.items()}
    digest = hashlib.sha256(json.dumps([VERSION, texts]).encode())
    for name, frame in frames.items():
        digest.update(json.dumps([name, [*frame.dtypes.astype(str).items()]]).encode())
        for column in frame.columns:
            codes, values = pd.factorize(frame[column])
            digest.update(codes.astype(np.int64).tobytes())
            digest.update(json.dumps([*map(repr, values)]).encode())
    return digest.hexdigest()
