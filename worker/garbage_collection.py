"""Garbage collection: deletes stored bytes that have no record in the database."""

from __future__ import annotations

import structlog

from catalog import Catalog
from models_store import Store
from models_store.errors import UnavailableError

_log = structlog.get_logger(__name__)


def collect_garbage(catalog: Catalog, store: Store) -> None:
    """Deletes the stored bytes that have no record and are due for deletion (`catalog.orphans`).

    Bytes that cannot be deleted because the store is unavailable remain due.
    """
    for prefix in catalog.orphans.take_due():
        try:
            store.delete(prefix)
        except UnavailableError as error:
            _log.warning("prefix could not be swept", prefix=prefix, error=str(error))
            continue
        catalog.orphans.forget(prefix)
