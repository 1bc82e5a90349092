"""The variants of file commands that use a service (`--server`), such as `gcvae sample`.

Models are given by their id in the service, and tables by a file or by the id of a dataset.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcvae.numerics.seeds import MAX_SEED, fresh_seed
from gcvae_cli.assignments import parse_assignments
from gcvae_cli.client.connection import KeyFile, connected, write_fetched
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.files import options as opt
from gcvae_cli.files.conditions import number_of_rows, read_conditions
from gcvae_cli.files.json_texts import read_schema
from gcvae_cli.files.map_commands import map_as_csv
from gcvae_cli.inputs import existing_file
from gcvae_cli.outputs import (
    STANDARD_OUTPUT,
    answer,
    format_of,
    refuse_two_answers,
    warn,
    write_text,
)
from gcvae_cli.rules import report_rule

if TYPE_CHECKING:
    from gcvae_client import Client

_TEXTS = {ending: name for ending, name in opt.TABLE_FORMATS.items() if name != "parquet"}
"""File formats for scores and encodings, which a service does not return as Parquet."""

Server = Annotated[str, typer.Option("--server", metavar="URL", help="URL of the service.")]
TextOutput = Annotated[
    str, typer.Option("--output", "-o", help="The .csv or .csv.gz file, or - for standard output.")
]
ModelId = Annotated[
    str, typer.Argument(metavar="MODEL", help="The id of a model of the service (mdl_…).")
]
TableOrId = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A .csv, .csv.gz or .parquet file, or the id of a dataset (ds_…)."
    ),
]


def schema(
    table: TableOrId,
    server: Server,
    key_file: KeyFile = None,
    output: opt.SchemaOutput = "-",
    schema_file: opt.SchemaFile = None,
    encoding: opt.Encoding = None,
    as_json: opt.AsJson = False,
) -> None:
    """Upload a table, or use a dataset of the service, and print its schema."""
    with connected(server, key_file) as client:
        dataset = _dataset(client, table, schema_file, encoding)
        rules = client.rules(dataset)
    document = dataset["schema"]
    warn(tuple(dataset["warnings"]))
    for found in rules:
        report_rule(found)
    if not as_json or output != STANDARD_OUTPUT:
        write_text(output, json.dumps(document, indent=2, ensure_ascii=False))
    if as_json:
        noted = {"warnings": dataset["warnings"], "rules": rules}
        answer({"dataset": dataset["id"], "schema": document, **noted})


def train(
    table: TableOrId,
    server: Server,
    key_file: KeyFile = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Also download the model to this file (.gcvae)."),
    ] = None,
    schema_file: opt.SchemaFile = None,
    encoding: opt.Encoding = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the model in the service. [default: the name of the table]"),
    ] = None,
    preset: opt.PresetName = "default",
    assignments: opt.Assignments = None,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    as_json: opt.AsJson = False,
) -> None:
    """Train a model in the service on a table or dataset; prints the id of the model."""
    if output is not None:
        refuse_two_answers(output, as_json)
        format_of(output, opt.MODEL_FORMATS, standard_output="gcvae")
    settings: dict[str, Any] = parse_assignments(assignments or ())
    with connected(server, key_file) as client:
        dataset = _dataset(client, table, schema_file, encoding)
        model = client.train(
            dataset, name=name, preset=preset, seed=seed, device=device, **settings
        )
        _say(f"training {model['id']}; the training continues if this command ends")
        client.wait(model)
        model = client.model(model)
        if output is not None:
            write_fetched(output, "gcvae", lambda path: client.download_model(model, path))
    if as_json:
        answer({"model": model["id"], "dataset": dataset["id"], "training": model["record"]})
    elif output != STANDARD_OUTPUT:
        print(model["id"])


def sample(
    model: ModelId,
    server: Server,
    output: opt.TableOutput,
    key_file: KeyFile = None,
    rows: opt.RowCount = None,
    given: opt.Given = None,
    given_rows: opt.GivenRows = None,
    distribution: opt.Distribution = None,
    encoding: opt.Encoding = None,
    seed: opt.FreshSeed = None,
    escape_formulas: opt.EscapeFormulas = False,
    as_json: opt.AsJson = False,
) -> None:
    """Generate synthetic rows in the service."""
    output_format = _table_format(output, as_json)
    conditions = read_conditions(given, given_rows, distribution, encoding)
    rows = number_of_rows(rows, conditions.get("given_rows"))
    is_fresh, seed = seed is None, fresh_seed() if seed is None else seed
    choices = {"seed": seed, "escape_formulas": escape_formulas, **conditions}
    _write_table(server, key_file, output, output_format, "sample", model, rows, **choices)
    if is_fresh:
        _say(f"the seed is {seed}; --seed {seed} generates the same rows")
    if as_json:
        answer({"output": output, "rows": rows, "seed": seed})


def score(
    model: ModelId,
    table: opt.Table,
    server: Server,
    output: TextOutput,
    key_file: KeyFile = None,
    draws: opt.ScoreDraws = None,
    tolerance: opt.Tolerance = None,
    measure: opt.Measure = "density",
    score_missingness: opt.ScoreMissingness = False,
    encoding: opt.Encoding = None,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Score rows: the log-likelihood of each in nats, with the contribution of each column."""
    output_format = _table_format(output, as_json, _TEXTS)
    options = {"draws": draws, "tolerance": tolerance, "measure": measure}
    options |= {"score_missingness": score_missingness, "seed": seed, "encoding": encoding}
    _write_table(server, key_file, output, output_format, "score", model, table, **options)
    if as_json:
        answer({"output": output, **options})


