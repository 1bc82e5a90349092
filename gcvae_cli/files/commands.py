"""The commands that work on files, such as `gcvae train`, without a service."""

from __future__ import annotations

import dataclasses
import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from gcvae.numerics.seeds import fresh_seed
from gcvae_cli.assignments import parse_assignments
from gcvae_cli.files import options as opt
from gcvae_cli.files.conditions import number_of_rows, read_conditions, report_condition
from gcvae_cli.files.json_texts import read_schema
from gcvae_cli.files.temporary import own_temporary_folder
from gcvae_cli.outputs import (
    STANDARD_OUTPUT,
    answer,
    format_of,
    opened_output,
    refuse_two_answers,
    require_space,
    warn,
    write_text,
)
from gcvae_cli.progress import progress_bar, training_note
from gcvae_cli.rules import report_rule

if TYPE_CHECKING:
    import pandas as pd

    from gcvae.files.table_reader import TableReader
    from gcvae.schema.columns import TableSchema
    from gcvae.synthesizer import Synthesizer
    from gcvae.training.progress import Progress


def schema(
    table: opt.Table,
    output: opt.SchemaOutput = "-",
    schema_file: opt.SchemaFile = None,
    encoding: opt.Encoding = None,
    for_other_rows: Annotated[
        bool,
        typer.Option(
            "--for-other-rows",
            help="Write kinds, formats and stated rules only, for other rows of the same source:"
            " no limits, levels or decimals.",
        ),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Infer the schema of a table."""
    from gcvae import infer_schema

    inferred = infer_schema(opt.table_reader(table, encoding), read_schema(schema_file))
    whole = inferred.schema
    document = whole.for_other_rows() if for_other_rows else whole.to_json()
    warn(inferred.warnings)
    for found in inferred.rules:
        report_rule(found)
    if not as_json or output != STANDARD_OUTPUT:
        write_text(output, json.dumps(document, indent=2, ensure_ascii=False))
    if as_json:
        answer({"schema": document, "warnings": inferred.warnings, "rules": inferred.rules})


def train(
    table: opt.Table,
    output: Annotated[str, typer.Option("--output", "-o", help="The model file (.gcvae).")],
    schema_file: opt.SchemaFile = None,
    encoding: opt.Encoding = None,
    preset: opt.PresetName = "default",
    assignments: opt.Assignments = None,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Train a model on a table, which may be larger than memory."""
    from gcvae import infer_schema
    from gcvae.training.settings import configure

    refuse_two_answers(output, as_json)
    format_of(output, opt.MODEL_FORMATS, standard_output="gcvae")
    settings = parse_assignments(assignments or ())
    configure(preset, settings)  # reports wrong settings before torch is loaded
    opt.check_device(device)
    known: TableSchema | dict[str, Any] | None = read_schema(schema_file)
    # Rows that are set aside must not influence the schema, nor must rows of a private training.
    is_inferred = not (settings.get("report_share") or settings.get("differential_privacy"))
    if is_inferred:
        inferred = infer_schema(opt.table_reader(table, encoding), known, rules=False)
        warn(inferred.warnings)
        known = inferred.schema
    opt.use_threads(threads)
    # An output file that cannot be written is reported before training.
    with opened_output(output) as stream, own_temporary_folder():
        synthesizer = _fit(
            opt.table_reader(table, encoding),
            table.name,
            schema=known,
            preset=preset,
            settings=settings,
            seed=seed,
            device=device,
        )
        stream.write(synthesizer.to_bytes())
    if not is_inferred:
        warn(synthesizer.table_notes)
    _report_training(synthesizer, output, as_json)


def sample(
    model: opt.ModelFile,
    output: opt.TableOutput,
    rows: opt.RowCount = None,
    given: opt.Given = None,
    given_rows: opt.GivenRows = None,
    distribution: opt.Distribution = None,
    encoding: opt.Encoding = None,
    seed: opt.FreshSeed = None,
    escape_formulas: opt.EscapeFormulas = False,
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Generate synthetic rows."""
    from gcvae.files.table_stream import stream_table

    table_format = _table_format(output, as_json)
    conditions = read_conditions(given, given_rows, distribution, encoding)
    rows = number_of_rows(rows, conditions.get("given_rows"))
    synthesizer = opt.load_model(model, threads)
    is_fresh, seed = seed is None, fresh_seed() if seed is None else seed
    sampler = synthesizer.sampler(seed, **conditions) if conditions else None
    summary = {} if sampler is None else sampler.summary(rows)
    report_condition(summary)
    notes = synthesizer.notes(rows)
    warn(tuple(notes))
    with progress_bar("sampling") as bar, opened_output(output) as stream:

        def show(fraction: float, note: str) -> None:
            bar.move(fraction, note)
            require_space(output, _bytes_to_come(stream, fraction))

        drawn = synthesizer.sample_blocks(rows, seed) if sampler is None else sampler.blocks(rows)
        blocks = _watched(drawn, rows, show)
        file = partial(stream_table, blocks, synthesizer.schema, escape_formulas=escape_formulas)
        _write(file, stream, table_format)
    if is_fresh:
        print(f"gcvae: the seed is {seed}; --seed {seed} generates the same rows", file=sys.stderr)
    if as_json:
        answer({"output": output, "rows": rows, "seed": seed, **summary, "notes": notes})


def impute(
    model: opt.ModelFile,
    table: opt.Table,
    output: opt.TableOutput,
    draws: opt.Completions = 1,
    columns: opt.FilledColumns = None,
    keep_missing: opt.KeptMissing = None,
    encoding: opt.Encoding = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Impute missing values; known cells are not changed."""
    from gcvae.sampling.filled_columns import read_names
    from gcvae.sampling.imputation_stream import stream_completed

    filled = None if columns is None else read_names(columns, "--columns")
    kept = None if keep_missing is None else read_names(keep_missing, "--keep-missing")
    table_format = _table_format(output, as_json)
    synthesizer, reader = opt.load_model(model, threads), opt.table_reader(table, encoding)
    completed = synthesizer.impute_blocks(
        reader, draws=draws, seed=seed, columns=filled, keep_missing=kept
    )
    with progress_bar(f"imputing {table.name}") as bar, opened_output(output) as stream:
        blocks = _watched_reader(completed, reader, bar.move, draws)
        _write(partial(stream_completed, blocks, synthesizer.schema), stream, table_format)
    if as_json:
        rows = reader.rows * draws
        answer({"output": output, "rows": rows, "draws": draws, "seed": seed})


def score(
    model: opt.ModelFile,
    table: opt.Table,
    output: opt.TableOutput,
    draws: opt.ScoreDraws = None,
    tolerance: opt.Tolerance = None,
    measure: opt.Measure = "density",
    score_missingness: opt.ScoreMissingness = False,
    encoding: opt.Encoding = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Score rows: the log-likelihood of each row in nats, with the contribution of each column."""
    from gcvae.files.parquet_files import write_parquet
    from gcvae.scoring.score_options import ScoreOptions
    from gcvae.scoring.score_stream import added_to_totals, new_totals, stream_scores

    table_format = _table_format(output, as_json)
    options = ScoreOptions(draws, seed, measure, score_missingness, tolerance)
    scorer, reader = opt.load_model(model, threads).scorer, opt.table_reader(table, encoding)
    totals = new_totals(scorer.scoring)
    with progress_bar(f"scoring {table.name}") as bar, opened_output(output) as stream:
        blocks = _watched_reader(scorer.blocks(reader, options), reader, bar.move)
        if table_format == "parquet":
            write_parquet(added_to_totals(blocks, totals), stream)
        else:
            _write(partial(stream_scores, blocks, heading={}, totals=totals), stream, table_format)
    if as_json:
        heading = scorer.heading(options)
        answer({"output": output, **heading, "totals": totals.to_json()})


def encode(
    model: opt.ModelFile,
    table: opt.Table,
    output: opt.TableOutput,
    encoding: opt.Encoding = None,
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Encode rows: posterior mean and standard deviation in the latent space."""
    from gcvae.files.parquet_files import write_parquet
    from gcvae.latent.encoding_stream import stream_encodings

    table_format = _table_format(output, as_json)
    synthesizer, reader = opt.load_model(model, threads), opt.table_reader(table, encoding)
    with progress_bar(f"encoding {table.name}") as bar, opened_output(output) as stream:
        blocks = _watched_reader(synthesizer.encode_blocks(reader), reader, bar.move)
        if table_format == "parquet":
            write_parquet(blocks, stream)
        else:
            _write(partial(stream_encodings, blocks, heading={}), stream, table_format)
    if as_json:
        answer({"output": output, "rows": reader.rows})


def export(
    model: opt.ModelFile,
    output: opt.ModelOutput,
    minimal: opt.Minimal = False,
    scoring: opt.Scoring = None,
    threads: opt.Threads = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Write a model file to share: minimal, or with restricted scoring."""
    refuse_two_answers(output, as_json)
    format_of(output, opt.MODEL_FORMATS, standard_output="gcvae")
    synthesizer = opt.load_model(model, threads)
    content = synthesizer.to_bytes(minimal=minimal, scoring=scoring)
    with opened_output(output) as stream:
        stream.write(content)
    if as_json:
        answer({"output": output, "minimal": minimal, "bytes": len(content)})


def settings(
    output: Annotated[str, typer.Option("--output", "-o", help="A file; - prints.")] = "-",
) -> None:
    """Print all settings with their values in each preset."""
    from gcvae_cli.files.settings_page import settings_page

    write_text(output, settings_page())


def _table_format(output: str, as_json: bool) -> str:
    """Returns the format of the output table, by its extension; csv for standard output.

    Raises:
        WrongUsageError: The extension is not supported, or the table and the JSON of `--json` would
            both go to standard output.
    """
    refuse_two_answers(output, as_json)
    return format_of(output, opt.TABLE_FORMATS, standard_output="csv")


def _fit(table: TableReader, title: str, **choices: Any) -> Synthesizer:
    from gcvae import Synthesizer

    with progress_bar(f"training on {title}") as bar:

        def show(progress: Progress) -> None:
            bar.move(progress.fraction, training_note(dataclasses.asdict(progress)))

        return Synthesizer.fit(table, progress=show, **choices)


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
    """Yields the blocks of a result; after each, the progress bar shows how much input is done.

    Args:
        move: Function that moves the bar to a fraction, with a note.
        lines_per_row: Number of lines in the result for each row of the input.
    """
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        rows = done // lines_per_row
        move(reader.fraction * rows / reader.rows, f"{rows:,} rows")


def _bytes_to_come(stream: BinaryIO, fraction: float) -> float:
    """Estimates the bytes still to be written, from the finished fraction of rows; 0 for a pipe."""
    return stream.tell() * (1.0 - fraction) / fraction if stream.seekable() else 0.0


def _write(stream_as: Callable[..., Iterable[bytes]], stream: BinaryIO, table_format: str) -> None:
    """Writes the table that `stream_as` returns as chunks of bytes.

    For formats such as csv.gz, gzip stores no time stamp, so equal tables give equal files.
    """
    chunks = stream_as(format=table_format.removesuffix(".gz"))
    if not table_format.endswith(".gz"):
        stream.writelines(chunks)
        return
    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
        packed.writelines(chunks)


def _report_training(synthesizer: Synthesizer, output: str, as_json: bool) -> None:
    record = synthesizer.training_record
    if as_json:
        answer({"model": output, "training": record})
        return
    _report_acceptance(record)
    if output != STANDARD_OUTPUT:
        print(
            f"wrote {output}: `gcvae sample {output} --rows 1000 -o synthetic.csv` generates rows"
        )


def _report_acceptance(record: Mapping[str, Any]) -> None:
    """Prints the share of generated rows that satisfy the hard rules, if there are such rules."""
    acceptance = record.get("hard_rule_acceptance")
    if acceptance is None:
        return
    each = ", ".join(f"{c['pointer']} {c['share']:.1%}" for c in acceptance["rules"])
    print(
        f"gcvae: {acceptance['share']:.1%} of the model's rows keep all hard rules ({each}); "
        "the others are replaced",
        file=sys.stderr,
    )
    for moved in acceptance["moved"]:
        print(
            f"gcvae: the hard rules change column {moved['column']!r}: {moved['cells']} is"
            f" {moved['before']:.1%} of the model's rows and {moved['after']:.1%} of those that"
            " satisfy them",
            file=sys.stderr,
        )
