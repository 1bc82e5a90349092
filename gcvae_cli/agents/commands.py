"""The command `gcvae mcp`, which serves the tools of a gcvae service to an AI agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcvae_cli.client.connection import LOCAL_SERVICE, KeyFile, ServerUrl, connected
from gcvae_cli.errors import NotInstalledError
from gcvae_cli.ports import free_port


def mcp(
    server: ServerUrl = LOCAL_SERVICE,
    key_file: KeyFile = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also allow uploads, training and new files.")
    ] = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="Also return cells: rows, levels, quantiles.")
    ] = False,
    folder: Annotated[
        Path,
        typer.Option(
            exists=True,
            file_okay=False,
            help="The only folder from which files are read, and to which rows are saved.",
        ),
    ] = Path(),
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve HTTP at http://127.0.0.1:PORT/mcp instead of standard input and output.",
        ),
    ] = None,
) -> None:
    """Serve a service's tools to an AI agent by the Model Context Protocol."""
    try:
        from gcvae_cli.agents.server import agent_server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "mcp":
            raise
        raise NotInstalledError(
            "`gcvae mcp` needs the package mcp, which is not installed; "
            "in the clone of gcvae, `pip install .[mcp]` brings it"
        ) from error
    with connected(server, key_file) as client:
        agents = agent_server(client, write=write, rows=rows, folder=folder)
        if http is None:
            agents.run()
        else:
            agents.run("streamable-http", port=free_port("127.0.0.1", http))
