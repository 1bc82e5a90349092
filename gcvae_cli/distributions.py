"""Command classes that report if the client or the server, which are optional, is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand, TyperGroup

from gcvae_cli.errors import NotInstalledError

_CLIENT = "./gcvae_client"
_SERVER = "./server"


class ClientCommand(TyperCommand):
    """Typer command that checks that the Python client is installed before it runs."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command and returns its result.

        Raises:
            NotInstalledError: The client is not installed.
        """
        with _needing(ctx.command_path, _CLIENT):
            return super().invoke(ctx)


class ServerCommand(TyperCommand):
    """Typer command that checks that the server is installed before it runs."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command and returns its result.

        Raises:
            NotInstalledError: The server is not installed.
        """
        with _needing(ctx.command_path, _SERVER):
            return super().invoke(ctx)


class ServerGroup(TyperGroup):
    """Group of Typer subcommands that checks that the server is installed before one runs."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the subcommand and returns its result.

        Raises:
            NotInstalledError: The server is not installed.
        """
        with _needing(ctx.command_path, _SERVER):
            return super().invoke(ctx)


class DemoCommand(TyperCommand):
    """Typer command that checks that the Python client and the server are installed before it
    runs."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command and returns its result.

        Raises:
            NotInstalledError: The client or the server is not installed.
        """
        with _needing(ctx.command_path, f"{_SERVER} {_CLIENT}"):
            return super().invoke(ctx)


@contextmanager
def _needing(command: str, folders: str) -> Iterator[None]:
    """Context manager that converts an import error into one that names the folders to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        raise NotInstalledError(
            f"`{command}` needs the package {missing}, which is not installed; in the clone of "
            f"gcvae, `pip install {folders}` brings it"
        ) from error
