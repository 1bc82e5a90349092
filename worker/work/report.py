"""Report job: compares a model with its training rows and with rows that training did not use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog import Produced
from catalog.errors import NotFoundError
from catalog.job_kinds import JobKind, ReportSpec, TrainSpec
from catalog.records import DataKind, Dataset, Document
from gcvae.training.costs import Computation, cost
from models_store.errors import MissingObjectError
from worker.errors import DeletedTableError
from worker.work.attempt import Attempt
from worker.work.databases import report_database
from worker.work.outputs import publish_report
from worker.work.tables import stored_table

if TYPE_CHECKING:
    from gcvae import TableReader

_PARTS = "fidelity", "utility", "likelihood", "privacy"


def report(attempt: Attempt) -> Produced:
    """Compares the job's model with real rows and publishes the report.

    Raises:
        InputError: A table does not fit the model.
        DeletedTableError: A dataset was deleted.
    """
    spec = ReportSpec.from_json(attempt.job.spec)
    if attempt.model().kind is DataKind.DATABASE:
        return report_database(attempt, spec)
    synthesizer = attempt.load_synthesizer()
    real = _dataset(attempt, spec.dataset_id, "real")
    holdout_id = spec.holdout_dataset_id
    holdout = None if holdout_id is None else _dataset(attempt, holdout_id, "holdout")
    made = synthesizer.report(
        real,
        holdout,
        seed=spec.seed,
        targets=spec.columns,
        progress=lambda share: attempt.report("reporting", share),
    )
    document = made.to_json()
    decisions = {found["of"]: found["verdict"] for found in document["decisions"]}
    summary = {"decisions": decisions} | {
        f"{member}s": {part: document[part][member] for part in _PARTS}
        for member in ("verdict", "sentence")
    }
    rows = sum(made.table_rows.values())
    return publish_report(attempt, document, rows=rows, summary=summary)


def next_report(trained: TrainSpec, dataset: Dataset) -> Document | None:
    """Returns the report job to queue after a training; None if training set no rows aside."""
    if not trained.has_holdout:
        return None
    spec = ReportSpec(dataset.id, trained.training["seed"])
    estimate = cost(Computation.REPORT, dataset.rows, dataset.columns).to_json()
    return {"kind": JobKind.REPORT.value, "spec": spec.to_json(), "estimate": estimate}


def _dataset(attempt: Attempt, dataset_id: str, name: str) -> TableReader:
    try:
        dataset = attempt.workspace.datasets.get(dataset_id)
        place = dataset.object_key, dataset.sha256, dataset.encoding
        return stored_table(attempt, *place, name=name)
    except (NotFoundError, MissingObjectError) as error:
        raise DeletedTableError(dataset_id) from error
