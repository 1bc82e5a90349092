"""What is done inline: the answers of a model, drawn in a process of inline work.

Each function takes the process's bench first. What it imports of the library costs torch, which
only those processes have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from catalog.records import JobKind, Model
from gcvae.encoding_stream import stream_encodings
from gcvae.errors import Problem
from gcvae.imputation_stream import stream_completed
from gcvae.row_documents import numbered, pointing, rows_to_csv
from gcvae.score_options import ScoreOptions
from gcvae.score_stream import ScoreTotals, stream_scores
from service.bodies import NewMapBody, NewSampleBody
from service.errors import RequestError
from service.inline_process import Bench, Streamed
from service.synthesizers import schema_of

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.dependence import DependencyMap
    from gcvae.sampling import Sampler


def conditions_of(body: NewSampleBody) -> list[str]:
    """The names of the conditions that are given."""
    names = ("given", "distribution", "given_rows")
    return [name for name in names if getattr(body, name) is not None]


def given_table(model: Model, body: NewSampleBody) -> bytes:
    """The rows of known cells as a CSV table.

    Raises:
        UnknownColumnError: a row names a column that the model does not have.
    """
    return rows_to_csv(body.given_rows or (), schema_of(model), "/given_rows")


def draw_sample(bench: Bench, model: Model, body: NewSampleBody) -> Streamed:
    """Drawn rows as a file, and what is known of their conditions.

    Raises:
        ConditionError: the conditions are malformed, or too improbable.
    """
    from gcvae.table_stream import stream_table

    synthesizer = bench.synthesizers.get(model)
    blocks, summary = synthesizer.sample_blocks(body.rows, seed=body.seed), {}
    if conditions_of(body):
        with pointing("/given_rows"):
            sampler = _sampler(bench, model, body)
            blocks, summary = sampler.blocks(body.rows), sampler.summary(body.rows)
    counted = bench.tally.counted(JobKind.SAMPLE, blocks)
    file = stream_table(counted, synthesizer.schema, body.format)
    return Streamed(_pointing("/given_rows", file), summary)


def check_conditions(bench: Bench, model: Model, body: NewSampleBody) -> None:
    """Let conditions pass that the model can meet.

    Raises:
        ConditionError: they are malformed, or too improbable.
    """
    with pointing("/given_rows"):
        _sampler(bench, model, body)


def score_rows(
    bench: Bench, model: Model, frame: pd.DataFrame, options: ScoreOptions, form: str
) -> Streamed:
    """The scores as JSON or CSV."""
    scorer = bench.synthesizers.get(model).scorer
    blocks = bench.tally.counted(JobKind.SCORE, scorer.blocks(frame, options))
    heading = {"model_id": model.id} | options.heading(scorer.order())
    return Streamed(stream_scores(blocks, form, heading, ScoreTotals()))


def complete_rows(
    bench: Bench, model: Model, frame: pd.DataFrame, draws: int, seed: int, form: str
) -> Streamed:
    """The completed table as a file."""
    synthesizer = bench.synthesizers.get(model)
    blocks = synthesizer.impute_blocks(frame, draws=draws, seed=seed)
    counted = bench.tally.counted(JobKind.IMPUTE, blocks)
    return Streamed(stream_completed(counted, synthesizer.schema, form))


def encode_rows(bench: Bench, model: Model, frame: pd.DataFrame, form: str) -> Streamed:
    """The encodings as JSON or CSV."""
    encoded = bench.synthesizers.get(model).encode_blocks(frame)
    blocks = bench.tally.counted(JobKind.ENCODE, encoded)
    return Streamed(stream_encodings(blocks, form, {"model_id": model.id}))


def draw_map(bench: Bench, model: Model, kind: str, form: str, seed: int) -> bytes:
    """The map as JSON text or as a picture; kept, since the same question gets the same map."""
    key = (model.id, str(model.artifact_sha256), kind, str(seed))
    made = bench.maps.get(key, partial(_make_map, bench, model, kind, seed))
    return bench.pictures.get((*key, form), partial(_in_form, made, form))


def draw_local_map(bench: Bench, model: Model, body: NewMapBody, form: str) -> bytes:
    """The map at a row or at a z, as JSON text or as a picture.

    Raises:
        RequestError: both or neither are given.
        InputError: z has another number of dimensions.
        TableError: a cell can not be read, or the row is impossible.
        UnknownColumnError: a column that the model does not have.
    """
    if (body.row is None) == (body.z is None):
        problem = Problem("a local map is of one place", "/row", expected="either a row or a z")
        raise RequestError(problem)
    synthesizer = bench.synthesizers.get(model)
    found = synthesizer.dependencies("local", seed=body.seed, row=body.row, z=body.z)
    return _in_form(found, form)


def draw_manifold(bench: Bench, model: Model, steps: int, form: str) -> bytes:
    """The manifold as JSON text or as a picture; kept, since the same question gets the same."""
    key = (model.id, str(model.artifact_sha256), "manifold", str(steps), form)
    return bench.pictures.get(key, partial(_draw_manifold, bench, model, steps, form))


def _sampler(bench: Bench, model: Model, body: NewSampleBody) -> Sampler:
    from gcvae.tables import read_table

    rows = None if body.given_rows is None else numbered(read_table(given_table(model, body)))
    return bench.synthesizers.get(model).sampler(
        body.seed, given=body.given, distribution=body.distribution, given_rows=rows
    )


def _pointing(place: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    with pointing(place):
        yield from blocks


def _make_map(bench: Bench, model: Model, kind: str, seed: int) -> DependencyMap:
    return bench.synthesizers.get(model).dependencies(kind, seed=seed)


def _draw_manifold(bench: Bench, model: Model, steps: int, form: str) -> bytes:
    manifold = bench.synthesizers.get(model).manifold(steps)
    if form == "json":
        return json.dumps(manifold.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return manifold.picture(form)


def _in_form(found: DependencyMap, form: str) -> bytes:
    if form == "json":
        return json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return found.picture(form)
