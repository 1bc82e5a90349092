"""Defines the `gcvae` command with all its subcommands."""

from __future__ import annotations

import typer

from gcvae_cli.agents.commands import mcp
from gcvae_cli.client import commands as client_commands
from gcvae_cli.client import verbs as client_verbs
from gcvae_cli.databases import commands as database_commands
from gcvae_cli.distributions import ClientCommand, DemoCommand, ServerCommand, ServerGroup
from gcvae_cli.files import commands as file_commands
from gcvae_cli.files import map_commands, report_command
from gcvae_cli.pages import open_pages
from gcvae_cli.server import audit_commands, key_commands, store_commands
from gcvae_cli.server import commands as server_commands
from gcvae_cli.sources.verbs import with_sources
from gcvae_cli.verbs import Verbs, add_verb

app = typer.Typer(
    cls=Verbs,
    help="Gaussian copula VAEs for tables: train, generate, score, impute, map dependencies.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FILES = "Files and services (with --server)"
_SERVICE = "Services"
_SERVERS = "Servers"

for _verb in (
    file_commands.schema,
    file_commands.train,
    file_commands.sample,
    file_commands.score,
    file_commands.impute,
    map_commands.dependencies,
    file_commands.encode,
    map_commands.manifold,
    report_command.report,
    file_commands.export,
):
    add_verb(app, _FILES, with_sources(_verb), getattr(client_verbs, _verb.__name__), ClientCommand)
app.command(rich_help_panel=_FILES)(database_commands.clone)
app.command(rich_help_panel=_FILES)(file_commands.settings)
app.command("list", cls=ClientCommand, rich_help_panel=_SERVICE)(client_commands.list_)
app.command("import", cls=ClientCommand, rich_help_panel=_SERVICE)(client_commands.import_)
app.command(cls=ClientCommand, rich_help_panel=_SERVICE)(client_commands.restrict)
app.command(cls=ClientCommand, rich_help_panel=_SERVICE)(mcp)
app.command("open", rich_help_panel=_SERVICE)(open_pages)
app.command(cls=ServerCommand, rich_help_panel=_SERVERS)(server_commands.serve)
app.command(cls=ServerCommand, rich_help_panel=_SERVERS)(server_commands.api)
app.command(cls=ServerCommand, rich_help_panel=_SERVERS)(server_commands.worker)
app.command(cls=DemoCommand, rich_help_panel=_SERVERS)(client_commands.demo)
app.add_typer(server_commands.database, name="db", cls=ServerGroup, rich_help_panel=_SERVERS)
app.add_typer(audit_commands.audit, name="audit", cls=ServerGroup, rich_help_panel=_SERVERS)
app.add_typer(key_commands.keys, name="keys", cls=ServerGroup, rich_help_panel=_SERVERS)
app.add_typer(store_commands.store, name="store", cls=ServerGroup, rich_help_panel=_SERVERS)


@app.callback(invoke_without_command=True)
def _describe(
    show_version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if show_version:
        from importlib.metadata import version

        print(version("gcvae"))
        raise typer.Exit


command = typer.main.get_command(app)
"""The `gcvae` command, built once per process."""
