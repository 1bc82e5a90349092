"""Converts exceptions of the Python client into error messages of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gcvae_cli.errors import CommandError, UnfinishedJobError

_REMEDIES = {
    "unauthorized": "give the file of an API key: --key-file FILE",
    "missing-scope": "give the file of a key with this scope: --key-file FILE",
    "no-report": "create one with --seed 0 once the model is ready; imported models need --real",
    "model-not-ready": "`gcvae list jobs` shows its progress, or that it failed",
    "not-found": "`gcvae list datasets`, `models` or `jobs` shows the existing ones",
}
"""Advice for users of the command line by kind of problem, instead of the advice for Python."""


@contextmanager
def client_errors() -> Iterator[None]:
    """Context manager that converts exceptions that the Python client raises in its block into a
    CommandError, whose message is one line for the user.

    Raises:
        UnfinishedJobError: A job failed, was cancelled, or did not finish in time.
        CommandError: The client failed in another way.
    """
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
