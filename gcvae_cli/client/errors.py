"""What a service refuses, as the command says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gcvae_cli.errors import CommandError, UnfinishedJobError


@contextmanager
def client_errors() -> Iterator[None]:
    """Turns what the client raises into one line."""
    from gcvae_client import ClientError, JobError

    try:
        yield
    except JobError as error:
        raise UnfinishedJobError(str(error)) from error
    except ClientError as error:
        raise CommandError(str(error)) from error
