"""The errors of setting up a process."""

from __future__ import annotations


class RuntimeSetupError(Exception):
    """Base class of errors in the set-up of a process."""


class ParentGoneError(RuntimeSetupError):
    """The parent process, with which this process should end, has already ended."""


class MissingExtraError(RuntimeSetupError):
    """A setting needs a package that is not installed; the message names the extra."""

    def __init__(self, variable: str, package: str, extra: str) -> None:
        super().__init__(
            f"{variable} is set, and {package} is not installed: "
            f"pip install 'gcvae-server[{extra}]', or leave {variable} unset"
        )
        self.variable = variable
        self.extra = extra
