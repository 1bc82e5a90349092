"""Checks of ports for servers."""

from __future__ import annotations

import socket

from gcvae_cli.errors import ServerError


def free_port(host: str, port: int) -> int:
    """Returns the port if it is available; any available one for 0.

    Raises:
        ServerError: The port is in use, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ServerError(
                f"port {port} of {host} is not available ({error.strerror}); "
                "choose another with --port, or 0 for a free one"
            ) from error
        return int(probe.getsockname()[1])
