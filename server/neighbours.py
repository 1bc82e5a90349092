"""Build hook of hatchling that adds the packages beside this folder to the wheel of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Neighbours(BuildHookInterface[Any]):
    """Build hook of hatchling that adds the server's packages, which lie beside this folder, to a
    wheel.

    Editable installations import the packages from where they lie, so nothing is added.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the folders of the configured packages to the files of the wheel; hatchling calls
        this before it builds."""
        if version == "standard":
            folder = Path(self.root).parent
            build_data["force_include"] |= {
                str(folder / package): package for package in self.config["packages"]
            }
