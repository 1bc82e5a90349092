"""Access checks that need no key: workspace of a request, host names, origins and addresses."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from catalog.catalog import Catalog
from catalog.database.migrate import check
from catalog.errors import NotFoundError, SchemaVersionError
from catalog.workspace import Workspace as OpenedWorkspace
from service.errors import ForeignSiteError, StartError
from service.settings import ServiceSettings, variable

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


async def get_workspace(request: Request) -> OpenedWorkspace:
    """Returns the catalog restricted to the workspace that `service.http.gate` determined.

    Raises:
        NotFoundError: An id in the path contains a null character.
    """
    for name, value in request.path_params.items():
        if "\0" in value:  # PostgreSQL refuses such a text
            raise NotFoundError(name.removesuffix("_id"), value)
    catalog = request.app.state.resources.catalog
    assert isinstance(catalog, Catalog)
    return catalog.workspace(request.state.workspace)


Workspace = Annotated[OpenedWorkspace, Depends(get_workspace)]


def refuse_foreign_host(request: Request, settings: ServiceSettings) -> None:
    """Prevents DNS rebinding: requests by a foreign host name that resolves to this machine.

    Raises:
        ForeignSiteError: The Host header is not an allowed name.
    """
    host = request.url.hostname or ""
    if host.strip("[]") not in settings.allowed_hosts:
        allowed = ", ".join(settings.allowed_hosts)
        raise ForeignSiteError(
            f"Host {host!r} is not allowed; allowed hosts are {allowed} "
            f"({variable('allowed_hosts')})"
        )


def is_address(request: Request) -> bool:
    """Whether the request names this machine by an IP address or `localhost`."""
    host = (request.url.hostname or "").strip("[]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def refuse_foreign_page(request: Request) -> None:
    """Prevents cross-site request forgery.

    Raises:
        ForeignSiteError: A request that changes something has the Origin of another site.
    """
    origin = request.headers.get("Origin")
    if origin is None or request.method in SAFE_METHODS:
        return
    if urlsplit(origin).netloc != request.headers.get("Host"):
        raise ForeignSiteError(f"a page of {origin} may not change anything here")


def refuse_open_address(settings: ServiceSettings) -> None:
    """Prevents a service without keys from listening to other machines.

    Raises:
        StartError: The address is not a loopback address, and there is no key.
    """
    if not (is_loopback(settings.host) or _has_keys(settings)):
        raise StartError(
            f"{settings.host} is reachable from other machines, and this service has no API keys; "
            "create one (gcvae keys create --workspace NAME) or listen on 127.0.0.1 "
            f"(--host or {variable('host')})"
        )


def _has_keys(settings: ServiceSettings) -> bool:
    """Whether the service's database has API keys."""
    if not settings.has_database():
        return False
    try:
        check(settings.database())
    except SchemaVersionError:
        return False  # an empty or outdated database; the start reports it
    catalog = Catalog(settings.database())
    try:
        return catalog.keys.exist()
    finally:
        catalog.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