def impute(
    model: ModelId,
    table: opt.Table,
    server: Server,
    output: opt.TableOutput,
    key_file: KeyFile = None,
    draws: opt.Completions = 1,
    columns: opt.FilledColumns = None,
    keep_missing: opt.KeptMissing = None,
    encoding: opt.Encoding = None,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Impute missing values; known cells are not changed."""
    from gcvae.sampling.filled_columns import read_names

    output_format = _table_format(output, as_json)
    options: dict[str, Any] = {"draws": draws, "seed": seed, "encoding": encoding}
    options["columns"] = None if columns is None else read_names(columns, "--columns")
    kept = None if keep_missing is None else read_names(keep_missing, "--keep-missing")
    options["keep_missing"] = kept
    _write_table(server, key_file, output, output_format, "impute", model, table, **options)
    if as_json:
        answer({"output": output, "draws": draws, "seed": seed})


def encode(
    model: ModelId,
    table: opt.Table,
    server: Server,
    output: TextOutput,
    key_file: KeyFile = None,
    encoding: opt.Encoding = None,
    as_json: opt.AsJson = False,
) -> None:
    """Encode rows: posterior mean and standard deviation in the latent space."""
    output_format = _table_format(output, as_json, _TEXTS)
    _write_table(server, key_file, output, output_format, "encode", model, table, encoding=encoding)
    if as_json:
        answer({"output": output})


def dependencies(
    model: ModelId,
    server: Server,
    output: opt.MapOutput,
    key_file: KeyFile = None,
    kind: opt.MapKind = None,
    row: opt.MapRow = None,
    z: opt.MapPlace = None,
    order: opt.MapOrder = None,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Map the dependencies between columns (Kendall's tau)."""
    output_format = format_of(output, opt.MAP_FORMATS, standard_output="json")
    point = {"row": opt.read_option("--row", row, dict), "z": opt.read_option("--z", z, list)}
    is_local = point["row"] is not None or point["z"] is not None
    if is_local and kind not in (None, "local"):
        raise WrongUsageError(f"--kind {kind}: --row and --z are for the local map")
    choices = {"seed": seed, "order": order, **point}
    _check_model(model)
    with connected(server, key_file) as client:
        if output_format in ("png", "svg"):
            picture = {"format": output_format, **choices}
            write_fetched(
                output,
                output_format,
                lambda to: client.dependencies(model, kind or "expected", to=to, **picture),
            )
        if output_format in ("json", "csv") or as_json:
            document = client.dependencies(model, kind or "expected", **choices)
            assert isinstance(document, dict)
            _write_map(document, output, output_format, as_json)


def manifold(
    model: ModelId,
    server: Server,
    output: opt.ManifoldOutput,
    key_file: KeyFile = None,
    steps: opt.GridSteps = 15,
    as_json: opt.AsJson = False,
) -> None:
    """Plot the decoder's output over a two-dimensional latent space (d_latent 2)."""
    output_format = format_of(output, opt.MANIFOLD_FORMATS, standard_output="json")
    _check_model(model)
    with connected(server, key_file) as client:
        if not as_json or output != STANDARD_OUTPUT:
            write_fetched(
                output,
                output_format,
                lambda to: client.manifold(model, steps=steps, format=output_format, to=to),
            )
        if as_json:
            answer({"output": output, "manifold": client.manifold(model, steps=steps)})


def report(
    model: ModelId,
    server: Server,
    output: opt.ReportOutput,
    key_file: KeyFile = None,
    real: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Make a new report: the training table, a file or ds_…."
        ),
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Make a new report: rows that were not used in training."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Make a new report: a target column; repeatable."),
    ] = None,
    encoding: opt.Encoding = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help="Make a new report with this seed.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Get the report of a model, or make a new one: fidelity, utility and privacy."""
    refuse_two_answers(output, as_json)
    output_format = format_of(output, opt.REPORT_FORMATS, standard_output="json")
    _check_model(model)
    with connected(server, key_file) as client:
        if any(given is not None for given in (real, holdout, target, seed)):
            tables: dict[str, Any] = {
                name: None if table is None else _dataset(client, table, None, encoding)
                for name, table in (("dataset", real), ("holdout", holdout))
            }
            made = client.make_report(model, columns=target, seed=seed or 0, **tables)
            client.wait(made)
        document = client.report(model)
        write_fetched(
            output, output_format, lambda path: client.report(model, format=output_format, to=path)
        )
    assert isinstance(document, dict)
    parts = {name: document[name] for name in ("fidelity", "utility", "likelihood", "privacy")}
    if as_json:
        verdicts = {name: part["verdict"] for name, part in parts.items()}
        answer({"output": output, "verdicts": verdicts})
    elif output != STANDARD_OUTPUT:
        for name, part in parts.items():
            print(f"{name}: {part['verdict'].replace('_', ' ')}. {part['sentence']}")


