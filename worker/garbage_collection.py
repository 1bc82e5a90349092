"""Garbage collection: deletes bytes without a record."""

from __future__ import annotations

import structlog

from catalog import Catalog
from models_store import Store
from models_store.errors import UnavailableError

_log = structlog.get_logger(__name__)


def collect_garbage(catalog: Catalog, store: Store) -> None:
    """Deletes the bytes of all due orphans; those that the store can not delete now remain due."""
    for prefix in catalog.orphans.take_due():
        try:
            store.delete(prefix)
        except UnavailableError as error:
            _log.warning("prefix could not be swept", prefix=prefix, error=str(error))
            continue
        catalog.orphans.forget(prefix)
