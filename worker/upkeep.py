"""Maintenance of the object store: compares stored bytes with database records, and deletes bytes
without a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from catalog import Catalog
from catalog.inventory import Kept
from models_store import Store, StoredObject
from models_store.errors import CorruptedError, MissingObjectError, UnavailableError
from models_store.manifests import Manifest

GRACE_SECONDS = 24 * 3600.0

_log = structlog.get_logger(__name__)


def collect_garbage(catalog: Catalog, store: Store) -> None:
    """Deletes the stored bytes that have no record and are due for deletion (`catalog.orphans`).

    Bytes that cannot be deleted because the store is unavailable remain due for deletion.
    """
    for prefix in catalog.orphans.take_due():
        try:
            store.delete(prefix)
        except UnavailableError as error:
            _log.warning("prefix could not be swept", prefix=prefix, error=str(error))
            continue
        catalog.orphans.forget(prefix)


@dataclass(frozen=True)
class Findings:
    """Result of comparing the object store with the database's records.

    Attributes:
        checked: Number of objects with the right checksum.
        missing: `record` (id) and `key` of each record whose bytes are missing.
        damaged: `record` and `key` of each record whose bytes do not have their checksum.
        orphans: Store keys without a record, older than the grace period.
    """

    checked: int
    missing: list[dict[str, str]]
    damaged: list[dict[str, str]]
    orphans: list[str]

    @property
    def is_clean(self) -> bool:
        """Whether every record has its bytes, undamaged, and there are no orphans."""
        return not (self.missing or self.damaged or self.orphans)

    def to_json(self) -> dict[str, Any]:
        """Returns the findings as a JSON object, by attribute name."""
        return asdict(self)


def verify(catalog: Catalog, store: Store, grace_seconds: float = GRACE_SECONDS) -> Findings:
    """Reads and checks all stored bytes that belong to records, and lists bytes without a record.

    Args:
        grace_seconds: Age from which bytes without a record are reported; younger ones may still
            get one.

    Raises:
        UnavailableError: The store does not respond.
    """
    orphans = [entry.key for entry in find_orphans(catalog, store, grace_seconds)]
    checked, missing, damaged = 0, [], []
    for kept in catalog.inventory.kept():
        place = {"record": kept.record_id, "key": kept.key}
        try:
            checked += _check(store, kept)
        except MissingObjectError as error:
            missing.append(place | {"key": error.key})
        except CorruptedError as error:
            damaged.append(place | {"key": error.key})
    # Records that were deleted meanwhile are not missing.
    still = {kept.record_id for kept in catalog.inventory.kept()}
    missing = [place for place in missing if place["record"] in still]
    return Findings(checked, missing, damaged, orphans)


def collect(
    catalog: Catalog, store: Store, grace_seconds: float = GRACE_SECONDS, *, dry_run: bool = False
) -> list[str]:
    """Deletes stored bytes without a record and returns their keys.

    Args:
        grace_seconds: Age from which bytes without a record are deleted; younger ones may still get
            one.
        dry_run: Whether to return the keys without deleting anything.

    Raises:
        UnavailableError: The store does not respond; some objects may remain.
    """
    keys = [entry.key for entry in find_orphans(catalog, store, grace_seconds)]
    for key in [] if dry_run else keys:
        store.delete(key)
    return keys


def find_orphans(catalog: Catalog, store: Store, grace_seconds: float) -> Iterator[StoredObject]:
    """Yields stored objects without a record that are older than `grace_seconds`.

    The store is listed before the records are read, so an object that is written or gets its record
    in between is never yielded.
    """
    entries = list(store.list())
    in_work = tuple(catalog.inventory.prefixes_in_work())
    named = {key for kept in catalog.inventory.kept() for key in _keys(store, kept)}
    oldest = datetime.now(UTC) - timedelta(seconds=grace_seconds)
    for entry in entries:
        is_known = entry.key in named or entry.key.startswith(in_work)
        if not is_known and entry.modified_at < oldest:
            yield entry


def _keys(store: Store, kept: Kept) -> Iterator[str]:
    yield kept.key
    if kept.is_manifest:
        try:
            manifest = Manifest.read(store, kept.key, kept.sha256)
        except MissingObjectError:
            return  # deleted meanwhile, or lost: `verify` finds it
        yield from (part.key for part in manifest.shards)


def _check(store: Store, kept: Kept) -> int:
    """Checks the stored bytes of a record and returns the number of objects that contain them."""
    for _ in store.stream(kept.key, kept.sha256):
        pass
    if not kept.is_manifest:
        return 1
    manifest = Manifest.read(store, kept.key, kept.sha256)
    for _ in manifest.stream(store):
        pass
    return 1 + len(manifest.shards)
