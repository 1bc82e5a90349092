"""Messages for errors of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gcvae_cli.errors import CommandError, UnfinishedJobError

_REMEDIES = {
    "unauthorized": "name the file of a key: --key-file FILE",
    "missing-scope": "name the file of a key that has it: --key-file FILE",
    "no-report": "--seed 0 makes one of a model that is ready; an imported one needs --real TABLE",
    "model-not-ready": "`gcvae list jobs` shows when it is, or that it failed",
    "not-found": "`gcvae list` datasets, models or jobs shows what there is",
}
"""Advice for shells, in place of the client's advice for Python."""


@contextmanager
def client_errors() -> Iterator[None]:
    """Converts errors of the client in the block to one line."""
    from gcvae_client import ClientError, JobError, ProblemError

    try:
        yield
    except JobError as error:
        raise UnfinishedJobError(str(error)) from error
    except ProblemError as error:
        remedy = error.remedy(_REMEDIES)
        raise CommandError(f"{error.reason}; {remedy}" if remedy else error.reason) from error
    except ClientError as error:
        raise CommandError(str(error)) from error
