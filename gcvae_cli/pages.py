"""The command that shows the pages of a service in the browser."""

from __future__ import annotations

import urllib.request
import webbrowser
from typing import Annotated

import typer

from gcvae_cli.errors import CommandError, WrongUsageError

_ANSWER_SECONDS = 5.0


def open_pages(
    server: Annotated[
        str, typer.Option("--server", metavar="URL", help="Of the service.")
    ] = "http://127.0.0.1:8000",
) -> None:
    """Show the pages of a running service in the browser."""
    if not server.startswith(("http://", "https://")):
        raise WrongUsageError(
            f"--server {server} is no address; one begins with http:// or https://"
        )
    url = server.rstrip("/") + "/"
    try:
        urllib.request.urlopen(f"{url}healthz", timeout=_ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CommandError(
            f"no service answers at {url} ({reason}): start one with `gcvae serve`, or name "
            "another with --server"
        ) from None
    print(url)
    webbrowser.open(url)
