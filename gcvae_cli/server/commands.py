"""The commands that run servers (`gcvae serve`, `api`, `worker`) or migrate their database."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcvae_cli.errors import ServerError, WrongUsageError

if TYPE_CHECKING:
    from service.settings import ServiceSettings

Host = Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")]
Port = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port; 0 for a free one. [default: 8000]")
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Data folder. [default: gcvae-data]"),
]
Parent = Annotated[int | None, typer.Option(hidden=True, help="Stop when this process ends.")]

database = typer.Typer(help="Manage the database.", no_args_is_help=True)


def serve(
    host: Host = None, port: Port = None, data_dir: DataDir = None, parent: Parent = None
) -> None:
    """Run a complete service on this machine: the API and one worker."""
    from gcvae_cli.ports import free_port
    from gcvae_cli.server.supervisor import supervise

    _tie_to(parent)
    settings = read_server_settings(host=host, port=port, home_dir=data_dir)
    _refuse_open_address(settings)
    address = (settings.host, free_port(settings.host, settings.port))
    with server_errors():
        from catalog.database.migrate import upgrade

        upgrade(settings.database())
    url = _url(*address)

    def greet() -> None:
        print(f"gcvae is ready at {url} (REST API: {url}/docs); press Ctrl-C to stop", flush=True)

    supervise(
        _embedded_servers(settings, *address),
        ready_url=f"{url}/readyz",
        on_ready=greet,
        grace_seconds=settings.shutdown_seconds,
    )


def api(
    host: Host = None, port: Port = None, data_dir: DataDir = None, parent: Parent = None
) -> None:
    """Run only the HTTP API of a service."""
    gc.disable()  # imported modules stay in memory; `service.server` enables it once the API runs
    _tie_to(parent)
    with server_errors():
        from service.server import run

        run(read_server_settings(host=host, port=port, home_dir=data_dir))


def worker(
    data_dir: DataDir = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether a worker could run.")
    ] = False,
    parent: Parent = None,
) -> None:
    """Run only a worker, which executes the jobs of a service."""
    _tie_to(parent)
    settings = read_server_settings(home_dir=data_dir)
    if check:
        with server_errors():
            _check_connections(settings)
        return
    from gcvae_cli.server.settings import server_environment

    # The process becomes the worker, with the same id and parent, and still ends with its parent.
    command = [sys.executable, "-m", "worker"]
    command += ["--die-with-parent"] if parent is not None else []
    os.execve(sys.executable, command, server_environment(settings))


@database.command()
def upgrade(data_dir: DataDir = None) -> None:
    """Create or upgrade the tables of the database."""
    settings = read_server_settings(home_dir=data_dir)
    with server_errors():
        from catalog.database.migrate import newest_revision
        from catalog.database.migrate import upgrade as upgrade_tables

        upgrade_tables(settings.database())
        print(f"the database is at revision {newest_revision()}")


def read_server_settings(**given: Any) -> ServiceSettings:
    """Returns the settings of the service from the environment and the command line.

    Args:
        given: Values of command-line options by name of the setting, which override the
            environment; None if an option is absent.

    Raises:
        WrongUsageError: A setting is invalid; the message names its environment variable.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from service.settings import ServiceSettings, variable

    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return ServiceSettings(**chosen)
    except SettingsError as error:
        raise WrongUsageError(str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = variable(str(first["loc"][0])) if first["loc"] else "the settings"
        raise WrongUsageError(f"{name}: {first['msg'].removeprefix('Value error, ')}") from error


def _embedded_servers(settings: ServiceSettings, host: str, port: int) -> list[Any]:
    from gcvae_cli.server.settings import server_environment
    from gcvae_cli.server.supervisor import Server

    environment = server_environment(settings)
    gcvae = [sys.executable, "-m", "gcvae_cli"]
    tied = ["--parent", str(os.getpid())]
    listening = ["--host", host, "--port", str(port)]
    return [
        Server("API", [*gcvae, "api", *listening, *tied], environment),
        Server("worker", [*gcvae, "worker", *tied], environment),
    ]


def _tie_to(parent: int | None) -> None:
    if parent is not None:
        from runtime.parentage import die_with_parent

        die_with_parent(parent)


def _refuse_open_address(settings: ServiceSettings) -> None:
    with server_errors():
        from service.access import refuse_open_address

        refuse_open_address(settings)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _check_connections(settings: ServiceSettings) -> None:
    from service.resources import make_resources

    resources = make_resources(settings)
    try:
        resources.catalog.ping()
        resources.store.ping()
        resources.dispatcher.ping()
    finally:
        resources.close()
    print(json.dumps({"database": "ok", "store": "ok", "broker": "ok"}))


@contextmanager
def server_errors() -> Iterator[None]:
    """Context manager that converts exceptions of server packages into a ServerError of one line.

    Only expected exceptions are converted, such as a database that does not respond.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from catalog.errors import CatalogError
    from models_store.errors import StoreError
    from runtime.errors import RuntimeSetupError
    from service.errors import ServiceError

    try:
        yield
    except SQLAlchemyError as error:
        raise ServerError(f"the database does not respond: {str(error).splitlines()[0]}") from error
    except (CatalogError, StoreError, RuntimeSetupError, ServiceError) as error:
        raise ServerError(str(error)) from error
