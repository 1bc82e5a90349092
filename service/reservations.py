"""Bytes on their way to a record: reserved before they are written, gone where it fails."""

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
    """The block may write bytes under `prefix`, and makes the record that stands for them.

    Where it fails the bytes go: at once, or, while the database is away, when the reservation
    runs out.
    """
    resources.catalog.orphans.reserve(prefix, resources.settings.reservation_seconds)
    try:
        yield
    except BaseException:
        _abandon(resources, prefix)
        raise


def collect_garbage(resources: Resources, prefixes: Iterable[str]) -> None:
    """Delete bytes that no record stands for any more; a worker repeats what fails here."""
    for prefix in prefixes:
        try:
            resources.store.delete(prefix)
        except UnavailableError as error:
            log.warning("%s is deleted later: %s", prefix, error)
        else:
            resources.catalog.orphans.forget(prefix)


def _abandon(resources: Resources, prefix: str) -> None:
    try:
        if resources.catalog.orphans.abandon(prefix):
            collect_garbage(resources, [prefix])
    except SQLAlchemyError as error:
        log.warning("%s is deleted when its reservation runs out: %s", prefix, error)
