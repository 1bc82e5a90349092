"""Command classes that report a missing optional package: the Python client or the server."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from gcvae_cli.errors import NotInstalledError


class _Needing:
    """Base class of commands and groups that need optional packages.

    Attributes:
        needed: Folders of these packages in a clone of gcvae, as arguments of `pip install`.
    """

    needed: str

    def invoke(self, ctx: Any) -> Any:
        """Runs the command and returns its result.

        Raises:
            NotInstalledError: A package of `needed` is not installed.
        """
        try:
            return super().invoke(ctx)  # type: ignore[misc]
        except ModuleNotFoundError as error:
            missing = (error.name or "").split(".")[0]
            raise NotInstalledError(
                f"`{ctx.command_path}` needs the package {missing}, which is not installed; in the "
                f"clone of gcvae, `pip install {self.needed}` brings it"
            ) from error


class ClientCommand(_Needing, TyperCommand):
    """Typer command that needs the Python client."""

    needed = "./gcvae_client"


class ServerCommand(_Needing, TyperCommand):
    """Typer command that needs the server."""

    needed = "./server"


class ServerGroup(_Needing, TyperGroup):
    """Group of Typer commands that need the server."""

    needed = "./server"


class DemoCommand(_Needing, TyperCommand):
    """Typer command that needs the server and the Python client."""

    needed = "./server ./gcvae_client"
