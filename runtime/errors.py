"""The errors of setting up a process.

RuntimeSetupError
└── MissingExtraError   a setting asks for a package that is not installed
"""

from __future__ import annotations


class RuntimeSetupError(Exception):
    """Root of the errors of setting up a process."""


class MissingExtraError(RuntimeSetupError):
    """A setting asks for a package that is not installed; names the extra that brings it."""

    def __init__(self, variable: str, package: str, extra: str) -> None:
        super().__init__(
            f"{variable} is set, and {package} is not installed: install gcvae[{extra}], "
            f"or leave {variable} unset"
        )
        self.variable = variable
        self.extra = extra
