"""The errors of setting up a process.

RuntimeSetupError
├── ParentGoneError     the process that this one belongs to has ended
└── MissingExtraError   a setting asks for a package that is not installed
"""

from __future__ import annotations


class RuntimeSetupError(Exception):
    """Root of the errors of setting up a process."""


class ParentGoneError(RuntimeSetupError):
    """The parent process has ended."""


class MissingExtraError(RuntimeSetupError):
    """A setting needs a package that is not installed; names the extra that installs it."""

    def __init__(self, variable: str, package: str, extra: str) -> None:
        super().__init__(
            f"{variable} is set, and {package} is not installed: "
            f"pip install 'gcvae-server[{extra}]', or leave {variable} unset"
        )
        self.variable = variable
        self.extra = extra
