"""The command `gcvae open`, which opens a service's pages in the browser."""

from __future__ import annotations

import urllib.request
import webbrowser

from gcvae_cli.client.connection import LOCAL_SERVICE, ServerUrl, check_address
from gcvae_cli.errors import CommandError

_ANSWER_SECONDS = 5.0


def open_pages(server: ServerUrl = LOCAL_SERVICE) -> None:
    """Open the pages of a running service in the browser."""
    check_address(server)
    url = server.rstrip("/") + "/"
    try:
        urllib.request.urlopen(f"{url}healthz", timeout=_ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CommandError(
            f"no service responds at {url} ({reason}); start one with `gcvae serve`, or give "
            "another URL with --server"
        ) from None
    print(url)
    webbrowser.open(url)
