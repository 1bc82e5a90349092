"""Puts the packages beside this folder into the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Neighbours(BuildHookInterface[Any]):
    """An editable installation has them by their path, and gets no copies."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folders, before anything is built."""
        if version == "standard":
            folder = Path(self.root).parent
            build_data["force_include"] |= {
                str(folder / package): package for package in self.config["packages"]
            }
