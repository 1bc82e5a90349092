"""Runs the application on a port until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

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
"""Interval at which threads release Python's lock. The default of 5 ms would delay the event loop
while tables are read."""

_CLOSING_SECONDS = 2.0
"""Part of `shutdown_seconds` that remains after the last requests are cut off."""
_LOGGING_SECONDS = 0.5


def run(settings: ServiceSettings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        on_ready: Called with the service's URL once its port is open.

    Raises:
        StartError: The address requires keys, the port is taken, the database is not set up, or a
            setting needs a package that is not installed.
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
    """Returns the time that open requests have after a stop signal, in seconds."""
    return max(settings.shutdown_seconds - _CLOSING_SECONDS, settings.shutdown_seconds / 2)


def bind(settings: ServiceSettings) -> socket.socket:
    """Opens a listening socket on the settings' address.

    Raises:
        StartError: The address is not available.
    """
    family, kind, protocol, _, address = _resolve(settings)
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
    """uvicorn server that reports readiness and ends endless streams when it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        resources: Resources,
        on_ready: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(config)
        logging.getLogger("uvicorn.error").addFilter(_is_unlogged)
        self._resources = resources
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Opens the port and calls `on_ready`."""
        await super().startup(sockets)
        # A collection of all imported objects would delay every request by a tenth of a second.
        gc.freeze()
        gc.enable()
        if self.started and self._on_ready is not None:
            host, port, *_ = self.servers[0].sockets[0].getsockname()
            self._on_ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Waits for open requests, and cuts them off at the end of their time."""
        self._resources.closing.set()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_LOGGING_SECONDS)


class ProcessServer(Server):
    """Server that ends its process within `shutdown_seconds`."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Starts the shutdown and its time limit."""
        if not self.should_exit:
            end_within(self._resources.settings.shutdown_seconds)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Waits for open requests and stops the fork server."""
        await super().shutdown(sockets)
        FORK_SERVER.close()  # it may still be importing torch


def _resolve(settings: ServiceSettings) -> tuple[Any, ...]:
    """Returns the address information of the settings' host and port."""
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        advice = f"give another (--host or {variable('host')})"
        message = f"{settings.host} is not an address ({error.strerror}); {advice}"
        raise StartError(message) from error
    return found[0]


def _is_unlogged(record: logging.LogRecord) -> bool:
    """Whether a log record is to be kept: not one about a cut-off response, which is logged
    elsewhere.
    """
    return not (record.exc_info and isinstance(record.exc_info[1], CutOffError))
