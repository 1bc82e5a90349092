"""The distributions beside the library, which the commands of services and servers need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand, TyperGroup

from gcvae_cli.errors import NotInstalledError

_CLIENT = "./gcvae_client"
_SERVER = "./server"


class ClientCommand(TyperCommand):
    """A command that asks a service."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: NotInstalledError."""
        with _needing(ctx.command_path, _CLIENT):
            return super().invoke(ctx)


class ServerCommand(TyperCommand):
    """A command that is a server."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: NotInstalledError."""
        with _needing(ctx.command_path, _SERVER):
            return super().invoke(ctx)


class ServerGroup(TyperGroup):
    """Commands that look after a server's records."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: NotInstalledError."""
        with _needing(ctx.command_path, _SERVER):
            return super().invoke(ctx)


class DemoCommand(TyperCommand):
    """A command that starts a service and asks it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: NotInstalledError."""
        with _needing(ctx.command_path, f"{_SERVER} {_CLIENT}"):
            return super().invoke(ctx)


@contextmanager
def _needing(command: str, folders: str) -> Iterator[None]:
    """Names the folders that pip installs what is missing from."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        raise NotInstalledError(
            f"`{command}` needs the package {missing}, which is not installed; in the clone of "
            f"gcvae, `pip install {folders}` brings it"
        ) from error
