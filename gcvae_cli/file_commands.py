"""Commands on files. They need no server, and import nothing of one."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from gcvae.glyphs import GlyphWarning
from gcvae.map_notes import KINDS
from gcvae.seeds import MAX_SEED
from gcvae_cli.assignments import parse_assignments
from gcvae_cli.conditions import number_of_rows, read_conditions, tell_condition
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.json_texts import read_json
from gcvae_cli.outputs import (
    STANDARD_OUTPUT,
    format_of,
    opened_output,
    require_space,
    write_text,
)
from gcvae_cli.progress import progress_bar, training_note
from gcvae_cli.temporary import own_temporary_folder

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.dependence import DependencyMap
    from gcvae.synthesizer import Synthesizer
    from gcvae.table_reader import TableReader
    from gcvae.training_progress import Progress

TABLE_FORMATS = {".csv": "csv", ".csv.gz": "csv.gz", ".parquet": "parquet"}
MODEL_FORMATS = {".gcvae": "gcvae"}
MAP_FORMATS = {".png": "png", ".svg": "svg", ".json": "json", ".csv": "csv"}
MANIFOLD_FORMATS = {".png": "png", ".svg": "svg", ".json": "json"}
DEVICES = ("auto", "cpu", "cuda")

Table = Annotated[
    Path,
    typer.Argument(exists=True, dir_okay=False, help="A table: .csv, .csv.gz or .parquet."),
]
ModelFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="A trained model, model.gcvae.")
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", exists=True, dir_okay=False, help="What is known of the columns."),
]
TableOutput = Annotated[
    str, typer.Option("--output", "-o", help=".csv, .csv.gz or .parquet; - is standard output.")
]
Seed = Annotated[
    int, typer.Option(min=0, max=MAX_SEED, help="The same seed gives the same answer.")
]
# The networks are small: on a busy machine a second thread makes them ten times slower.
Threads = Annotated[int, typer.Option(min=1, help="Computing threads.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for scripts.")]


def schema(
    table: Table,
    output: Annotated[str, typer.Option("--output", "-o", help="A file; - prints.")] = "-",
    schema_file: SchemaFile = None,
    as_json: AsJson = False,
) -> None:
    """Infer a table's schema and print it."""
    from gcvae import TableReader, infer_schema

    inferred = infer_schema(TableReader(table), _read_schema(schema_file))
    document = inferred.schema.to_json()
    _warn(inferred.warnings)
    if not as_json or output != STANDARD_OUTPUT:
        write_text(output, json.dumps(document, indent=2, ensure_ascii=False))
    if as_json:
        _answer({"schema": document, "warnings": inferred.warnings})


