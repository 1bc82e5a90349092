"""Checks for the optional distributions of the client and the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand, TyperGroup

from gcvae_cli.errors import NotInstalledError

_CLIENT = "./gcvae_client"
_SERVER = "./server"


class ClientCommand(TyperCommand):
    """A command that needs the client."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command.

        Raises:
            NotInstalledError: The client is not installed.
        """
        with _needing(ctx.command_path, _CLIENT):
            return super().invoke(ctx)


class ServerCommand(TyperCommand):
    """A command that needs the server."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command.

        Raises:
            NotInstalledError: The server is not installed.
        """
        with _needing(ctx.command_path, _SERVER):
            return super().invoke(ctx)


class ServerGroup(TyperGroup):
    """Commands on a server's records."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command.

        Raises:
            NotInstalledError: The server is not installed.
        """
        with _needing(ctx.command_path, _SERVER):
            return super().invoke(ctx)


class DemoCommand(TyperCommand):
    """A command that needs client and server."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command.

        Raises:
            NotInstalledError: One of them is not installed.
        """
        with _needing(ctx.command_path, f"{_SERVER} {_CLIENT}"):
            return super().invoke(ctx)


@contextmanager
def _needing(command: str, folders: str) -> Iterator[None]:
    """Converts import errors to a message with the folders to install by pip."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        raise NotInstalledError(
            f"`{command}` needs the package {missing}, which is not installed; in the clone of "
            f"gcvae, `pip install {folders}` brings it"
        ) from error
