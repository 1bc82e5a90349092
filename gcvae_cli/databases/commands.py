"""The command `gcvae clone`, which generates a synthetic copy of a database or folder of files."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from gcvae.errors import MissingPackageError
from gcvae.numerics.seeds import MAX_SEED
from gcvae_cli.assignments import parse_assignments
from gcvae_cli.databases.folders import document_of, files_of, write_folder
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.files.json_texts import read_schema
from gcvae_cli.files.options import (
    AsJson,
    Assignments,
    Device,
    PresetName,
    SchemaFile,
    Threads,
    check_device,
    use_threads,
)
from gcvae_cli.outputs import answer
from gcvae_cli.progress import progress_bar


def clone(
    source: Annotated[
        str, typer.Argument(help="A folder of CSV or Parquet files, or an SQLAlchemy URL.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="A new folder, a new SQLite file, or a URL."),
    ] = None,
    schema_file: SchemaFile = None,
    model: Annotated[
        Path | None, typer.Option(help="Also save the model to this file (.gcvae).")
    ] = None,
    scale: Annotated[float, typer.Option(help="Rows as a multiple of the real tables.")] = 1.0,
    invalid_references: Annotated[
        str,
        typer.Option(
            help=(
                "Rows whose foreign key refers to no row: refuse the database, drop the "
                "rows, or set the key to null."
            )
        ),
    ] = "refuse",
    keys: Annotated[
        bool, typer.Option("--keys", help="Print the tables and keys as JSON and exit.")
    ] = False,
    preset: PresetName = "default",
    assignments: Assignments = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=MAX_SEED, help="Random seed; the same seed gives the same rows."),
    ] = 0,
    device: Device = "auto",
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Generate a synthetic copy of a database: the same tables, columns and keys."""
    from gcvae.training.settings import configure

    settings = parse_assignments(assignments or ())
    configure(preset, settings)
    check_device(device)
    if not output and not keys:
        raise WrongUsageError("--output is missing (expected: a folder, a file or a URL)")
    if scale <= 0:
        raise WrongUsageError(f"--scale is {scale:g} (expected: a number above 0)")
    if model is not None and model.suffix != ".gcvae":
        raise WrongUsageError(f"--model is {model} (expected: a name that ends in .gcvae)")
    tables, document, write = _opened(source, output)
    document = _merged(document, read_schema(schema_file))
    use_threads(threads)
    if keys:
        print(json.dumps(_inferred(tables, document), indent=2, ensure_ascii=False))
        return
    from gcvae.linked.database_synthesizer import DatabaseSynthesizer

    names = list(tables)
    with progress_bar("training") as bar:

        def show(name: str, fraction: float) -> None:
            at = names.index(name) if name in names else 0
            bar.move((at + fraction) / len(names), name)

        synthesizer = DatabaseSynthesizer.fit(
            tables,
            schema=document,
            preset=preset,
            settings=settings,
            seed=seed,
            device=device,
            invalid_references=invalid_references,
            progress=show,
        )
    for name, how in synthesizer.plans.items():
        print(f"gcvae: {name}: {how}", file=sys.stderr)
    drawn = synthesizer.sample(scale=scale, seed=seed)
    if model is not None:
        synthesizer.save(model)
    write(drawn, synthesizer.schemas)
    if as_json:
        rows = {name: len(frame) for name, frame in drawn.items()}
        answer({"output": output, "rows": rows, "plans": synthesizer.plans, "seed": seed})


def _opened(source: str, output: str | None) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Returns (tables by name, schema with the declared keys, function that writes the copy).

    The tables are paths of files for a folder, and data frames for a database. If `output` is None,
    no copy is written.

    Raises:
        WrongUsageError: The source does not exist, or the output exists or does not fit the source.
    """
    if "://" not in source:
        folder = Path(source)
        if not folder.is_dir():
            message = f"{source}: no folder"
            raise WrongUsageError(f"{message} (expected: a folder of files, or a database's URL)")
        files = files_of(folder)
        if "://" in (output or ""):
            raise WrongUsageError(f"{output}: files go into a folder (expected: a new folder)")
        target = Path(output or ".")
        if output is not None and target.exists():
            raise WrongUsageError(f"{output}: there is such a folder (expected: a new one)")
        tables = {name: str(path) for name, path in files.items()}
        write = partial(write_folder, target, files)
        return tables, document_of(files), write
    try:
        from gcvae_sources.databases import read_database, write_database
    except ModuleNotFoundError as error:
        raise MissingPackageError("databases", "sqlalchemy", "databases") from error
    frames, document, metadata = read_database(source)
    for table in metadata.tables.values():
        for column in table.columns:
            if column.name not in frames[table.name]:
                words = f"{table.name}.{column.name}: {column.type} is not modelled"
                print(f"gcvae: {words}; written as NULL", file=sys.stderr)
    url = output if output is None or "://" in output else f"sqlite:///{output}"
    if url is not None and url.startswith("sqlite:///") and Path(url[10:]).exists():
        raise WrongUsageError(f"{url[10:]}: there is such a file (expected: a new one)")
    return frames, document, lambda drawn, _: write_database(str(url), drawn, metadata)


def _merged(document: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the schema read from the database or folder, overridden by the user's schema
    `given`."""
    if given is None:
        return document
    said = given.get("tables", {})
    tables = {n: {**found, **said.get(n, {})} for n, found in document["tables"].items()}
    return {**document, **given, "tables": {**said, **tables}}


def _inferred(tables: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema (JSON) of all tables, including inferred keys."""
    from gcvae.cells.data_frames import data_frame
    from gcvae.files.tables import read_table
    from gcvae.linked.database_fit import completed_schema

    frames = {
        name: read_table(table, may_be_empty=True) if isinstance(table, str) else data_frame(table)
        for name, table in tables.items()
    }
    return completed_schema(frames, document)[0].to_json()
