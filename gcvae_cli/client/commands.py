"""Commands that use a service: a running one, or one of their own."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from gcvae.numerics.seeds import MAX_SEED
from gcvae_cli.assignments import parse_assignments
from gcvae_cli.client.connection import LOCAL_SERVICE, KeyFile, ServerUrl, connected
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.files.options import Encoding
from gcvae_cli.inputs import existing_file


def import_(
    model: Annotated[
        Path,
        typer.Argument(callback=existing_file, help="A trained model, model.gcvae."),
    ],
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    name: Annotated[
        str | None, typer.Option(help="Of the model there; the file's name if none.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, for scripts.")] = False,
) -> None:
    """Import a trained model into a service, which validates it and has it ready at once."""
    with connected(server, key_file) as client:
        brought = client.import_model(model, name=name)
    print(json.dumps(brought, ensure_ascii=False) if as_json else brought["id"])


class Restriction(StrEnum):
    """Scores that a restricted model gives."""

    FLAG = "flag"
    OFF = "off"


def restrict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The id of a model, mdl_….")],
    scoring: Annotated[
        Restriction,
        typer.Option(help="flag: of each row only whether it is rare; off: no scores at all."),
    ],
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, for scripts.")] = False,
) -> None:
    """Restrict the scores that a service's model gives. This can not be undone."""
    with connected(server, key_file) as client:
        changed = client.restrict_scoring(model, scoring.value)
    print(json.dumps(changed, ensure_ascii=False) if as_json else changed["scoring"])


class Listed(StrEnum):
    """Resources that can be listed."""

    DATASETS = "datasets"
    MODELS = "models"
    JOBS = "jobs"


def list_(
    what: Annotated[Listed, typer.Argument(help="datasets, models or jobs.")],
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    rows: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 50,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every document whole, one in a line.")
    ] = False,
) -> None:
    """List a service's datasets, models or jobs."""
    with connected(server, key_file) as client:
        found = list(islice(getattr(client, what.value)(), rows))
    if as_json:
        for document in found:
            print(json.dumps(document, ensure_ascii=False))
        return
    told = [_told(document) for document in found]
    widths = [max(map(len, cells)) for cells in zip(*told, strict=True)]
    for cells in told:
        print("  ".join(map(str.ljust, cells, widths)).rstrip())
    if not found:
        print(f"gcvae: {server} has no {what.value}", file=sys.stderr)


def _told(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the columns of a list for a dataset, a model or a job."""
    made = document["created_at"][:16].replace("T", " ")
    if "rows" in document:
        size = f"{document['rows']:,} rows × {document['columns']} columns"
        return document["id"], made, size, document["name"]
    return document["id"], made, document["status"], document.get("name") or document["kind"]


def demo(
    table: Annotated[
        Path | None,
        typer.Option(callback=existing_file, help="Your table; the diabetes table if none."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the results: demo-out, of your own table demo-out/NAME, if none.",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One training setting; repeatable."),
    ] = None,
    encoding: Encoding = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED)] = 0,
) -> None:
    """Run all steps on one table: upload, train, sample, score, map."""
    from gcvae_cli.client.demo import run_demo

    if encoding is not None and table is None:
        raise WrongUsageError("--encoding is of your own table; name it, as --table FILE")
    settings = parse_assignments(assignments or ())
    run_demo(table, output, encoding=encoding, settings=settings, seed=seed)
