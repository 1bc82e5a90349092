"""Extends commands on files to tables in databases, in buckets and in other formats."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from gcvae.files.temporary_files import temporary_files
from gcvae_cli.files.options import TableOutput
from gcvae_cli.outputs import shown_as
from gcvae_cli.sources.fetching import fetched
from gcvae_cli.sources.storing import IfExists, local_output, require_writable, store
from gcvae_sources.urls import hidden_password

_Source = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table: a .csv, .csv.gz, .parquet, .xlsx, .ods, .jsonl or .avro file, an s3:// "
        "or https:// URL, or the URL of a database, with --table or --query.",
    ),
]
_READING = {
    "table_name": Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="Table of a database, or sheet."),
    ],
    "query": Annotated[
        str | None,
        typer.Option("--query", metavar="SQL", help="SELECT statement for a database."),
    ],
}
_WRITING = {
    "into": Annotated[
        str | None,
        typer.Option(
            "--into", metavar="NAME", help="Table to write, if --output is a database's URL."
        ),
    ],
    "if_exists": Annotated[
        IfExists, typer.Option(help="What to do if that table exists.", show_default=True)
    ],
}


def with_sources(verb: Callable[..., None]) -> Callable[..., None]:
    """Returns a command whose input table may be in a database, in a bucket, on a web server or in
    another format, and whose output may be a table of a database or an object in a bucket.

    Args:
        verb: Command on files. Its parameter `table`, if it has one, is a path; its parameter
            `output` is a file's name.
    """
    parameters = dict(inspect.signature(verb, eval_str=True).parameters)
    reads = "table" in parameters
    writes = parameters["output"].annotation == TableOutput
    if not (reads or writes):
        return verb
    if reads:
        parameters["table"] = parameters["table"].replace(annotation=_Source)
    more = (_READING if reads else {}) | (_WRITING if writes else {})
    for name, annotation in more.items():
        default = IfExists.FAIL if name == "if_exists" else None
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
        )

    @wraps(verb)
    def run(**given: Any) -> None:
        name, query = given.pop("table_name", None), given.pop("query", None)
        into, if_exists = given.pop("into", None), given.pop("if_exists", IfExists.FAIL)
        output = given["output"]
        with temporary_files("gcvae-source-") as folder:
            if writes:
                require_writable(output, into, if_exists)
                given["output"] = local_output(output, folder)
            if reads:
                given["table"] = fetched(given["table"], name, query, folder)
            with shown_as(given["output"], hidden_password(output)):
                verb(**given)
            if given["output"] != output:
                store(Path(given["output"]), output, into, if_exists)

    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: found.annotation for name, found in parameters.items()}
    return run
