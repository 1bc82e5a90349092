"""What is done inline: the answers of a model, drawn in a process of inline work.

Each function takes the process's bench first. What it imports of the library costs torch, which
only those processes have.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Iterator
from functools import partial
from os import SEEK_END
from typing import TYPE_CHECKING, Any

from catalog.job_kinds import JobKind, SampleSpec
from catalog.records import Model, Trained
from gcvae.errors import ArtifactError, Problem
from gcvae.files.gzipped import CHUNK_BYTES
from gcvae.files.row_documents import numbered, pointing
from gcvae.latent.encoding_stream import stream_encodings
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import new_totals, stream_scores
from service.bodies import NewMapBody
from service.errors import InvalidModelError, RequestError
from service.inline.process import Bench, Streamed
from service.settings import ServiceSettings

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.dependence.maps import DependencyMap
    from gcvae.sampling.samplers import Sampler


def draw_sample(bench: Bench, model: Model, spec: SampleSpec) -> Streamed:
    """Drawn rows as a file, and what is known of their conditions.

    Raises:
        ConditionError: the conditions are malformed, or too improbable.
    """
    from gcvae.files.table_stream import stream_table

    assert spec.rows is not None, "a model of one table draws rows"
    rows, synthesizer = spec.rows, bench.synthesizers.get(model)
    blocks: Iterator[pd.DataFrame] = synthesizer.sample_blocks(rows, seed=spec.seed)
    summary: dict[str, Any] = {}
    if spec.is_conditional:
        with pointing("/given_rows"):
            sampler = _sampler(bench, model, spec)
            blocks, summary = sampler.blocks(rows), sampler.summary(rows)
    counted = bench.tally.counted(JobKind.SAMPLE, blocks)
    if notes := synthesizer.notes(rows):
        summary |= {"notes": json.dumps(notes)}  # a header has ASCII alone, names any letter
    escape = spec.escape_formulas
    file = stream_table(counted, synthesizer.schema, spec.format, escape_formulas=escape)
    return Streamed(_pointing("/given_rows", file), summary)


def draw_database(bench: Bench, model: Model, spec: SampleSpec) -> Streamed:
    """Drawn tables as a ZIP file, or one of them as a file."""
    return Streamed(_drawn_tables(bench, model, spec))


def _drawn_tables(bench: Bench, model: Model, spec: SampleSpec) -> Iterator[bytes]:
    from gcvae.linked.database_archive import schemas_of_texts, write_database

    synthesizer = bench.synthesizers.get_database(model)
    drawn = synthesizer.sample(spec.parents, scale=spec.scale or 1.0, seed=spec.seed)
    kept = drawn if spec.table is None else {spec.table: drawn[spec.table]}
    counted = dict(zip(kept, bench.tally.counted(JobKind.SAMPLE, iter(kept.values())), strict=True))
    typed = schemas_of_texts(model.record or {}, synthesizer.schemas)
    escape = spec.escape_formulas
    with tempfile.TemporaryFile(prefix="gcvae-sample-") as file:
        packed = write_database(file, counted, spec.format, typed=typed, escape_formulas=escape)
        start, end = 0, file.seek(0, SEEK_END)
        if spec.table is not None:
            start = packed[spec.table].offset
            end = start + packed[spec.table].size_bytes
        for at in range(start, end, CHUNK_BYTES):
            file.seek(at)
            yield file.read(min(CHUNK_BYTES, end - at))


def check_conditions(bench: Bench, model: Model, spec: SampleSpec) -> None:
    """Let conditions pass that the model can meet.

    Raises:
        ConditionError: they are malformed, or too improbable.
    """
    with pointing("/given_rows"):
        _sampler(bench, model, spec)


def score_rows(
    bench: Bench, model: Model, frame: bytes, options: ScoreOptions, form: str
) -> Streamed:
    """The scores of a pickled frame as JSON or CSV: the API passes rows on, and reads none."""
    scorer = bench.synthesizers.get(model).scorer
    blocks = bench.tally.counted(JobKind.SCORE, scorer.blocks(pickle.loads(frame), options))
    heading = {"model_id": model.id} | scorer.heading(options)
    return Streamed(stream_scores(blocks, form, heading, new_totals(scorer.scoring)))


def complete_rows(
    bench: Bench, model: Model, frame: bytes, options: dict[str, Any], form: str
) -> Streamed:
    """The completed table as a file; the options are those of `Synthesizer.impute_blocks`."""
    synthesizer = bench.synthesizers.get(model)
    blocks = synthesizer.impute_blocks(pickle.loads(frame), **options)
    counted = bench.tally.counted(JobKind.IMPUTE, blocks)
    return Streamed(stream_completed(counted, synthesizer.schema, form))


def encode_rows(bench: Bench, model: Model, frame: bytes, form: str) -> Streamed:
    """The encodings as JSON or CSV."""
    encoded = bench.synthesizers.get(model).encode_blocks(pickle.loads(frame))
    blocks = bench.tally.counted(JobKind.ENCODE, encoded)
    return Streamed(stream_encodings(blocks, form, {"model_id": model.id}))


def export_model(bench: Bench, model: Model, minimal: bool, scoring: str | None) -> bytes:
    """The file of a model as it is handed on: minimal, or one that says less of rows.

    Raises:
        SettingError: there is no such scoring.
    """
    return bench.synthesizers.get(model).to_bytes(minimal=minimal, scoring=scoring)


def examine_model(
    bench: Bench, key: str, sha256: str, size_bytes: int, settings: ServiceSettings
) -> Trained:
    """What there is to record of a stored model file.

    Raises:
        InvalidModelError: it is no model, or one that does not work.
        TableLimitError: a table that it holds is over the limits.
    """
    try:
        return bench.synthesizers.examine(key, sha256, size_bytes, settings)
    except ArtifactError as error:
        raise InvalidModelError(str(error)) from error


def draw_map(
    bench: Bench, model: Model, kind: str, form: str, seed: int, order: str | None
) -> bytes:
    """The map as JSON text or as a picture; kept, since the same question gets the same map.

    Args:
        order: the kind in whose map's order the columns stand; None is the map's own.
    """

    def made(kind: str) -> DependencyMap:
        key = (*published, kind, str(seed))
        return bench.maps.get(key, partial(_make_map, bench, model, kind, seed))

    def drawn() -> bytes:
        return _in_form(made(kind), form, None if order is None else made(order).order)

    published = (model.id, str(model.artifact_sha256))
    return bench.pictures.get((*published, kind, str(seed), form, str(order)), drawn)


def draw_local_map(bench: Bench, model: Model, body: NewMapBody, form: str) -> bytes:
    """The map at a row or at a z, as JSON text or as a picture.

    Raises:
        RequestError: both or neither are given.
        InputError: z has another number of dimensions.
        TableError: a cell can not be read, or the row is impossible.
        UnknownColumnError: a column that the model does not have.
    """
    if (body.row is None) == (body.z is None):
        problem = Problem(
            "a local map needs one row or one z", "/row", expected="either a row or a z"
        )
        raise RequestError(problem)
    synthesizer = bench.synthesizers.get(model)
    found = synthesizer.dependencies("local", seed=body.seed, row=body.row, z=body.z)
    return _in_form(found, form)


def draw_manifold(bench: Bench, model: Model, steps: int, form: str) -> bytes:
    """The manifold as JSON text or as a picture; kept, since the same question gets the same."""
    key = (model.id, str(model.artifact_sha256), "manifold", str(steps), form)
    return bench.pictures.get(key, partial(_draw_manifold, bench, model, steps, form))


def _sampler(bench: Bench, model: Model, spec: SampleSpec) -> Sampler:
    from gcvae.files.tables import read_table

    table = spec.given_rows
    rows = None if table is None else numbered(read_table(table.encode()))
    return bench.synthesizers.get(model).sampler(
        spec.seed, given=spec.given, distribution=spec.distribution, given_rows=rows
    )


def _pointing(place: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    with pointing(place):
        yield from chunks


def _make_map(bench: Bench, model: Model, kind: str, seed: int) -> DependencyMap:
    return bench.synthesizers.get(model).dependencies(kind, seed=seed)


def _draw_manifold(bench: Bench, model: Model, steps: int, form: str) -> bytes:
    manifold = bench.synthesizers.get(model).manifold(steps)
    if form == "json":
        return json.dumps(manifold.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return manifold.picture(form)


def _in_form(found: DependencyMap, form: str, order: list[int] | None = None) -> bytes:
    if form == "json":
        return json.dumps(found.to_json(order), ensure_ascii=False, allow_nan=False).encode()
    return found.picture(form, order)
