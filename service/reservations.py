"""Protection of stored bytes that have no database record yet, and deletion of abandoned ones."""

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
    """Context manager that protects files stored under `prefix` from deletion until recorded.

    The block stores the files and creates their record. If it fails, the files are deleted; if the
    database does not respond then, they are deleted when the reservation expires.
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
    """Deletes the bytes of a failed request, or leaves this to the end of the reservation."""
    try:
        if resources.catalog.orphans.abandon(prefix):
            collect_garbage(resources, [prefix])
    except SQLAlchemyError as error:
        log.warning("%s is deleted when its reservation runs out: %s", prefix, error)
