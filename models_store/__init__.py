"""Stores tables, model files, checkpoints and results, in a folder or in S3."""

from __future__ import annotations

from models_store.open_store import open_store, open_store_of
from models_store.store import Published, Store, StoredObject

__all__ = ["Published", "Store", "StoredObject", "open_store", "open_store_of"]
