"""Protection of stored files that have no database record yet, and deletion of abandoned files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from models_store.errors import UnavailableError
from service.resources import Resources

log = logging.getLogger("service")


@contextmanager
def reserved(resources: Resources, prefix: str) -> Iterator[None]:
    """Context manager that protects files under `prefix` in the store until their record exists.

    Workers delete files that have no record and no reservation. The context's block stores the
    files and creates their record. If the block fails, the files are deleted at once or, if the
    database does not respond, when the reservation expires.
    """
    resources.catalog.orphans.reserve(prefix, resources.settings.reservation_seconds)
    try:
        yield
    except BaseException:
        _abandon(resources, prefix)
        raise


def collect_garbage(resources: Resources, prefixes: Iterable[str]) -> None:
    """Deletes all files under these prefixes of the store. Workers repeat deletions that fail."""
    for prefix in prefixes:
        try:
            resources.store.delete(prefix)
        except UnavailableError as error:
            log.warning("%s is deleted later: %s", prefix, error)
        else:
            resources.catalog.orphans.forget(prefix)


def _abandon(resources: Resources, prefix: str) -> None:
    """Deletes the files of a failed request, unless their record exists. If the database does not
    respond, the files stay until their reservation expires."""
    try:
        if resources.catalog.orphans.abandon(prefix):
            collect_garbage(resources, [prefix])
    except SQLAlchemyError as error:
        log.warning("%s is deleted when its reservation runs out: %s", prefix, error)
