"""Connects a command to a service and writes the service's responses to files."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcvae_cli.client.errors import client_errors
from gcvae_cli.errors import WrongUsageError
from gcvae_cli.inputs import existing_file
from gcvae_cli.outputs import opened_output

if TYPE_CHECKING:
    from gcvae_client import Client

LOCAL_SERVICE = "http://127.0.0.1:8000"

KeyFile = Annotated[
    Path | None,
    typer.Option(
        callback=existing_file, help="File with the API key, if the service requires one."
    ),
]
ServerUrl = Annotated[
    str,
    typer.Option(
        "--server", metavar="URL", help="URL of the service. [default: that of `gcvae serve`]"
    ),
]


@contextmanager
def connected(server: str, key_file: Path | None) -> Iterator[Client]:
    """Context manager that yields a client of the service at the URL `server`.

    Args:
        key_file: File that contains the API key; None if the service requires none.

    Raises:
        WrongUsageError: The URL is invalid, or the file contains no API key.
        CommandError: A call of the service failed.
    """
    from gcvae_client import Client

    check_address(server)
    with client_errors(), Client(server, api_key=_key_in(key_file)) as client:
        yield client


def check_address(server: str) -> None:
    """Raises a WrongUsageError if the address of a service has no scheme http or https."""
    if not server.startswith(("http://", "https://")):
        raise WrongUsageError(
            f"--server {server} is not a URL; it must begin with http:// or https://"
        )


def _key_in(key_file: Path | None) -> str | None:
    if key_file is None:
        return None
    try:
        key = key_file.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        key = ""
    if not key or len(key.split()) > 1:
        raise WrongUsageError(
            f"--key-file {key_file}: contains no API key; "
            "create one with `gcvae keys create --workspace NAME`"
        )
    return key


def write_fetched(output: str, output_format: str, fetch: Callable[[Path], object]) -> None:
    """Downloads a response to a temporary file and then writes it to the output.

    Args:
        output: Path of the output file; `-` is standard output.
        output_format: Format of the output, such as csv or csv.gz.
        fetch: Function that saves the response at a path, in the format of the path's extension.
    """
    with opened_output(output) as stream, tempfile.TemporaryDirectory() as folder:
        fetched = Path(folder) / f"answer.{output_format.removesuffix('.gz')}"
        fetch(fetched)
        with fetched.open("rb") as content:
            if not output_format.endswith(".gz"):
                shutil.copyfileobj(content, stream)
                return
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                shutil.copyfileobj(content, packed)
