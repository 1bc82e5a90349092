"""Jobs on databases: training, samples, scores, imputations and reports of all their tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from catalog import Dataset, Document, Produced
from catalog.errors import NotFoundError
from catalog.job_kinds import (
    SCORE_DRAWS,
    ImputeSpec,
    ReportSpec,
    SampleSpec,
    ScoreSpec,
    TrainSpec,
)
from models_store.errors import MissingObjectError
from worker.errors import DeletedTableError
from worker.work.attempt import Attempt
from worker.work.checkpoints import JobCheckpoints
from worker.work.outputs import publish, publish_report, write_file
from worker.work.tables import stored_database

if TYPE_CHECKING:
    import pandas as pd

    from gcvae import DatabaseSynthesizer

_DRAWN = 0.9
"""Fraction of a sampling job that is done when all rows are generated but not written."""


def fit_database(
    attempt: Attempt, dataset: Dataset, spec: TrainSpec, settings: Document
) -> DatabaseSynthesizer:
    """Trains and returns the model of a database.

    A repeated attempt continues from the checkpoint and gives the same weights.

    Args:
        dataset: Record of the database.
        settings: Training settings that override those of the preset.

    Raises:
        InputError: The tables, their schema or the settings are not suitable.
    """
    from gcvae import DatabaseSynthesizer

    schema = {"tables": dataset.schema["tables"]}
    return DatabaseSynthesizer.fit(
        stored_database(attempt, dataset.object_key, dataset.sha256, dataset.encoding),
        schema=schema,
        preset=spec.training["preset"],
        seed=spec.training["seed"],
        device=spec.training["device"],
        settings=settings,
        invalid_references=dataset.schema.get("invalid_references", "refuse"),
        progress=_reporting(attempt, dataset),
        checkpoints=JobCheckpoints(attempt.catalog, attempt.store, attempt.claim, attempt.settings),
    )


def record_of_database(record: Document, dataset: Dataset, spec: TrainSpec) -> Document:
    """Returns the training record of a database's model.

    It contains `record`, with the file format of each table added, and the preset, seed, device and
    settings in `spec`.
    """
    formats = {table["name"]: {"format": table["format"]} for table in dataset.tables or ()}
    tables = {name: table | formats.get(name, {}) for name, table in record["tables"].items()}
    how = {name: spec.training[name] for name in ("preset", "seed", "device")}
    return {**how, "settings": spec.settings, **record, "tables": tables}


def sample_database(attempt: Attempt, spec: SampleSpec) -> Produced:
    """Generates a database and publishes it as a ZIP file, or only one of its tables."""
    synthesizer = attempt.load_database()
    attempt.report("sampling", 0.0)
    drawn = synthesizer.sample(spec.parents, scale=spec.scale or 1.0, seed=spec.seed)
    attempt.report("writing", _DRAWN)
    kept = drawn if spec.table is None else {spec.table: drawn[spec.table]}
    summary = {"seed": spec.seed}
    escape = spec.escape_formulas
    return _publish_tables(attempt, synthesizer, kept, spec.format, summary, spec.table, escape)


def impute_database(attempt: Attempt, spec: ImputeSpec) -> Produced:
    """Fills the missing cells of all tables and publishes them as a ZIP file."""
    synthesizer = attempt.load_database()
    tables = stored_database(attempt, spec.table_key, spec.table_sha256, spec.table_encoding)
    attempt.report("imputing", 0.0)
    completed = synthesizer.impute(tables, seed=spec.seed)
    attempt.report("writing", _DRAWN)
    return _publish_tables(attempt, synthesizer, completed, spec.format, {"seed": spec.seed})


def _publish_tables(
    attempt: Attempt,
    synthesizer: DatabaseSynthesizer,
    tables: Mapping[str, pd.DataFrame],
    format: str,
    summary: Document,
    only: str | None = None,
    escape_formulas: bool = False,
) -> Produced:
    """Publishes the tables of a database and returns the outcome of the job.

    Args:
        summary: Summary of the result; for a ZIP file, the rows and byte range of each table are
            added.
        only: Name of the only table to publish, as a single file; None for a ZIP file with all
            tables.
        escape_formulas: Whether to write ' before CSV strings that a spreadsheet would evaluate.
    """
    from gcvae.files.table_archives import MEDIA_TYPE, archive_as_file
    from gcvae.files.table_stream import MEDIA_TYPES
    from gcvae.linked.database_archive import schemas_of_texts, write_database

    schemas = synthesizer.schemas
    typed = schemas_of_texts(attempt.model().record or {}, schemas)
    path = attempt.folder / ("tables.zip" if only is None else f"rows.{format}")
    with path.open("w+b") as file:
        packed = write_database(
            file, tables, format, schemas, typed=typed, escape_formulas=escape_formulas
        )
        if only is not None:
            archive_as_file(file, packed[only])
    told = {name: {"rows": len(frame), **vars(packed[name])} for name, frame in tables.items()}
    return publish(
        attempt,
        path,
        media_type=MEDIA_TYPE if only is None else MEDIA_TYPES[format],
        rows=sum(len(frame) for frame in tables.values()),
        summary=summary | ({"tables": told} if only is None else {}),
    )


def score_database(attempt: Attempt, spec: ScoreSpec) -> Produced:
    """Scores each household of a database (a row without a parent, with all rows that refer to it)
    and publishes a table with a line for each household.
    """
    import pandas as pd

    from gcvae.scoring.score_stream import MEDIA_TYPES, ScoreTotals, stream_scores

    synthesizer = attempt.load_database()
    tables = stored_database(attempt, spec.table_key, spec.table_sha256, spec.table_encoding)
    found = synthesizer.score(
        tables,
        draws=spec.draws or SCORE_DRAWS,
        seed=spec.seed,
        progress=lambda share: attempt.report("scoring", share),
    )
    splits = {split.parent: split.table for split in synthesizer.splits}
    lines = [
        frame.assign(table=splits.get(name, name), row=frame.index)[[*_PLACE, *frame.columns]]
        for name, frame in found.items()
    ]
    heading = {
        "model_id": attempt.job.model_id,
        "measure": "log p of a row with all rows below it, in nats",
        "options": {"draws": spec.draws or SCORE_DRAWS, "seed": spec.seed},
    }
    totals = ScoreTotals()
    blocks = (pd.DataFrame(block).astype({"anomaly": float}) for block in lines)
    chunks = stream_scores(blocks, spec.format, heading, totals)
    file = write_file(attempt, f"scores.{spec.format}", chunks)
    return publish(
        attempt,
        file,
        media_type=MEDIA_TYPES[spec.format],
        rows=totals.rows,
        summary=totals.to_json(),
    )


_PLACE = ("table", "row")


def report_database(attempt: Attempt, spec: ReportSpec) -> Produced:
    """Compares the model of a database with real tables and publishes the report.

    Raises:
        InputError, DeletedTableError: A table does not fit the model, or a dataset was deleted.
    """
    synthesizer = attempt.load_database()
    real, holdout = (
        None if dataset_id is None else _clean_database(attempt, dataset_id)
        for dataset_id in (spec.dataset_id, spec.holdout_dataset_id)
    )
    assert real is not None, "a report has a dataset"
    names = list(synthesizer.plans)
    made = synthesizer.report(
        real,
        holdout,
        seed=spec.seed,
        progress=lambda name, share: attempt.report(
            "reporting", (names.index(name) + share) / len(names), table=name
        ),
    )
    document = made.to_json()
    return publish_report(
        attempt, document, rows=sum(map(len, real.values())), summary=_worst(document["tables"])
    )


def _clean_database(attempt: Attempt, dataset_id: str) -> dict[str, pd.DataFrame]:
    """Returns the tables of a dataset after treating invalid references as training does.

    An invalid reference is a foreign key that refers to no row. Depending on the schema, its row is
    dropped, the key is set to null, or the database is refused. Raises a DeletedTableError if the
    dataset was deleted.
    """
    from gcvae.linked.infer_links import infer_database
    from gcvae.linked.references import checked_references

    try:
        dataset = attempt.workspace.datasets.get(dataset_id)
        place = dataset.object_key, dataset.sha256, dataset.encoding
        tables = stored_database(attempt, *place)
    except (NotFoundError, MissingObjectError) as error:
        raise DeletedTableError(dataset_id) from error
    links = infer_database(tables, {"tables": dataset.schema["tables"]})
    return checked_references(tables, links, dataset.schema.get("invalid_references", "refuse"))


_VERDICTS = ("red", "amber", "green", "not_measured")


def _worst(tables: Document) -> Document:
    """Returns the summary of the report on a database.

    For each of fidelity, utility, likelihood and privacy, it contains the worst verdict of a table
    and the sentence that explains it. `tables` contains the report on each table by name.
    """
    found: Document = {"decisions": {}, "verdicts": {}, "sentences": {}}
    for part in ("fidelity", "utility", "likelihood", "privacy"):
        ranked = sorted(tables, key=lambda name: _VERDICTS.index(tables[name][part]["verdict"]))
        for name in ranked[:1]:
            found["verdicts"][part] = tables[name][part]["verdict"]
            found["sentences"][part] = f"{name}: {tables[name][part]['sentence']}"
    return found


def _reporting(attempt: Attempt, dataset: Dataset) -> Callable[[str, float], None]:
    """Returns a callback that reports the progress of training a database.

    The callback gets a table's name and finished fraction. It reports the finished fraction of the
    database, to which a table contributes by its number of cells.
    """
    sizes = {table["name"]: table["rows"] * table["columns"] for table in dataset.tables or ()}
    done: dict[str, float] = {}
    begun_at = time.monotonic()

    def report(name: str, fraction: float) -> None:
        # The name may be "TABLE by KEY": a table of entities that was split off from TABLE.
        table = name if name in sizes else name.partition(" by ")[0]
        done[table] = max(done.get(table, 0.0), min(fraction, 1.0))
        whole = sum(sizes[t] * f for t, f in done.items()) / max(sum(sizes.values()), 1)
        left = (time.monotonic() - begun_at) * (1.0 - whole) / whole if whole else None
        attempt.report("training", whole, table=name, seconds_left=left)

    return report
