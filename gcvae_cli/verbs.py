"""Verbs that a command does itself on files, or has a service do: one name, two commands.

`gcvae sample model.gcvae` draws here; `gcvae sample MODEL --server URL` asks a service. The two
take options of their own, so that each one's help is whole.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_SERVER = "--server"
_AT_A_SERVICE = "{} " + _SERVER


class Verbs(TyperGroup):
    """The tree of commands. A verb with `--server` is the one that asks the service."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called, with what follows its name."""
        name, command, rest = super().resolve_command(ctx, args)
        if any(given == _SERVER or given.startswith(f"{_SERVER}=") for given in rest):
            command = self.get_command(ctx, _AT_A_SERVICE.format(name)) or command
        return name, command, rest


def add_verb(
    app: typer.Typer, panel: str, on_files: Any, at_a_service: Any, cls: type[TyperCommand]
) -> None:
    """Adds both commands of a verb, which is named as the functions are.

    Args:
        cls: The class of the command that asks the service.
    """
    name = on_files.__name__
    told = (
        f"To use a service, add --server URL; `gcvae {name} --server URL --help` lists its options."
    )
    app.command(name, rich_help_panel=panel, epilog=told)(on_files)
    app.command(_AT_A_SERVICE.format(name), cls=cls, hidden=True)(at_a_service)
