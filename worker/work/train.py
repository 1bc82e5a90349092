"""Training job: trains a model on a dataset and publishes it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from catalog import Dataset, Document, Trained
from catalog.job_kinds import TrainSpec
from catalog.records import DataKind
from gcvae.errors import Problem, SettingError
from gcvae.training.settings import configure, settle
from worker.errors import GpuMemoryError
from worker.work.attempt import Attempt
from worker.work.checkpoints import JobCheckpoints
from worker.work.databases import fit_database, record_of_database
from worker.work.report import next_report
from worker.work.schemas import schema_as_said, schema_without_values
from worker.work.tables import stored_table

if TYPE_CHECKING:
    from gcvae import DatabaseSynthesizer, Synthesizer


def train(attempt: Attempt) -> Trained:
    """Trains the job's model, stores its file, and returns the outcome.

    Raises:
        InputError: The table, its schema or the settings are not suitable.
        TrainingError: Training cannot continue.
        GpuMemoryError: The GPU has too little memory.
    """
    attempt.prepare()
    job = attempt.job
    spec = TrainSpec.from_json(job.spec)
    _require_device(spec.training["device"])
    dataset = attempt.workspace.datasets.get(str(job.dataset_id))
    is_database = dataset.kind is DataKind.DATABASE
    synthesizer = _fit(attempt, dataset, spec)
    artifact = attempt.folder / "model.gcvae"
    synthesizer.save(artifact)
    published = attempt.publish(artifact)
    record = synthesizer.training_record
    return Trained(
        artifact_key=published.key,
        artifact_sha256=published.sha256,
        artifact_bytes=published.size_bytes,
        schema=synthesizer.schema.to_json(),
        record=record_of_database(record, dataset, spec) if is_database else record,
        next_job=None if is_database else next_report(spec, dataset),
    )


def _require_device(device: str) -> None:
    """Checks the requested device here, because the service does not know the devices of its
    workers."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        message = "device is cuda, but the worker of this job has no GPU"
        expected = "device auto or cpu, or workers that all have a GPU"
        raise SettingError(Problem(message, "/training/device", expected=expected))


def _fit(attempt: Attempt, dataset: Dataset, spec: TrainSpec) -> Synthesizer | DatabaseSynthesizer:
    import torch

    settings = spec.settings
    if attempt.job.smaller_batch:
        settings["batch_size"] = max(1, _batch_size(dataset, spec) // 2)
    fit = fit_database if dataset.kind is DataKind.DATABASE else _fit_table
    try:
        return fit(attempt, dataset, spec, settings)
    except torch.OutOfMemoryError as error:
        batch_size = settings.get("batch_size") or _batch_size(dataset, spec)
        raise GpuMemoryError(batch_size, str(error).splitlines()[0]) from error


def _fit_table(
    attempt: Attempt, dataset: Dataset, spec: TrainSpec, settings: Document
) -> Synthesizer:
    from gcvae import Synthesizer

    return Synthesizer.fit(
        stored_table(attempt, dataset.object_key, dataset.sha256, dataset.encoding),
        schema=_schema(dataset, spec),
        preset=spec.training["preset"],
        seed=spec.training["seed"],
        device=spec.training["device"],
        settings=settings,
        progress=lambda progress: attempt.report(**asdict(progress)),
        checkpoints=JobCheckpoints(attempt.catalog, attempt.store, attempt.claim, attempt.settings),
    )


def _schema(dataset: Dataset, spec: TrainSpec) -> Document:
    """Returns the part of a dataset's schema that training uses; training infers the rest.

    With differential privacy, it is only what the user specified: inferred parts depend on the
    rows.
    """
    if spec.is_private:
        return dataset.given_schema
    return (schema_without_values if spec.has_holdout else schema_as_said)(dataset)


def _batch_size(dataset: Dataset, spec: TrainSpec) -> int:
    given = spec.settings.get("batch_size")
    if given is not None:
        return int(given)
    from gcvae.training.held_back import report_rows

    config = configure(spec.training["preset"], spec.settings)
    n_rows = dataset.rows - len(report_rows(dataset.rows, config.report_share, 0))
    return settle(config, n_rows=n_rows, n_columns=dataset.columns).batch_size