def train(
    table: Table,
    output: Annotated[str, typer.Option("--output", "-o", help="A name that ends in .gcvae.")],
    schema_file: SchemaFile = None,
    preset: Annotated[str, typer.Option(help="A named configuration.")] = "default",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting of the preset; repeatable."),
    ] = None,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Train a model on a table, which need not fit into memory."""
    from gcvae import TableReader, infer_schema
    from gcvae.presets import configure

    _refuse_two_answers(output, as_json)
    format_of(output, MODEL_FORMATS, standard_output="gcvae")
    settings = parse_assignments(assignments or ())
    configure(preset, settings)  # a wrong setting is told before torch is loaded
    _check_device(device)
    inferred = infer_schema(TableReader(table), _read_schema(schema_file))
    _warn(inferred.warnings)
    _use_threads(threads)
    # A place that can not be written is told at once.
    with opened_output(output) as stream, own_temporary_folder():
        synthesizer = _fit(
            TableReader(table),
            table.name,
            schema=inferred.schema,
            preset=preset,
            settings=settings,
            seed=seed,
            device=device,
        )
        stream.write(synthesizer.to_bytes())
    _tell_training(synthesizer, output, as_json)


def sample(
    model: ModelFile,
    output: TableOutput,
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many rows to draw; as many as --given-rows has.")
    ] = None,
    given: Annotated[
        str | None, typer.Option(metavar="JSON|@FILE", help='Such as {"age": {"min": 30}}.')
    ] = None,
    given_rows: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Known cells: a row is drawn around each."),
    ] = None,
    distribution: Annotated[
        str | None,
        typer.Option(metavar="JSON|@FILE", help='Such as {"sex": {"Female": 0.5, "Male": 0.5}}.'),
    ] = None,
    seed: Seed = 0,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Draw synthetic rows from a model."""
    from gcvae.table_stream import stream_table

    _refuse_two_answers(output, as_json)
    table_format = format_of(output, TABLE_FORMATS, standard_output="csv")
    conditions = read_conditions(given, given_rows, distribution)
    rows = number_of_rows(rows, conditions.get("given_rows"))
    synthesizer = _load(model, threads)
    sampler = synthesizer.sampler(seed, **conditions) if conditions else None
    summary = {} if sampler is None else sampler.summary(rows)
    tell_condition(summary)
    with progress_bar("sampling") as bar, opened_output(output) as stream:

        def show(fraction: float, note: str) -> None:
            bar.move(fraction, note)
            require_space(output, _bytes_to_come(stream, fraction))

        drawn = synthesizer.sample_blocks(rows, seed) if sampler is None else sampler.blocks(rows)
        blocks = _watched(drawn, rows, show)
        bare_format = table_format.removesuffix(".gz")
        _write_stream(stream_table(blocks, synthesizer.schema, bare_format), stream, table_format)
    if as_json:
        _answer({"output": output, "rows": rows, "seed": seed, **summary})


