"""Errors of the command line.

CommandError              the command failed: exit code 1
├── OutputError           the result can not be written where it was asked for
├── NotInstalledError     the command needs a distribution that is not there
├── UnfinishedJobError    the service's job failed or was cancelled
├── ServerError           a server process did not start, or ended
└── WrongUsageError       the command was called wrongly: exit code 2
"""

from __future__ import annotations


class CommandError(Exception):
    """Root of the command line's errors: one line that states what to do."""

    exit_code = 1


class OutputError(CommandError):
    """The result can not be written to the output."""


class NotInstalledError(CommandError):
    """The command needs a distribution that is not installed."""


class UnfinishedJobError(CommandError):
    """A job of the service failed or was cancelled."""


class ServerError(CommandError):
    """A server process did not start, or ended on its own."""


class WrongUsageError(CommandError):
    """The command was called with wrong arguments."""

    exit_code = 2
