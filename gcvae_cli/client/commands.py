"""Commands that ask a service: one that runs, or one of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gcvae.numerics.seeds import MAX_SEED
from gcvae_cli.assignments import parse_assignments
from gcvae_cli.client.errors import client_errors
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.files.options import Encoding

KeyFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="File with the API key, where it needs one."),
]
LOCAL_SERVICE = "http://127.0.0.1:8000"

ServerUrl = Annotated[
    str, typer.Option("--server", metavar="URL", help="Of the service; `gcvae serve`'s if none.")
]


def import_(
    model: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="A trained model, model.gcvae."),
    ],
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    name: Annotated[
        str | None, typer.Option(help="Of the model there; the file's name if none.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, for scripts.")] = False,
) -> None:
    """Bring a trained model into a service, which tries it out and has it ready at once."""
    from gcvae_client import Client

    key = None if key_file is None else key_file.read_text(encoding="utf-8").strip()
    with client_errors(), Client(server, api_key=key) as client:
        brought = client.import_model(model, name=name)
    print(json.dumps(brought, ensure_ascii=False) if as_json else brought["id"])


def demo(
    table: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Your table; the diabetes table if none."),
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
    """Go the whole way on one table: upload, train, sample, score, map."""
    from gcvae_cli.client.demo import run_demo

    if encoding is not None and table is None:
        raise WrongUsageError("--encoding is of your own table; name it, as --table FILE")
    settings = parse_assignments(assignments or ())
    run_demo(table, output, encoding=encoding, settings=settings, seed=seed)
