"""Commands that exist for services only: `import`, `restrict`, `list` and `demo`."""

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
        typer.Argument(callback=existing_file, help="A trained model (.gcvae)."),
    ],
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the model in the service. [default: the name of the file]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Import a trained model into a service, which tests it first."""
    with connected(server, key_file) as client:
        brought = client.import_model(model, name=name)
    print(json.dumps(brought, ensure_ascii=False) if as_json else brought["id"])


class Restriction(StrEnum):
    """What a restricted model may tell about rows: only whether each row is rare (`flag`), or
    nothing (`off`)."""

    FLAG = "flag"
    OFF = "off"


def restrict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The id of a model, mdl_….")],
    scoring: Annotated[
        Restriction,
        typer.Option(help="flag: only whether each row is rare; off: no scores."),
    ],
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Restrict the scoring of a model of a service. This cannot be undone."""
    with connected(server, key_file) as client:
        changed = client.restrict_scoring(model, scoring.value)
    print(json.dumps(changed, ensure_ascii=False) if as_json else changed["scoring"])


class Listed(StrEnum):
    """Kinds of resources that `gcvae list` shows."""

    DATASETS = "datasets"
    MODELS = "models"
    JOBS = "jobs"


def list_(
    what: Annotated[Listed, typer.Argument(help="datasets, models or jobs.")],
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    rows: Annotated[int, typer.Option(min=1, help="Maximum number of entries, newest first.")] = 50,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the full document of each entry, one per line.")
    ] = False,
) -> None:
    """List the datasets, models or jobs of a service."""
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
    """Returns the cells of one line of `gcvae list`: id, time of creation, size or status, and name
    or kind. `document` is a dataset, model or job as JSON."""
    made = document["created_at"][:16].replace("T", " ")
    if "rows" in document:
        size = f"{document['rows']:,} rows × {document['columns']} columns"
        return document["id"], made, size, document["name"]
    return document["id"], made, document["status"], document.get("name") or document["kind"]


def demo(
    table: Annotated[
        Path | None,
        typer.Option(
            callback=existing_file, help="The table. [default: the diabetes table of scikit-learn]"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the results. [default: demo-out, or demo-out/NAME with --table]",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override one training setting; repeatable."
        ),
    ] = None,
    encoding: Encoding = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED)] = 0,
) -> None:
    """Demonstrate gcvae on one table: upload, train, generate, score, map."""
    from gcvae_cli.client.demo import run_demo

    if encoding is not None and table is None:
        raise WrongUsageError("--encoding needs --table FILE")
    settings = parse_assignments(assignments or ())
    run_demo(table, output, encoding=encoding, settings=settings, seed=seed)
