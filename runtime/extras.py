"""Checks for optional packages, which some settings need."""

from __future__ import annotations

import importlib.util

from runtime.errors import MissingExtraError
from runtime.settings import variable


def require_extra(setting: str, extra: str, name: str, *packages: str) -> None:
    """Checks that the optional packages for a setting are installed.

    Args:
        setting: Field name of the setting that needs the packages.
        extra: pip extra that installs the packages.
        name: Name of the packages for people, in the error message.
        *packages: Names of the modules to look for.

    Raises:
        MissingExtraError: One of the modules is not installed.
    """
    if not all(_is_installed(package) for package in packages):
        raise MissingExtraError(variable(setting), name, extra)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
