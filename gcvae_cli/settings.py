"""The environment, read to be handed to the servers that the command line starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.settings import ServiceSettings


def server_environment(settings: ServiceSettings) -> dict[str, str]:
    """The environment of a server process that works on the same records, queue and bytes."""
    return {
        **os.environ,
        "GCVAE_DATABASE_URL": settings.database(),
        "GCVAE_BROKER_URL": settings.broker(),
        "GCVAE_STORE_URL": settings.store(),
        "PYTHONUNBUFFERED": "1",
    }
