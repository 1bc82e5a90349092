"""Packages that only some settings ask for: the extras of the server."""

from __future__ import annotations

import importlib.util

from runtime.errors import MissingExtraError
from runtime.settings import variable


def require_extra(setting: str, extra: str, name: str, *packages: str) -> None:
    """Nothing, where the packages are that a setting asks for.

    Args:
        name: What people call the packages.

    Raises:
        MissingExtraError: one is not installed.
    """
    if not all(_is_installed(package) for package in packages):
        raise MissingExtraError(variable(setting), name, extra)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False
