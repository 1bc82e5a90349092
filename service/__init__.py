"""The HTTP API: thin route functions that validate requests and write records to the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.app import create_app
    from service.server import run
    from service.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app", "run"]

_HOMES = {"ServiceSettings": "settings", "create_app": "app", "run": "server"}


def __getattr__(name: str) -> Any:
    """Imports a public name on its first use, so that reading settings does not import FastAPI."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'service' has no attribute {name!r}")
    return getattr(import_module(f"service.{_HOMES[name]}"), name)
