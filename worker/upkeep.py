"""Upkeep: records and bytes compared, and bytes collected that no record stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from catalog import Catalog
from catalog.inventory import Kept
from models_store import Store, StoredObject
from models_store.errors import CorruptedError, MissingObjectError
from models_store.manifests import Manifest

GRACE_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class Findings:
    """What a check of the whole store found.

    Attributes:
        checked: objects that are there with the right checksum.
        missing: records (id and key) whose bytes are not there.
        damaged: records whose bytes are others than were published.
        orphans: keys that no record stands for, older than the grace period.
    """

    checked: int
    missing: list[dict[str, str]]
    damaged: list[dict[str, str]]
    orphans: list[str]

    @property
    def is_clean(self) -> bool:
        """True where every record has its bytes and all bytes have their record."""
        return not (self.missing or self.damaged or self.orphans)

    def to_json(self) -> dict[str, Any]:
        """The findings by name."""
        return asdict(self)


def verify(catalog: Catalog, store: Store, grace_seconds: float = GRACE_SECONDS) -> Findings:
    """Read everything that the records stand for, and name what no record stands for.

    Raises:
        UnavailableError: the store does not answer.
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
    # What was deleted while this went on is missed by no one.
    still = {kept.record_id for kept in catalog.inventory.kept()}
    missing = [place for place in missing if place["record"] in still]
    return Findings(checked, missing, damaged, orphans)


def collect(
    catalog: Catalog, store: Store, grace_seconds: float = GRACE_SECONDS, *, dry_run: bool = False
) -> list[str]:
    """Delete bytes that no record stands for; the keys that went, or would go.

    Raises:
        UnavailableError: the store does not answer; some may be left.
    """
    keys = [entry.key for entry in find_orphans(catalog, store, grace_seconds)]
    for key in [] if dry_run else keys:
        store.delete(key)
    return keys


def find_orphans(catalog: Catalog, store: Store, grace_seconds: float) -> Iterator[StoredObject]:
    """What no record stands for, is being made, or is younger than the grace period.

    The order matters: what is made after the store is listed is not in the list, and what is no
    longer in work when that is asked is named by the records that are read last.
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
    """How many objects there are of it. Raises: MissingObjectError, CorruptedError."""
    for _ in store.stream(kept.key, kept.sha256):
        pass
    if not kept.is_manifest:
        return 1
    manifest = Manifest.read(store, kept.key, kept.sha256)
    for _ in manifest.stream(store):
        pass
    return 1 + len(manifest.shards)
