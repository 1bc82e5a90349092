"""The training job: a dataset becomes a published model."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from catalog import Dataset, Document, Trained
from gcvae.errors import Problem, SettingError
from gcvae.presets import configure, settle
from worker.attempt import Attempt
from worker.checkpoints import JobCheckpoints
from worker.errors import GpuMemoryError
from worker.tables import stored_table

if TYPE_CHECKING:
    from gcvae import Synthesizer
    from gcvae.training_progress import Progress

_NOT_SETTINGS = ("preset", "seed", "device")


def train(attempt: Attempt) -> Trained:
    """Train the model and publish its artifact.

    Raises:
        InputError: the table, its schema or the settings can not be trained on.
        TrainingError: training can not go on.
        GpuMemoryError: the GPU's memory is too small.
        CancelledError: the attempt was asked to stop.
        LeaseLostError: the attempt no longer owns the job.
    """
    attempt.tell("preparing", 0.0)
    attempt.set_up_threads()
    job = attempt.job
    _require_device(job.spec["training"]["device"])
    dataset = attempt.catalog.datasets.get(str(job.dataset_id), workspace=job.workspace)
    synthesizer = _fit(attempt, dataset, job.spec["training"])
    artifact = attempt.folder / "model.gcvae"
    synthesizer.save(artifact)
    published = attempt.publish("model.gcvae", artifact)
    return Trained(
        artifact_key=published.key,
        artifact_sha256=published.sha256,
        artifact_bytes=published.size_bytes,
        schema=synthesizer.schema.to_json(),
        record=synthesizer.training_record,
    )


def _require_device(device: str) -> None:
    """Let devices pass that this worker has; the service knows of none.

    Raises:
        SettingError: CUDA is asked for, and this worker has no GPU.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        message = "device is cuda, but the worker that took this job has no GPU"
        expected = "auto or cpu, or workers with a GPU only"
        raise SettingError(Problem(message, "/training/device", expected=expected))


def _fit(attempt: Attempt, dataset: Dataset, training: Document) -> Synthesizer:
    import torch

    from gcvae import Synthesizer

    table = stored_table(attempt, dataset.object_key, dataset.sha256)
    settings = _settings(training)
    if attempt.job.smaller_batch:
        settings["batch_size"] = max(1, _batch_size(dataset, training) // 2)
    try:
        return Synthesizer.fit(
            table,
            schema=dataset.schema,
            preset=training["preset"],
            seed=training["seed"],
            device=training["device"],
            settings=settings,
            progress=lambda progress: _tell(attempt, progress),
            checkpoints=JobCheckpoints(
                attempt.catalog, attempt.store, attempt.claim, attempt.settings
            ),
        )
    except torch.OutOfMemoryError as error:
        batch_size = settings.get("batch_size") or _batch_size(dataset, training)
        raise GpuMemoryError(batch_size, str(error).splitlines()[0]) from error


def _batch_size(dataset: Dataset, training: Document) -> int:
    """Rows of a minibatch: as set, or by the preset's rule."""
    given = training.get("batch_size")
    if given is not None:
        return int(given)
    config = configure(training["preset"], _settings(training))
    settled = settle(config, n_rows=dataset.rows, n_columns=dataset.columns)
    assert settled.batch_size is not None, "settle leaves nothing open"
    return settled.batch_size


def _settings(training: Document) -> dict[str, Any]:
    return {name: value for name, value in training.items() if name not in _NOT_SETTINGS}


def _tell(attempt: Attempt, progress: Progress) -> None:
    attempt.tell(**asdict(progress))
