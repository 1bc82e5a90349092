"""Exceptions of the command line.

CommandError              the command failed (exit code 1)
├── OutputError           the result cannot be written to the requested file or folder
├── NotInstalledError     the command needs a package that is not installed
├── UnfinishedJobError    a job of the service failed or was cancelled
├── ServerError           a server process did not start, or ended unexpectedly
└── WrongUsageError       the command was called with wrong arguments (exit code 2)
"""

from __future__ import annotations


class CommandError(Exception):
    """Base class of the command line's exceptions, whose message is one line for the user.

    Attributes:
        exit_code: Exit code of the command.
    """

    exit_code = 1


class OutputError(CommandError):
    """Raised if the result cannot be written to the requested file or folder."""


class NotInstalledError(CommandError):
    """Raised if the command needs a package that is not installed."""


class UnfinishedJobError(CommandError):
    """Raised if a job of the service failed or was cancelled."""


class ServerError(CommandError):
    """Raised if a server process does not start, ends unexpectedly, or cannot reach its data."""


class WrongUsageError(CommandError):
    """Raised if the command was called with wrong arguments."""

    exit_code = 2
