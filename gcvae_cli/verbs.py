"""Commands that exist twice, for files and for a service.

`gcvae sample model.gcvae` works on files; `gcvae sample MODEL --server URL` uses a service. They
have separate options, so that each has complete help.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_SERVER = "--server"
_AT_A_SERVICE = "{} " + _SERVER


class Verbs(TyperGroup):
    """The tree of commands. With `--server`, the service's variant of a command is used."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Returns the called command with the arguments after its name."""
        name, command, rest = super().resolve_command(ctx, args)
        if any(given == _SERVER or given.startswith(f"{_SERVER}=") for given in rest):
            command = self.get_command(ctx, _AT_A_SERVICE.format(name)) or command
        return name, command, rest


def add_verb(
    app: typer.Typer, panel: str, on_files: Any, at_a_service: Any, cls: type[TyperCommand]
) -> None:
    """Adds both variants of a command, named like the functions.

    Args:
        app: The tree of commands.
        panel: Heading in the help.
        on_files: Function for files.
        at_a_service: Function for a service.
        cls: Class of the service's variant.
    """
    name = on_files.__name__
    told = (
        f"To use a service, add --server URL; `gcvae {name} --server URL --help` lists its options."
    )
    app.command(name, rich_help_panel=panel, epilog=told)(on_files)
    app.command(_AT_A_SERVICE.format(name), cls=cls, hidden=True)(at_a_service)
