"""Computes the environment variables of server processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.settings import ServiceSettings


def server_environment(settings: ServiceSettings) -> dict[str, str]:
    """Returns the environment variables of a server process, with the database, queue and store of
    these settings."""
    from runtime.settings import environment_of

    urls = {
        "database_url": settings.database(),
        "broker_url": settings.broker(),
        "store_url": settings.store(),
    }
    return environment_of(urls) | {"PYTHONUNBUFFERED": "1"}
