"""Run the application on its port until a signal ends it."""

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
"""How long a thread that reads a table may keep Python to itself while the event loop wants it;
Python's own 5 ms would be spent at every turn between the two."""

_CLOSING_SECONDS = 2.0
"""Of the time that there is for the end: what is left for it when the last requests are cut off."""
_LAST_WORDS_SECONDS = 0.5


def run(settings: ServiceSettings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        on_ready: called with the service's URL once its port is open.

    Raises:
        StartError: the address needs keys, the port is taken, the database is not set up, or a
            setting asks for what is not installed.
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
        log_config=None,  # what uvicorn says goes where our own lines go
        access_log=False,  # `service/http/observations.py` has a line for each request
        server_header=False,
        timeout_graceful_shutdown=request_seconds(settings),  # type: ignore[arg-type]  # a float does
    )
    ProcessServer(config, app.state.resources, on_ready).run(sockets=[listening])


def request_seconds(settings: ServiceSettings) -> float:
    """How long open requests may take once the service is asked to end."""
    return max(settings.shutdown_seconds - _CLOSING_SECONDS, settings.shutdown_seconds / 2)


def bind(settings: ServiceSettings) -> socket.socket:
    """A socket that listens on the settings' address.

    Raises:
        StartError: the address is not available.
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
    """uvicorn's server, which says when it is ready and ends endless streams when it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        resources: Resources,
        on_ready: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(config)
        logging.getLogger("uvicorn.error").addFilter(_is_news)
        self._resources = resources
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port."""
        await super().startup(sockets)
        # A look at all that is imported takes a tenth of a second, for which every request waits.
        gc.freeze()
        gc.enable()
        if self.started and self._on_ready is not None:
            host, port, *_ = self.servers[0].sockets[0].getsockname()
            self._on_ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let every request end, or cut it off when its time is up."""
        self._resources.closing.set()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_LAST_WORDS_SECONDS)


class ProcessServer(Server):
    """The server that its process ends with: all of it within `shutdown_seconds`."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the end, which has its limit from now on."""
        if not self.should_exit:
            end_within(self._resources.settings.shutdown_seconds)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let every request end, and nothing begin any more."""
        await super().shutdown(sockets)
        FORK_SERVER.close()  # it may still be importing torch


def _resolve(settings: ServiceSettings) -> tuple[Any, ...]:
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        advice = f"give another (--host or {variable('host')})"
        message = f"{settings.host} is not an address ({error.strerror}); {advice}"
        raise StartError(message) from error
    return found[0]


def _is_news(record: logging.LogRecord) -> bool:
    """False of an answer that was cut off: it has its line already, with the request's id."""
    return not (record.exc_info and isinstance(record.exc_info[1], CutOffError))
