"""Cache of the most recently used models in the memory of a child process."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

from catalog.errors import ModelNotReadyError
from catalog.records import DataKind, Document, Model, ModelStatus, Trained
from gcvae.errors import Problem
from gcvae.schema.columns import TableSchema
from models_store import Store
from service.errors import NotOfferedError
from service.inline.single_flight_cache import SingleFlightCache
from service.settings import ServiceSettings
from service.tallies import Tally

if TYPE_CHECKING:
    from torch import Tensor

    from gcvae.linked.database_synthesizer import DatabaseSynthesizer
    from gcvae.synthesizer import Synthesizer


class Synthesizers:
    """Loads models from the store and keeps the `limit` most recently used ones in memory.

    It imports torch, so use it only in child processes.

    Args:
        torch_threads: Number of threads that torch may use.
        tally: Counts how often a model was in memory.
    """

    def __init__(self, store: Store, limit: int, torch_threads: int, tally: Tally) -> None:
        self._store = store
        self._tally = tally
        self._torch_threads = torch_threads
        self._loaded: SingleFlightCache[str, Any] = SingleFlightCache(limit)

    def get(self, model: Model) -> Synthesizer:
        """Returns the synthesizer of a model of one table, loaded from the store if necessary."""
        found: Synthesizer = self._get(model)
        found.restrict_scoring(model.scoring)
        return found

    def get_database(self, model: Model) -> DatabaseSynthesizer:
        """Returns the synthesizer of a model of a database, loaded from the store if necessary."""
        found: DatabaseSynthesizer = self._get(model)
        return found

    def _get(self, model: Model) -> Any:
        require_ready(model)
        was_loaded = True

        def load() -> Any:
            nonlocal was_loaded
            was_loaded = False
            assert model.artifact_key is not None
            assert model.artifact_sha256 is not None
            data = self._store.read(model.artifact_key, model.artifact_sha256)
            # importing torch takes seconds
            if model.kind is DataKind.DATABASE:
                from gcvae.linked.database_synthesizer import DatabaseSynthesizer

                return DatabaseSynthesizer.from_bytes(data)
            from gcvae.synthesizer import Synthesizer

            return Synthesizer.from_bytes(data)

        found = self._loaded.get(model.id, load)
        self._tally.count_lookup(was_loaded=was_loaded)
        limit_torch_threads(self._torch_threads)
        return found

    def examine(self, key: str, sha256: str, size_bytes: int, settings: ServiceSettings) -> Trained:
        """Loads the model file stored under `key` and tests that it works.

        Returns the description of the model that the database stores. `sha256` and `size_bytes`
        are the checksum and the size of the file.

        Raises:
            ArtifactError: The file is not a model, or the model does not work.
            TableLimitError: A table in the file exceeds a limit.
        """
        from gcvae.artifact.file import unpack_tensors
        from gcvae.artifact.versions import DATABASE_FORMAT
        from gcvae.synthesizer import Synthesizer
        from gcvae.trial import try_out

        limit_torch_threads(self._torch_threads)
        data = self._store.read(key, sha256)
        tensors, manifest = unpack_tensors(data)
        if manifest.get("format") == DATABASE_FORMAT:
            schema, record = _examined_database(data, tensors, settings)
            return Trained(key, sha256, size_bytes, schema, record)
        del tensors
        synthesizer = Synthesizer.from_bytes(data)
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
        """Removes a deleted model from memory, if it is loaded."""
        self._loaded.forget(model_id)


def _examined_database(
    data: bytes, tensors: Mapping[str, Tensor], settings: ServiceSettings
) -> tuple[Document, Document]:
    """Tests a model of a database. Returns (schema, training record), both as JSON."""
    from gcvae.artifact.checks import artifact_errors
    from gcvae.linked.database_synthesizer import DatabaseSynthesizer
    from service.ingestion import check_parquet

    for tensor in tensors.values():  # a small Parquet file can expand to a huge table
        copied = tensor.numpy().tobytes()
        if copied.startswith(b"PAR1"):
            check_parquet(BytesIO(copied), settings)
    with artifact_errors("the model in the file failed a test run"):
        synthesizer = DatabaseSynthesizer.from_bytes(data)
        synthesizer.sample(parents=1, seed=0)
        return synthesizer.schema.to_json(), synthesizer.training_record


def require_ready(model: Model) -> None:
    """Checks that the training of the model is complete.

    Raises:
        ModelNotReadyError: The model is still in training, or its training failed.
    """
    if model.status != ModelStatus.READY:
        raise ModelNotReadyError(model.id, model.status)


def require_table(model: Model, what: str) -> None:
    """Checks that the model is ready and is a model of one table, not of a database.

    Args:
        what: Name of the requested operation in the plural, for errors.

    Raises:
        ModelNotReadyError: The model is not ready.
        NotOfferedError: The model is one of a database.
    """
    require_ready(model)
    if model.kind is DataKind.DATABASE:
        raise unsupported_for_databases(
            f"{what} are not available for models of databases yet; model {model.id} is one"
        )


_OFFERED = (
    "samples of all its tables or of one, scores of its households, imputations of its tables, "
    "its report; its artifact, which DatabaseSynthesizer.load reads; or a model of one table"
)


def unsupported_for_databases(
    message: str, pointer: str | None = None, *, expected: str = _OFFERED
) -> NotOfferedError:
    """Returns the error for an operation that models of databases do not support.

    Args:
        message: Text of the error.
        pointer: Location of the refused option in the request, such as `/rows` or `?table`; None if
            there is no such option.
        expected: Description of what is supported instead.
    """
    offered = ("samples", "scores", "imputations", "report", "artifact")
    return NotOfferedError(Problem(message, pointer, expected=expected), offered)


def schema_of(model: Model) -> TableSchema:
    """Returns the schema of the table that a ready model was trained on."""
    assert model.schema is not None, "a ready model has its schema"
    return TableSchema.from_json(model.schema)


def limit_torch_threads(threads: int) -> None:
    """Sets how many threads torch may use in this process."""
    import torch

    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