def export(
    model: ModelId,
    server: Server,
    output: opt.ModelOutput,
    key_file: KeyFile = None,
    minimal: opt.Minimal = False,
    scoring: opt.Scoring = None,
    as_json: opt.AsJson = False,
) -> None:
    """Download a model of the service."""
    refuse_two_answers(output, as_json)
    format_of(output, opt.MODEL_FORMATS, standard_output="gcvae")
    _check_model(model)
    with connected(server, key_file) as client:
        save = partial(client.download_model, model, minimal=minimal, scoring=scoring)
        write_fetched(output, "gcvae", save)
    if as_json:
        answer({"output": output, "minimal": minimal, "scoring": scoring})


def _dataset(client: Client, table: str, schema_file: Path | None, encoding: str | None) -> Any:
    """Returns the dataset of the service that a command is to use.

    Args:
        table: Id of a dataset (`ds_…`), or path of a file, which is uploaded as a new dataset.
        schema_file: Path of a schema, which replaces the schema of the dataset or is uploaded with
            the file; None for none.
    """
    given = read_schema(schema_file)
    if table.startswith("ds_"):
        return client.dataset(table) if given is None else client.replace_schema(table, given)
    existing_file(Path(table))
    dataset = client.upload(table, schema=given, encoding=encoding)
    _say(f"uploaded {table}: {dataset['id']}, {dataset['rows']:,} rows")
    return dataset


def _check_model(model: str) -> None:
    if Path(model).is_file():
        raise WrongUsageError(
            f"{model} is a file; `gcvae import {model}` imports it into the service and prints its "
            "id"
        )
    if not model.startswith("mdl_"):
        raise WrongUsageError(
            f"{model} is not the id of a model (mdl_…); `gcvae list models` lists them"
        )


def _table_format(output: str, as_json: bool, formats: dict[str, str] = opt.TABLE_FORMATS) -> str:
    refuse_two_answers(output, as_json)
    return format_of(output, formats, standard_output="csv")


def _write_table(
    server: str, key_file: Path | None, output: str, output_format: str, verb: str, model: str,
    *given: Any,
    **options: Any,
) -> None:  # fmt: skip
    """Calls a method of the Python client (`verb`) and writes the table that it returns.

    `given` and `options` are its arguments besides `model` and the format, such as csv or csv.gz.
    """
    _check_model(model)
    with connected(server, key_file) as client:
        call = getattr(client, verb)
        options["format"] = output_format.removesuffix(".gz")
        write_fetched(output, output_format, lambda to: call(model, *given, to=to, **options))


def _write_map(document: dict[str, Any], output: str, output_format: str, as_json: bool) -> None:
    if output_format == "csv":
        write_text(output, map_as_csv(document))
    elif output_format == "json" and (not as_json or output != STANDARD_OUTPUT):
        write_text(output, json.dumps(document, indent=2, ensure_ascii=False))
    if as_json:
        answer({"output": output, "map": document})


def _say(line: str) -> None:
    print(f"gcvae: {line}", file=sys.stderr, flush=True)
