"""Functions that run models in child processes, for requests that are answered without a job.

Their first argument is the context of the process. Parts of the library are imported inside
functions, because they import torch, which only these processes need.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Iterator
from os import SEEK_END
from typing import TYPE_CHECKING, Any

from catalog.job_kinds import JobKind, SampleSpec
from catalog.records import Model, Trained
from gcvae.errors import ArtifactError, Problem
from gcvae.files.row_documents import numbered, pointing
from gcvae.files.text_encodings import CHUNK_BYTES
from gcvae.latent.encoding_stream import stream_encodings
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import new_totals, stream_scores
from service.bodies import NewMapBody
from service.errors import InvalidModelError, RequestError
from service.inline.process import InlineContext, Streamed
from service.settings import ServiceSettings

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.dependence.maps import DependencyMap
    from gcvae.sampling.samplers import Sampler


def draw_sample(context: InlineContext, model: Model, spec: SampleSpec) -> Streamed:
    """Generates synthetic rows of one table, streamed as a file in the requested format.

    If the rows have to satisfy conditions, the summary of the result contains their probability and
    the effective sample size.

    Raises:
        ConditionError: The conditions are malformed or too improbable.
    """
    from gcvae.files.table_stream import stream_table

    assert spec.rows is not None, "a model of one table draws rows"
    rows, synthesizer = spec.rows, context.synthesizers.get(model)
    blocks: Iterator[pd.DataFrame] = synthesizer.sample_blocks(rows, seed=spec.seed)
    summary: dict[str, Any] = {}
    if spec.is_conditional:
        with pointing("/given_rows"):
            sampler = _sampler(context, model, spec)
            blocks, summary = sampler.blocks(rows), sampler.summary(rows)
    counted = context.tally.count_rows(JobKind.SAMPLE, blocks)
    if notes := synthesizer.notes(rows):
        summary |= {"notes": json.dumps(notes)}  # headers are ASCII, column names are not
    escape = spec.escape_formulas
    file = stream_table(counted, synthesizer.schema, spec.format, escape_formulas=escape)
    return Streamed(_pointing("/given_rows", file), summary)


def draw_database(context: InlineContext, model: Model, spec: SampleSpec) -> Streamed:
    """Generates a synthetic database as a ZIP file, or only the requested table as a file."""
    return Streamed(_drawn_tables(context, model, spec))


def _drawn_tables(context: InlineContext, model: Model, spec: SampleSpec) -> Iterator[bytes]:
    from gcvae.linked.database_archive import schemas_of_texts, write_database

    synthesizer = context.synthesizers.get_database(model)
    drawn = synthesizer.sample(spec.parents, scale=spec.scale or 1.0, seed=spec.seed)
    kept = drawn if spec.table is None else {spec.table: drawn[spec.table]}
    counted = dict(
        zip(kept, context.tally.count_rows(JobKind.SAMPLE, iter(kept.values())), strict=True)
    )
    schemas = synthesizer.schemas
    typed = schemas_of_texts(model.record or {}, schemas)
    escape = spec.escape_formulas
    with tempfile.TemporaryFile(prefix="gcvae-sample-") as file:
        packed = write_database(
            file, counted, spec.format, schemas, typed=typed, escape_formulas=escape
        )
        start, end = 0, file.seek(0, SEEK_END)
        if spec.table is not None:
            start = packed[spec.table].offset
            end = start + packed[spec.table].size_bytes
        for at in range(start, end, CHUNK_BYTES):
            file.seek(at)
            yield file.read(min(CHUNK_BYTES, end - at))


def check_conditions(context: InlineContext, model: Model, spec: SampleSpec) -> None:
    """Checks that the model can generate rows under the conditions of a request.

    Raises:
        ConditionError: The conditions are malformed or too improbable.
    """
    with pointing("/given_rows"):
        _sampler(context, model, spec)


def score_rows(
    context: InlineContext, model: Model, frame: bytes, options: ScoreOptions, response_format: str
) -> Streamed:
    """Computes the log-likelihoods of rows, and streams them as `response_format` (json or csv).

    Args:
        frame: Pickled data frame of the rows.
    """
    scorer = context.synthesizers.get(model).scorer
    blocks = context.tally.count_rows(JobKind.SCORE, scorer.blocks(pickle.loads(frame), options))
    heading = {"model_id": model.id} | scorer.heading(options)
    return Streamed(stream_scores(blocks, response_format, heading, new_totals(scorer.scoring)))


def complete_rows(
    context: InlineContext,
    model: Model,
    frame: bytes,
    options: dict[str, Any],
    response_format: str,
) -> Streamed:
    """Imputes missing cells of rows, and streams the completed rows.

    Args:
        frame: Pickled data frame of the rows.
        options: Keyword arguments of `Synthesizer.impute_blocks`.
        response_format: Format of the rows, such as csv.
    """
    synthesizer = context.synthesizers.get(model)
    blocks = synthesizer.impute_blocks(pickle.loads(frame), **options)
    counted = context.tally.count_rows(JobKind.IMPUTE, blocks)
    return Streamed(stream_completed(counted, synthesizer.schema, response_format))


def encode_rows(
    context: InlineContext, model: Model, frame: bytes, response_format: str
) -> Streamed:
    """Streams the posterior of z (the latent vector) for rows in format `response_format`.

    Args:
        frame: Pickled data frame of the rows.
    """
    encoded = context.synthesizers.get(model).encode_blocks(pickle.loads(frame))
    blocks = context.tally.count_rows(JobKind.ENCODE, encoded)
    return Streamed(stream_encodings(blocks, response_format, {"model_id": model.id}))


def export_model(context: InlineContext, model: Model, minimal: bool, scoring: str | None) -> bytes:
    """Returns a model's file with less content than the stored one.

    Args:
        minimal: Whether to leave out records of the training table that generation does not need.
        scoring: Which scores the file permits: "full" for all, "flag" for only whether a row is
            rare, "off" for none; None to keep the limit of the model.

    Raises:
        SettingError: `scoring` has another value.
    """
    return context.synthesizers.get(model).to_bytes(minimal=minimal, scoring=scoring)


def examine_model(
    context: InlineContext, key: str, sha256: str, size_bytes: int, settings: ServiceSettings
) -> Trained:
    """Loads the model file stored under `key` and tests that the model works.

    Returns the description of the model that the database stores.

    Raises:
        InvalidModelError: The file is not a model, or the model does not work.
        TableLimitError: A table in the file exceeds a limit.
    """
    try:
        return context.synthesizers.examine(key, sha256, size_bytes, settings)
    except ArtifactError as error:
        raise InvalidModelError(str(error)) from error


def draw_map(
    context: InlineContext,
    model: Model,
    kind: str,
    response_format: str,
    seed: int,
    order: str | None,
) -> bytes:
    """Returns a dependency map (matrix of pairwise dependence) of a model; cached.

    Args:
        kind: Kind of map, such as "expected".
        response_format: Response format: json, png or svg.
        order: Kind of another map. The columns are shown in the order of that map. None for the
            order of the map of kind `kind`.
    """

    def made(kind: str) -> DependencyMap:
        return context.maps.get(
            (*published, kind, str(seed)),
            lambda: context.synthesizers.get(model).dependencies(kind, seed=seed),
        )

    def drawn() -> bytes:
        return _in_format(made(kind), response_format, None if order is None else made(order).order)

    published = (model.id, str(model.artifact_sha256))
    return context.pictures.get((*published, kind, str(seed), response_format, str(order)), drawn)


def draw_local_map(
    context: InlineContext, model: Model, body: NewMapBody, response_format: str
) -> bytes:
    """Returns the dependency map at one row or latent vector.

    Args:
        response_format: Response format: json, png or svg.

    Raises:
        RequestError: The body has both a row and a latent vector, or neither.
        InputError: The latent vector has a wrong number of dimensions.
        TableError: A cell cannot be converted to its column's kind, or the row is impossible.
        UnknownColumnError: A column is not in the model.
    """
    if (body.row is None) == (body.z is None):
        problem = Problem(
            "a local map needs one row or one z", "/row", expected="either a row or a z"
        )
        raise RequestError(problem)
    synthesizer = context.synthesizers.get(model)
    found = synthesizer.dependencies("local", seed=body.seed, row=body.row, z=body.z)
    return _in_format(found, response_format)


def draw_manifold(context: InlineContext, model: Model, steps: int, response_format: str) -> bytes:
    """Returns the decoder's output on a grid of a two-dimensional latent space; cached.

    Args:
        steps: Number of grid points per dimension.
        response_format: Response format: json, png or svg.
    """

    def drawn() -> bytes:
        manifold = context.synthesizers.get(model).manifold(steps)
        return (
            _json(manifold.to_json())
            if response_format == "json"
            else manifold.picture(response_format)
        )

    key = (model.id, str(model.artifact_sha256), "manifold", str(steps), response_format)
    return context.pictures.get(key, drawn)


def _sampler(context: InlineContext, model: Model, spec: SampleSpec) -> Sampler:
    from gcvae.files.tables import read_table

    table = spec.given_rows
    rows = None if table is None else numbered(read_table(table.encode()))
    return context.synthesizers.get(model).sampler(
        spec.seed, given=spec.given, distribution=spec.distribution, given_rows=rows
    )


def _pointing(pointer: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the chunks. Errors that are raised while a chunk is made name a bad row by a JSON
    pointer that begins with `pointer`, instead of by its number."""
    with pointing(pointer):
        yield from chunks


def _in_format(found: DependencyMap, response_format: str, order: list[int] | None = None) -> bytes:
    return (
        _json(found.to_json(order))
        if response_format == "json"
        else found.picture(response_format, order)
    )


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
