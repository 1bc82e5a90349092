"""Confines a process to network connections with one IP address."""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any

from service.errors import OutsideError
from service.outside import Address

_SENDING = ("socket.connect", "socket.sendto", "socket.sendmsg")


def confine(host: str, address: Address) -> None:
    """Makes this process resolve only `host`, always to `address`, and connect to nothing else.

    This applies to all Python code of the process and cannot be undone. It does not restrict C
    code, such as PostgreSQL's driver, which is therefore given the address instead of the name.
    """
    resolve = socket.getaddrinfo
    shown = str(address)

    def resolve_host(name: Any, *arguments: Any, **options: Any) -> Any:
        if name not in (host, shown):
            raise _refused()
        return resolve(shown, *arguments, **options)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _SENDING and arguments[1] is not None and not _is(address, arguments[1]):
            raise _refused()

    socket.getaddrinfo = resolve_host  # type: ignore[assignment]
    sys.addaudithook(watch)


def _is(address: Address, target: Any) -> bool:
    if not isinstance(target, tuple):  # a local socket
        return False
    return ipaddress.ip_address(str(target[0]).partition("%")[0]) == address


def _refused() -> OutsideError:
    return OutsideError("another host is not reached", "the host of the connection")
