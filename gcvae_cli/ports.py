"""Finds or checks the network port of a server."""

from __future__ import annotations

import socket

from gcvae_cli.errors import ServerError


def free_port(host: str, port: int) -> int:
    """Returns the port if it is available; for port 0, returns any available port.

    Args:
        host: Address to listen on.
        port: Port number, 0 to 65535.

    Raises:
        ServerError: The port is in use, or this machine does not have the address.
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
