"""Checks the host names and origins of requests, and opens the workspace of a request."""

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
    """FastAPI dependency that returns the database records of a request's workspace (tenant).

    The middleware `service.http.gate.Gate` has stored the workspace's name in `request.state`.

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
    """Checks the Host header, against DNS rebinding.

    In DNS rebinding, another site lets its host name resolve to this machine, so that its pages
    can call this service.

    Raises:
        ForeignSiteError: The Host header is not one of `settings.allowed_hosts`.
    """
    host = request.url.hostname or ""
    if host.strip("[]") not in settings.allowed_hosts:
        allowed = ", ".join(settings.allowed_hosts)
        raise ForeignSiteError(
            f"Host {host!r} is not allowed; allowed hosts are {allowed} "
            f"({variable('allowed_hosts')})"
        )


def is_address(request: Request) -> bool:
    """Returns whether the Host header of the request is an IP address or `localhost`.

    Such a request is safe from DNS rebinding, which needs the host name of another site.
    """
    host = (request.url.hostname or "").strip("[]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def refuse_foreign_page(request: Request) -> None:
    """Checks that no page of another site requests a change (cross-site request forgery).

    Raises:
        ForeignSiteError: The method may change data, and the Origin header names another host than
            the Host header.
    """
    origin = request.headers.get("Origin")
    if origin is None or request.method in SAFE_METHODS:
        return
    if urlsplit(origin).netloc != request.headers.get("Host"):
        raise ForeignSiteError(f"a page of {origin} may not change anything here")


def refuse_open_address(settings: ServiceSettings) -> None:
    """Refuses to start a service without API keys or sign-on where other machines could reach it.

    Raises:
        StartError: `settings.host` is not a loopback address, the database contains no API key, and
            single sign-on is not configured.
    """
    is_guarded = bool(settings.oidc_issuer) or _has_keys(settings)
    if not (is_loopback(settings.host) or is_guarded):
        raise StartError(
            f"{settings.host} is reachable from other machines, and this service has no API keys; "
            "create one (gcvae keys create --workspace NAME) or listen on 127.0.0.1 "
            f"(--host or {variable('host')})"
        )


def _has_keys(settings: ServiceSettings) -> bool:
    """Returns whether the database has an API key; False if the database is absent or outdated."""
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
    """Returns whether `host` is a loopback address, which only this machine can reach.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
