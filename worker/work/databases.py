"""Training and sampling of databases: all tables, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from catalog import Dataset, Document, Produced
from catalog.job_kinds import SampleSpec, TrainSpec
from worker.work.attempt import Attempt
from worker.work.outputs import publish
from worker.work.tables import stored_database

if TYPE_CHECKING:
    from gcvae import DatabaseSynthesizer

_DRAWN = 0.9
"""Fraction of a sample job when all rows are generated."""


def fit_database(
    attempt: Attempt, dataset: Dataset, spec: TrainSpec, settings: Document
) -> DatabaseSynthesizer:
    """Trains the model of a database. It has no checkpoints; another attempt gives the same
    weights.

    Raises:
        Exception: As `worker.work.train.train`.
    """
    from gcvae import DatabaseSynthesizer

    schema = {"tables": dataset.schema["tables"]}
    return DatabaseSynthesizer.fit(
        stored_database(attempt, dataset),
        schema=schema,
        preset=spec.training["preset"],
        seed=spec.training["seed"],
        device=spec.training["device"],
        settings=settings,
        dirty=dataset.schema.get("dirty", "refuse"),
        progress=_reporting(attempt, dataset),
    )


def record_of_database(record: Document, dataset: Dataset, spec: TrainSpec) -> Document:
    """Returns the training record of a database model, with the formats of its tables."""
    formats = {table["name"]: {"format": table["format"]} for table in dataset.tables or ()}
    tables = {name: table | formats.get(name, {}) for name, table in record["tables"].items()}
    how = {name: spec.training[name] for name in ("preset", "seed", "device")}
    return {**how, "settings": spec.settings, **record, "tables": tables}


def sample_database(attempt: Attempt, spec: SampleSpec) -> Produced:
    """Generates the tables and publishes them as a ZIP file, or one of them as a file.

    Raises:
        Exception: As `worker.work.sample.sample`.
    """
    from gcvae.files.table_archives import MEDIA_TYPE, archive_as_file
    from gcvae.files.table_stream import MEDIA_TYPES
    from gcvae.linked.database_archive import schemas_of_texts, write_database

    synthesizer = attempt.load_database()
    attempt.report("sampling", 0.0)
    drawn = synthesizer.sample(spec.parents, scale=spec.scale or 1.0, seed=spec.seed)
    attempt.report("writing", _DRAWN)
    kept = drawn if spec.table is None else {spec.table: drawn[spec.table]}
    typed = schemas_of_texts(attempt.model().record or {}, synthesizer.schemas)
    escape = spec.escape_formulas
    path = attempt.folder / "tables"
    with path.open("w+b") as file:
        packed = write_database(file, kept, spec.format, typed=typed, escape_formulas=escape)
        if spec.table is not None:
            archive_as_file(file, packed[spec.table])
    tables = {name: {"rows": len(frame), **vars(packed[name])} for name, frame in kept.items()}
    is_one = spec.table is not None
    return publish(
        attempt,
        f"rows.{spec.format}" if is_one else "tables.zip",
        path,
        media_type=MEDIA_TYPES[spec.format] if is_one else MEDIA_TYPE,
        rows=sum(len(frame) for frame in kept.values()),
        summary={"seed": spec.seed} | ({} if is_one else {"tables": tables}),
    )


def _reporting(attempt: Attempt, dataset: Dataset) -> Callable[[str, float], None]:
    """Returns a callback for the tables' fits, weighted by their number of cells."""
    sizes = {table["name"]: table["rows"] * table["columns"] for table in dataset.tables or ()}
    done: dict[str, float] = {}
    begun_at = time.monotonic()

    def report(name: str, fraction: float) -> None:
        # The entities of a table are learned with it, and a table's gaps after its rows.
        table = name if name in sizes else name.partition(" by ")[0]
        done[table] = max(done.get(table, 0.0), min(fraction, 1.0))
        whole = sum(sizes[t] * f for t, f in done.items()) / max(sum(sizes.values()), 1)
        left = (time.monotonic() - begun_at) * (1.0 - whole) / whole if whole else None
        attempt.report("training", whole, table=name, seconds_left=left)

    return report
