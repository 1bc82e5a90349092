"""Runs the application on a port until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn

from catalog.database.migrate import check
from catalog.errors import CatalogError
from runtime.deadline import end_within
from runtime.errors import RuntimeSetupError
from runtime.logs import set_up_logs
from service.access import refuse_open_address
from service.app import create_app
from service.errors import CutOffError, StartError
from service.http.head_limits import head_protocol
from service.inline.process import FORK_SERVER
from service.resources import Resources
from service.settings import ServiceSettings, variable

_SWITCH_SECONDS = 0.0005
"""Interval at which a thread releases Python's global lock. With the default of 5 ms, threads that
read tables would delay the event loop."""

_CLOSING_SECONDS = 2.0
"""Part of `shutdown_seconds` in which resources are closed, after open requests are cut off."""
_LOGGING_SECONDS = 0.5


def run(settings: ServiceSettings, on_ready: Callable[[str], None] | None = None) -> None:
    """Runs the service until SIGINT or SIGTERM.

    Args:
        on_ready: Function that is called with the service's URL once the port is open.

    Raises:
        StartError: The port is taken, the database is not set up, API keys are required but
            missing, or a setting needs a package that is not installed.
    """
    set_up_logs(settings)
    refuse_open_address(settings)
    try:
        check(settings.database())
    except CatalogError as error:
        raise StartError(str(error)) from error
    try:
        app = create_app(settings)
    except RuntimeSetupError as error:
        raise StartError(str(error)) from error
    listening = bind(settings)
    sys.setswitchinterval(_SWITCH_SECONDS)
    config = uvicorn.Config(
        app,
        http=head_protocol(settings),
        log_config=None,  # uvicorn logs through our handlers
        access_log=False,  # `service/http/observations.py` logs requests
        server_header=False,
        timeout_graceful_shutdown=request_seconds(settings),  # type: ignore[arg-type]  # a float does
    )
    ProcessServer(config, app.state.resources, on_ready).run(sockets=[listening])


def request_seconds(settings: ServiceSettings) -> float:
    """Returns how many seconds open requests may continue after a stop signal."""
    return max(settings.shutdown_seconds - _CLOSING_SECONDS, settings.shutdown_seconds / 2)


def bind(settings: ServiceSettings) -> socket.socket:
    """Returns a socket bound to host and port of the settings.

    Raises:
        StartError: The host is not an address of this machine, or the port is taken.
    """
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        advice = f"give another (--host or {variable('host')})"
        message = f"{settings.host} is not an address ({error.strerror}); {advice}"
        raise StartError(message) from error
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise StartError(
            f"port {settings.port} of {settings.host} is not available ({error.strerror}); "
            f"choose another (--port or {variable('port')})"
        ) from error
    return listening


class Server(uvicorn.Server):
    """Uvicorn server that reports when it is ready, and ends event streams when it stops.

    Args:
        on_ready: Function that is called with the service's URL once the port is open.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        resources: Resources,
        on_ready: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(config)
        logging.getLogger("uvicorn.error").addFilter(_keep_record)
        self._resources = resources
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Opens the port and calls `on_ready`."""
        await super().startup(sockets)
        # Otherwise the garbage collector would scan all imported objects, which takes 0.1 s.
        gc.freeze()
        gc.enable()
        if self.started and self._on_ready is not None:
            host, port, *_ = self.servers[0].sockets[0].getsockname()
            self._on_ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Waits for open requests, and cuts off those that have not ended in time."""
        self._resources.closing.set()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_LOGGING_SECONDS)


class ProcessServer(Server):
    """Server that ends its process at most `shutdown_seconds` after a stop signal."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handles a stop signal: starts the shutdown and its time limit."""
        if not self.should_exit:
            end_within(self._resources.settings.shutdown_seconds)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Waits for open requests, then stops the process that forks child processes."""
        await super().shutdown(sockets)
        FORK_SERVER.close()  # it may still be importing torch


def _keep_record(record: logging.LogRecord) -> bool:
    """Returns False for records about cut-off responses, which `Observations` has logged."""
    return not (record.exc_info and isinstance(record.exc_info[1], CutOffError))