def impute(
    model: ModelFile,
    table: Table,
    output: TableOutput,
    draws: Annotated[int, typer.Option(min=1, help="Completions of each row.")] = 1,
    seed: Seed = 0,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Fill a table's blanks from what is known; known cells stay as they are."""
    from gcvae import TableReader
    from gcvae.imputation_stream import stream_completed

    _refuse_two_answers(output, as_json)
    table_format = format_of(output, TABLE_FORMATS, standard_output="csv")
    synthesizer = _load(model, threads)
    reader = TableReader(table)
    with progress_bar(f"imputing {table.name}") as bar, opened_output(output) as stream:
        completed = synthesizer.impute_blocks(reader, draws=draws, seed=seed)
        blocks = _watched_reader(completed, reader, bar.move, draws)
        bare_format = table_format.removesuffix(".gz")
        parts = stream_completed(blocks, synthesizer.schema, bare_format)
        _write_stream(parts, stream, table_format)
    if as_json:
        rows = reader.rows * draws
        _answer({"output": output, "rows": rows, "draws": draws, "seed": seed})


def score(
    model: ModelFile,
    table: Table,
    output: TableOutput,
    draws: Annotated[int, typer.Option(min=1, help="Draws of z per row.")] = 100,
    jitters: Annotated[
        int, typer.Option(min=0, help="Of a copula's discrete cells per draw; 0 is exact.")
    ] = 0,
    measure: Annotated[
        str, typer.Option(help="Of continuous values: density, rounding_cell or pmf (of bins).")
    ] = "density",
    score_missingness: Annotated[
        bool, typer.Option("--score-missingness", help="Blanks count; else any outcome may be.")
    ] = False,
    seed: Seed = 0,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Say how likely each row of a table is: one line per row, in nats, with each column's part."""
    from gcvae import TableReader
    from gcvae.parquet_files import write_parquet
    from gcvae.score_options import ScoreOptions
    from gcvae.score_stream import ScoreTotals, counted, stream_scores

    _refuse_two_answers(output, as_json)
    options = ScoreOptions(draws, seed, jitters, measure, score_missingness)
    table_format = format_of(output, TABLE_FORMATS, standard_output="csv")
    synthesizer = _load(model, threads)
    reader = TableReader(table)
    totals = ScoreTotals()
    with progress_bar(f"scoring {table.name}") as bar, opened_output(output) as stream:
        scorer = synthesizer.scorer
        blocks = _watched_reader(scorer.blocks(reader, options), reader, bar.move)
        if table_format == "parquet":
            write_parquet(counted(blocks, totals), stream)
        else:
            _write_stream(stream_scores(blocks, "csv", {}, totals), stream, table_format)
    if as_json:
        heading = options.heading(scorer.order())
        _answer({"output": output, **heading, "totals": totals.to_json()})


def dependencies(
    model: ModelFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help=".png, .svg, .json or .csv; - prints JSON.")
    ],
    kind: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(KINDS)}. [default: expected, or local with --row or --z]"),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="The row whose local map it is, cells by column."),
    ] = None,
    z: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="A place in the latent space instead: [0.5, -1.2]."),
    ] = None,
    seed: Seed = 0,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Map which columns depend on which (Kendall's tau)."""
    map_format = format_of(output, MAP_FORMATS, standard_output="json")
    place = {"row": _read_option("--row", row, dict), "z": _read_option("--z", z, list)}
    asked = (
        ("expected" if place["row"] is place["z"] is None else "local") if kind is None else kind
    )
    dependency_map = _load(model, threads).dependencies(asked, seed=seed, **place)
    if not as_json or output != STANDARD_OUTPUT:
        with opened_output(output) as stream:
            _write_map(dependency_map, stream, map_format)
    if as_json:
        _answer({"output": output, "map": dependency_map.to_json()})


def encode(
    model: ModelFile,
    table: Table,
    output: TableOutput,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Say where each row of a table lies in the latent space: posterior mean and deviation."""
    from gcvae import TableReader
    from gcvae.encoding_stream import stream_encodings
    from gcvae.parquet_files import write_parquet

    _refuse_two_answers(output, as_json)
    table_format = format_of(output, TABLE_FORMATS, standard_output="csv")
    synthesizer = _load(model, threads)
    reader = TableReader(table)
    with progress_bar(f"encoding {table.name}") as bar, opened_output(output) as stream:
        blocks = _watched_reader(synthesizer.encode_blocks(reader), reader, bar.move)
        if table_format == "parquet":
            write_parquet(blocks, stream)
        else:
            _write_stream(stream_encodings(blocks, "csv", {}), stream, table_format)
    if as_json:
        _answer({"output": output, "rows": reader.rows})


def manifold(
    model: ModelFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help=".png, .svg or .json; - prints JSON.")
    ],
    steps: Annotated[int, typer.Option(min=2, max=50, help="Quantiles a dimension.")] = 15,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Draw what the decoder makes of a two-dimensional latent space (d_latent 2)."""
    manifold_format = format_of(output, MANIFOLD_FORMATS, standard_output="json")
    found = _load(model, threads).manifold(steps)
    if not as_json or output != STANDARD_OUTPUT:
        with opened_output(output) as stream:
            if manifold_format == "json":
                document = json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False)
                stream.write(document.encode())
            else:
                with _telling_warnings():
                    found.draw(stream, manifold_format)
    if as_json:
        _answer({"output": output, "manifold": found.to_json()})


def settings(
    output: Annotated[str, typer.Option("--output", "-o", help="A file; - prints.")] = "-",
) -> None:
    """Print what every setting does, with its value in each preset."""
    from gcvae_cli.settings_page import settings_page

    write_text(output, settings_page())


def _read_schema(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        document = read_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WrongUsageError(f"{path}: no JSON ({error}); write one with `gcvae schema`") from None
    return document  # type: ignore[no-any-return]


def _read_option(name: str, text: str | None, form: type) -> Any:
    """The JSON of an option, an object (dict) or a list."""
    if text is None:
        return None
    try:
        found = read_json(text)
    except ValueError as error:
        raise WrongUsageError(f"{name} is no JSON ({error})") from None
    if not isinstance(found, form):
        wanted = 'an object such as {"age": 40}' if form is dict else "a list of numbers"
        raise WrongUsageError(f"{name} is {text}; write {wanted}")
    return found


def _check_device(device: str) -> None:
    if device not in DEVICES:
        raise WrongUsageError(f"--device {device}: choose one of {', '.join(DEVICES)}")


def _use_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)


def _fit(table: TableReader, title: str, **choices: Any) -> Synthesizer:
    from gcvae import Synthesizer

    with progress_bar(f"training on {title}") as bar:

        def show(progress: Progress) -> None:
            bar.move(progress.fraction, training_note(dataclasses.asdict(progress)))

        return Synthesizer.fit(table, progress=show, **choices)


def _load(model: Path, threads: int) -> Synthesizer:
    from gcvae import Synthesizer

    _use_threads(threads)
    return Synthesizer.load(model)


def _watched(
    blocks: Iterator[pd.DataFrame], rows: int, move: Callable[[float, str], None]
) -> Iterator[pd.DataFrame]:
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        move(done / max(rows, 1), f"{done:,} rows")


def _watched_reader(
    blocks: Iterator[pd.DataFrame],
    reader: TableReader,
    move: Callable[[float, str], None],
    lines_per_row: int = 1,
) -> Iterator[pd.DataFrame]:
    """Blocks made of what was read: the bar moves within the part that is being worked on, too."""
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        rows = done // lines_per_row
        move(reader.fraction * rows / reader.rows, f"{rows:,} rows")


def _bytes_to_come(stream: BinaryIO, fraction: float) -> float:
    """Estimate of what is still to be written, from what has been for this share of the rows."""
    return stream.tell() * (1.0 - fraction) / fraction if stream.seekable() else 0.0


def _write_stream(parts: Iterable[bytes], stream: BinaryIO, table_format: str) -> None:
    """Writes the parts, packed where the format says so; equal parts give equal files."""
    if table_format != "csv.gz":
        stream.writelines(parts)
        return
    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        packed.writelines(parts)


def _write_map(dependency_map: DependencyMap, stream: BinaryIO, map_format: str) -> None:
    if map_format == "json":
        stream.write(json.dumps(dependency_map.to_json(), indent=2, ensure_ascii=False).encode())
    elif map_format == "csv":
        stream.write(_map_as_csv(dependency_map).encode())
    else:
        with _telling_warnings():
            dependency_map.draw(stream, map_format)


@contextmanager
def _telling_warnings() -> Iterator[None]:
    """Of names that a picture can not show, a line each."""
    with warnings.catch_warnings(record=True, action="always", category=GlyphWarning) as caught:
        yield
    _warn(tuple(str(warning.message) for warning in caught))


def _map_as_csv(dependency_map: DependencyMap) -> str:
    """The matrix tau with the column names above and beside it; what is not defined is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["", *dependency_map.columns])
    for name, row in zip(dependency_map.columns, dependency_map.to_json()["tau"], strict=True):
        writer.writerow([name, *row])
    return text.getvalue()


def _tell_training(synthesizer: Synthesizer, output: str, as_json: bool) -> None:
    record = synthesizer.training_record
    if as_json:
        _answer({"model": output, "training": record})
        return
    _tell_acceptance(record)
    if output != STANDARD_OUTPUT:
        print(f"wrote {output}: `gcvae sample {output} --rows 1000 -o synthetic.csv` draws rows")


def _tell_acceptance(record: Mapping[str, Any]) -> None:
    """How many of the model's rows satisfy the constraints, where there are any."""
    acceptance = record.get("constraint_acceptance")
    if acceptance is None:
        return
    each = ", ".join(f"{c['pointer']} {c['share']:.1%}" for c in acceptance["constraints"])
    print(
        f"gcvae: {acceptance['share']:.1%} of the model's rows satisfy all constraints ({each}); "
        "the others are drawn anew",
        file=sys.stderr,
    )


def _answer(document: dict[str, Any]) -> None:
    """Prints what a script reads: one JSON object on a line."""
    print(json.dumps(document, ensure_ascii=False))


def _refuse_two_answers(output: str, as_json: bool) -> None:
    if as_json and output == STANDARD_OUTPUT:
        raise WrongUsageError("--json and -o - both take the standard output; give -o a file")


def _warn(told: tuple[str, ...]) -> None:
    for warning in told:
        print(f"gcvae: warning: {warning}", file=sys.stderr)
