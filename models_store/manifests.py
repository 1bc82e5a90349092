"""Manifests of tables that are stored in several shards; concatenated in order they are the
table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Self

from models_store.errors import CorruptedError, MissingObjectError, ShardsLostError
from models_store.store import Published, Store

_FORMAT = "gcvae-parts"
_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """Shards of a table, with size and checksum of the whole."""

    shards: tuple[Published, ...]
    size_bytes: int
    sha256: str

    @classmethod
    def of_shards(cls, store: Store, shards: Sequence[Published]) -> Self:
        """Reads and checks published shards; returns their manifest.

        Raises:
            ShardsLostError: Shards are missing or corrupted.
            UnavailableError: The store does not respond.
        """
        digest, size_bytes, lost = hashlib.sha256(), 0, []
        for number, shard in enumerate(shards):
            try:
                for chunk in store.stream(shard.key, shard.sha256):
                    digest.update(chunk)
                    size_bytes += len(chunk)
            except (MissingObjectError, CorruptedError):
                lost.append(number)
        if lost:
            raise ShardsLostError(lost)
        return cls(tuple(shards), size_bytes, digest.hexdigest())

    @classmethod
    def read(cls, store: Store, key: str, sha256: str) -> Self:
        """Returns the manifest under a key.

        Raises:
            MissingObjectError, CorruptedError, UnavailableError: As `Store.read`.
        """
        document = json.loads(store.read(key, sha256))
        shards = tuple(Published(**shard) for shard in document["parts"])
        return cls(shards, document["size_bytes"], document["sha256"])

    def to_bytes(self) -> bytes:
        """Returns the bytes that `read` reads."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "parts": [asdict(shard) for shard in self.shards],
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
        }
        return json.dumps(document, indent=1).encode()

    def stream(self, store: Store) -> Iterator[bytes]:
        """Yields the bytes of all shards in chunks; each shard is checked at its end.

        Raises:
            MissingObjectError, CorruptedError, UnavailableError: As `Store.stream`; problems of the
                first shard are raised by the call itself.
        """
        first, *rest = self.shards
        begun = store.stream(first.key, first.sha256)
        later = (chunk for shard in rest for chunk in store.stream(shard.key, shard.sha256))
        return chain(begun, later)

    def stream_range(self, store: Store, start: int, end: int) -> Iterator[bytes]:
        """Yields the bytes from `start` up to, but excluding, `end`, without a check of the
        checksum.

        Raises:
            MissingObjectError, UnavailableError: As `Store.stream_range`.
        """
        first = 0
        for shard in self.shards:
            inside = max(start - first, 0), min(end - first, shard.size_bytes)
            if inside[0] < inside[1]:
                yield from store.stream_range(shard.key, *inside)
            first += shard.size_bytes
