"""Registers commands that exist in two variants, for files and for a service.

`gcvae sample model.gcvae` works on files; `gcvae sample MODEL --server URL` uses a service. Each
variant has its own options and help text.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_SERVER = "--server"
_AT_A_SERVICE = "{} " + _SERVER


class Verbs(TyperGroup):
    """Command group whose subcommands work on files, or with a service if `--server` is given."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Returns (name, command, remaining arguments) of the subcommand to run, which is the
        variant for a service if the arguments contain `--server`."""
        name, command, rest = super().resolve_command(ctx, args)
        if any(given == _SERVER or given.startswith(f"{_SERVER}=") for given in rest):
            command = self.get_command(ctx, _AT_A_SERVICE.format(name)) or command
        return name, command, rest


def add_verb(
    app: typer.Typer, panel: str, on_files: Any, at_a_service: Any, cls: type[TyperCommand]
) -> None:
    """Adds the two variants of a command to the application, under the name of `on_files`.

    Args:
        app: The application.
        panel: Heading under which the help lists the command.
        on_files: Function that runs the command on files.
        at_a_service: Function that runs the command with a service (`--server`).
        cls: Command class of the variant for a service.
    """
    name = on_files.__name__
    told = (
        f"To use a service, add --server URL; `gcvae {name} --server URL --help` lists its options."
    )
    app.command(name, rich_help_panel=panel, epilog=told)(on_files)
    app.command(_AT_A_SERVICE.format(name), cls=cls, hidden=True)(at_a_service)
